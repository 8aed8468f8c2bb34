"""The command ``losses``, which compares sequence models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gents_gym.checks import InputError, check_integer
from gents_gym.evaluation.environments import env_distribution
from gents_gym.files import new_file, write_whole


@dataclass(frozen=True)
class MeasureLosses:
    """Print models' held-out losses on the same rows of the test split, next to that of the exact p*."""

    models: tuple[str, ...] = ("synthetic-paper", "synthetic-filter", "exact")
    """Bundled models, folders, or package.module:Class(folder=...); "exact" is p* itself, for the synthetic or the news
    setting, in closed form for Gaussian outcomes and by importance sampling for others."""
    kind: str | None = None
    """Class of models given as folders, package.module:Class, if their kind is not registered."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose test split is predicted."""
    actions: int = 2000
    """Number of single actions to predict."""
    seed: int = 0
    """Seed of the rows."""
    blind: str | None = None
    """One of the models, which sees no action features; prints the share of its gap to "exact" that others close."""
    orders: int = 0
    """Random orders of the same rows, 2 or more, over which the spread of the last row's prediction is printed; 0:
    none."""
    out: Path | None = None
    """A new PNG file for the losses by step."""

    def run(self) -> None:
        """Measure and print."""
        from gents_gym.models.load import bundled_models, load_model
        from gents_gym.training.losses import draw_losses_by_step, exact_model, measure, order_spread

        if self.out is not None:
            new_file("out", self.out)
        if not self.models:
            raise InputError("models must name at least one model, got none")
        if self.blind is not None and (self.blind == "exact" or not {self.blind, "exact"} <= {*self.models}):
            told = f"{self.blind!r} of {', '.join(self.models)}"
            raise InputError(f"blind must be one of the models, and 'exact' another, got {told}")
        distribution = env_distribution(self.env)
        bundled = bundled_models()

        def load(name: str) -> Any:
            is_folder = name not in bundled and ":" not in name
            return load_model(name, self.kind if is_folder else None)

        models: dict[str, Any] = {
            name: exact_model(distribution) if name == "exact" else load(name) for name in self.models
        }
        horizon = distribution.sample(0, [0]).horizon
        check_integer("actions", self.actions, 2)
        if self.orders:
            check_integer("orders", self.orders, 2)
        rows = distribution.sample_actions(self.seed, range(self.actions), horizon, "test")
        with Console(stderr=True).status("measuring"):
            found = measure(models, rows, self.seed)
        print(f"{self.env}, {self.actions} actions of the test split, seed {self.seed}: nats per step, mean ± s.e.")
        shown = [prefix for prefix in (1, 10, 50) if prefix in found.prefixes and prefix < horizon] + [horizon]
        print(f"{'model':<28}" + "".join(f"{f'first {prefix}':>20}" for prefix in shown))
        for name in models:
            cells = ("{:.5f} ± {:.5f}".format(*found.mean(name, prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        if "exact" in models:
            cells = (f"± {found.error('exact', prefix):.6f}" for prefix in shown)
            print(f"{'Monte-Carlo error of exact':<28}" + "".join(f"{cell:>20}" for cell in cells))
        others = [name for name in models if name != "exact" and "exact" in models]
        if others:
            print("above exact, paired by action:")
        for name in others:
            cells = ("{:.5f} ± {:.5f}".format(*found.gap(name, "exact", prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        for name in others:
            gap, error = found.gap(name, "exact", horizon)
            whole = f"{gap * horizon:.3f} nats per sequence"
            print(f"{name} is above exact by {gap:.6f} ± {error:.6f} nats per step, {whole}")
        for name in [name for name in others if self.blind and name != self.blind]:
            shares = (found.closed(name, str(self.blind), "exact", prefix) for prefix in shown)
            told = ", ".join(
                f"{share:.3f} ± {1.96 * error:.3f} over the first {prefix}"
                for prefix, (share, error) in zip(shown, shares, strict=True)
            )
            print(f"of the distance from {self.blind} to exact, {name} closes (± 95 %): {told}")
        for name, model in models.items() if self.orders else ():
            if name == "exact":
                continue
            spread = order_spread(model, rows, self.orders, self.seed).mean()
            print(f"{name}: the last prediction has a spread of {spread:.5f} nats over {self.orders} orders of rows")
        if self.out is not None:
            write_whole(self.out, draw_losses_by_step(found, "exact" if "exact" in models else None))
