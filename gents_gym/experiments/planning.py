"""Runs the study of planning: how ``auto``, chosen only on imagined tasks, performs in eight regimes of real tasks."""

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
from gents_gym.experiments.regimes import COSTS, N_ACTIONS, SIZES, Regime, Size, kind_of
from gents_gym.experiments.studies import Parts, choose_parts, open_study, read_evaluation
from gents_gym.files import write_whole
from gents_gym.models.tuned import TUNED, read_tuned
from gents_gym.specs import parse_spec
from gents_gym.tuning.tune import tune
from gents_gym.words import count


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
    number of tasks. So several calls can play regimes, also at the same time and at different scales: the page has the
    most tasks that each agent has played, and says where these are fewer than at ``scale``.

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
    work = {name: _work(size.regimes[name], size) for name in chosen}
    parts = Parts(on_progress, [weight for each in work.values() for weight in each.values()])
    for name in chosen:
        _play(size.regimes[name], size, seed, out / name, workers, parts, list(work[name]))
    return report(out, scale, seed)


def report(out: Path, scale: str, seed: int = 0) -> Path:
    """Write the page and the figure of all that the folder holds, and return the page; nothing is played."""
    size = SIZES[check_choice("scale", scale, SIZES)]
    blocks = [block for regime in size.regimes.values() if (block := _read(regime, seed, out / regime.name))]
    command = f"gents-gym study {NAME} --scale {scale}" + (f" --seed {seed}" if seed else "")
    for file, data in {f"{NAME}.png": draw(blocks), f"{NAME}.md": make_page(command, size, blocks).encode()}.items():
        write_whole(out / file, data)
    return out / f"{NAME}.md"


def _work(regime: Regime, size: Size) -> dict[int, float]:
    """Return the work of a regime's evaluations by their numbers of tasks, most tasks first; that of tuning is 0."""
    work = {} if regime.wrong else {0: regime.horizon * size.tuning[regime.long] * COSTS["heavy"]}
    for agent, n_tasks in sorted(size.plan(regime).items(), key=lambda item: -item[1]):
        work[n_tasks] = work.get(n_tasks, 0.0) + regime.horizon * n_tasks * COSTS[kind_of(agent)]
    return work


def _play(
    regime: Regime, size: Size, seed: int, folder: Path, workers: int | None, parts: Parts, work: Sequence[int]
) -> None:
    """Tune ``auto`` and play all agents of a regime; existing results are not played again."""
    for n_tasks in work:
        if n_tasks == 0:
            tell = parts.begin(f"{regime.name}, tuning")
            if _tuned(regime, size, seed, folder) is None:
                tune(size.tune_config(regime, seed), folder / "tuned", workers=workers, on_progress=tell)
            continue
        agents = tuple(regime.spec(a, folder / "tuned") for a, n in size.plan(regime).items() if n == n_tasks)
        config = EvaluationConfig(agents, (regime.env,), n_tasks, seed=seed, block=size.block[regime.long])
        tell = parts.begin(f"{regime.name}, {count(n_tasks, 'task')}")
        found = evaluate(config, folder / str(n_tasks), workers=workers, on_progress=tell)
        if found.failures:
            raise InputError(f"every agent must play to its end: {found.failures[0]}")


def _tuned(regime: Regime, size: Size, seed: int, folder: Path) -> dict[str, Any] | None:
    """Return what the same tuning already chose for a regime; None if there is nothing."""
    config, entry = size.tune_config(regime, seed), _entry(regime, seed, folder)
    same = entry is not None and {*entry["rungs"][0]["agents"]} == {*(config.candidates or registry.TUNED)}
    return entry if same and entry is not None and entry["rungs"][-1]["tasks"] >= config.tasks else None


def _entry(regime: Regime, seed: int, folder: Path) -> dict[str, Any] | None:
    """Return what was chosen for a regime at any scale; None if there is nothing."""
    path = folder / "tuned" / TUNED
    wanted = {"horizon": regime.horizon, "n_actions": N_ACTIONS, "contexts": regime.law, "seed": seed}
    entries = read_tuned(path)["entries"] if path.exists() else []
    return next((dict(entry) for entry in entries if wanted.items() <= entry.items()), None)


def _read(regime: Regime, seed: int, folder: Path) -> Block | None:
    """Return the results in a regime's folder so far, the most tasks of each agent; None if there are none.

    Only agents that played in blocks of the same size can be compared. Of several sizes, the one with the most results
    is read.
    """
    entry, found = _entry(regime, seed, folder), dict[str, dict[str, Rollout]]()
    parts = [path for path in folder.glob("*") if path.name.isdigit()]
    for path in sorted(parts, key=lambda path: int(path.name)):
        if (part := read_evaluation(path, seed)) is None:
            continue
        chosen = part.manifest["resolved"].get(regime.env, {})
        for spec, record in part.records.get(regime.env, {}).items():
            agent = _agent(regime, spec)
            # What was chosen may have changed since a smaller evaluation.
            stale = agent == "auto" and entry is not None and not f"{chosen[spec]}, ".startswith(f"{entry['agent']}, ")
            if agent is not None and not stale:
                found.setdefault(record.tasks[0], {})[agent] = record
    if not found:
        return None
    most = max(found.values(), key=lambda records: sum(len(record.actions) for record in records.values()))
    return Block(regime, {agent: most[agent] for agent in regime.agents if agent in most}, entry)


def _agent(regime: Regime, spec: str) -> str | None:
    """Return which of a regime's agents a spec is; of ``auto`` the folder may have been moved since it played."""
    named = "auto" if parse_spec(spec)[0] == "auto" else spec
    return next((agent for agent in regime.agents if named in (agent, regime.spec(agent, Path()))), None)
