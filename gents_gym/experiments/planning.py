"""Runs the study of planning: how ``auto``, chosen only on imagined tasks, performs in eight regimes of real tasks."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gents_gym import registry
from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.planning_page import NAME, TITLE, Block, draw, make_page
from gents_gym.experiments.regimes import COSTS, SIZES, Regime, Size, kind_of
from gents_gym.experiments.studies import Parts, choose_parts, open_study, read_records
from gents_gym.files import write_whole
from gents_gym.models.tuned import TUNED, read_tuned
from gents_gym.tuning.tune import tune


def planning(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    regimes: Sequence[str] = (),
) -> Path:
    """Tune and play the regimes, and return the page of everything that the folder holds; nothing is played twice.

    Each regime has its own folder below ``out``, with ``tuned``, where ``auto`` was chosen, and an evaluation for each
    number of tasks. So several calls can play regimes, also at the same time.

    Args:
        out: The folder.
        scale: "full"; "medium" and "small", fewer tasks, fewest of slow agents; "tiny", seconds.
        seed: Seed of all tasks, imagined ones included, and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with the progress.
        regimes: The regimes to play, such as "synthetic-0-500"; empty: all.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    check_integer("seed", seed, 0)
    chosen = choose_parts(regimes, list(size.regimes))
    out = open_study(out, NAME, TITLE)
    started = time.perf_counter()
    work = {name: _work(size.regimes[name], size) for name in chosen}
    parts = Parts(on_progress, [weight for each in work.values() for weight in each.values()])
    for name in chosen:
        _play(size.regimes[name], size, seed, out / name, workers, parts, list(work[name]))
    blocks = [block for regime in size.regimes.values() if (block := _read(regime, size, seed, out / regime.name))]
    command = f"gents-gym study {NAME} --scale {scale}" + (f" --seed {seed}" if seed else "")
    page = make_page(command, size, blocks, time.perf_counter() - started)
    for file, data in {f"{NAME}.png": draw(blocks), f"{NAME}.md": page.encode()}.items():
        write_whole(out / file, data)
    return out / f"{NAME}.md"


def _work(regime: Regime, size: Size) -> dict[int, float]:
    """Return the work of a regime's evaluations by their numbers of tasks, most tasks first; that of tuning is 0."""
    work = {} if regime.wrong else {0: regime.horizon * size.tuning[regime.long] * COSTS["heavy"]}
    for agent, count in sorted(_agents(regime, size).items(), key=lambda item: -item[1]):
        work[count] = work.get(count, 0.0) + regime.horizon * count * COSTS[kind_of(agent)]
    return work


def _agents(regime: Regime, size: Size) -> dict[str, int]:
    """Return how many tasks each agent of a regime plays, including ``auto``."""
    auto = {} if regime.wrong else {"auto": size.light[regime.long]}
    return {**regime.agents(size), **auto}


def _play(
    regime: Regime, size: Size, seed: int, folder: Path, workers: int | None, parts: Parts, work: Sequence[int]
) -> None:
    """Tune ``auto`` and play all agents of a regime; existing results are not played again."""
    for count in work:
        if count == 0:
            tell = parts.begin(f"{regime.name}, tuning")
            if _tuned(regime, size, seed, folder) is None:
                tune(size.tune_config(regime, seed), folder / "tuned", workers=workers, on_progress=tell)
            continue
        agents = tuple(regime.spec(a, folder / "tuned") for a, n in _agents(regime, size).items() if n == count)
        config = EvaluationConfig(agents, (regime.env,), count, seed=seed, block=size.block[regime.long])
        tell = parts.begin(f"{regime.name}, {count} tasks")
        found = evaluate(config, folder / str(count), workers=workers, on_progress=tell)
        if found.failures:
            raise InputError(f"every agent must play to its end: {found.failures[0]}")


def _tuned(regime: Regime, size: Size, seed: int, folder: Path) -> dict[str, Any] | None:
    """Return what the same tuning already chose for a regime; None if there is nothing."""
    path, config = folder / "tuned" / TUNED, size.tune_config(regime, seed)
    if not path.exists():
        return None
    wanted = {"horizon": config.horizon, "n_actions": config.n_actions, "contexts": config.contexts, "seed": seed}
    for entry in read_tuned(path)["entries"]:
        same = {*entry["rungs"][0]["agents"]} == {*(config.candidates or registry.TUNED)}
        if same and wanted.items() <= entry.items() and entry["rungs"][-1]["tasks"] >= config.tasks:
            return dict(entry)
    return None


def _read(regime: Regime, size: Size, seed: int, folder: Path) -> Block | None:
    """Return the results in a regime's folder so far; None if there are none."""
    records = dict[str, Rollout]()
    for agent, count in _agents(regime, size).items():
        found = read_records(folder / str(count), seed).get(regime.env, {})
        if (spec := regime.spec(agent, folder / "tuned")) in found:
            records[agent] = found[spec]
    return Block(regime, records, _tuned(regime, size, seed, folder)) if records else None
