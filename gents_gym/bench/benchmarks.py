"""Runs all benchmarks and formats their table."""

from collections.abc import Callable, Mapping, Sequence

from gents_gym.bench.sb3 import measure_sb3
from gents_gym.bench.startup import measure_startup
from gents_gym.bench.suite import measure_suite
from gents_gym.bench.timing import Sizes
from gents_gym.bench.workers import measure_workers
from gents_gym.checks import check_choice

DEFAULT = Sizes()


def run_benchmarks(sizes: Sizes = DEFAULT, only: Sequence[str] = ()) -> dict[str, float | None]:
    """Return the ratios by name, with the rates and times that they come from; None if a library is missing.

    Args:
        sizes: How much is measured.
        only: The parts to measure: "suite", "sb3", "ts-gen", "transformer", "live", "training", "workers" or
            "startup"; all if empty.
    """
    from gents_gym.bench.live import measure_live
    from gents_gym.bench.training import measure_training  # imports torch and scikit-learn, which is slow
    from gents_gym.bench.transformer import measure_transformer
    from gents_gym.bench.ts_gen import measure_ts_gen

    parts: dict[str, Callable[[Sizes], Mapping[str, float | None]]] = {
        "suite": measure_suite,
        "sb3": measure_sb3,
        "ts-gen": measure_ts_gen,
        "transformer": measure_transformer,
        "live": measure_live,
        "training": measure_training,
        "workers": measure_workers,
        "startup": measure_startup,
    }
    chosen = [check_choice("part", name, parts) for name in only] or parts
    return {name: value for part in chosen for name, value in parts[part](sizes).items()}


def tabulate(found: dict[str, float | None]) -> str:
    """Return the benchmarks' results as a table of lines."""
    return "\n".join(f"{name.replace('_', ' '):<40} {_shown(name, value):>16}" for name, value in found.items())


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "not installed"
    if "_per_" in name or name.endswith("_mib"):
        return f"{value:,.0f}"
    return f"{value:,.1f}×" if name.endswith(("_speedup", "_vs_cartpole", "_vs_mabwiser")) else f"{value:,.2f}"
