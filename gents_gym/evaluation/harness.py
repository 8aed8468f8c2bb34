"""The evaluation harness: environments and agents in; a folder with results, and what they say, out."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from joblib import cpu_count, delayed

from gents_gym.checks import InputError, check_option, check_type
from gents_gym.evaluation.backends import check_backend, open_backend
from gents_gym.evaluation.cell import Played, play
from gents_gym.evaluation.given import AgentLike, Given, name_agents
from gents_gym.evaluation.grid import Cell, EvaluationConfig, cells, plan
from gents_gym.evaluation.progress import Costs, Progress
from gents_gym.evaluation.store import Evaluation, cell_seconds, finish, is_done, open_folder, write_cell


def evaluate(
    config: EvaluationConfig | Sequence[AgentLike] | Mapping[str, AgentLike],
    out: str | Path,
    *,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Play every agent on the same tasks of every environment, and return what the folder then holds.

    Work that the folder already holds is not repeated, so an interrupted call continues where it stopped. Agents and
    environments that the folder holds stay in it, whether or not they are named here. A cell that fails is reported in
    ``failures``; the others are still played, and the next call tries it again.

        evaluate(["ts-gen", "linucb", MyAgent(rate=0.1)], "results/mine", tasks=50)

    Args:
        config: What is played; or agents: ids, classes and objects, or a mapping from names to classes and objects.
            A class or object must be picklable; one defined in a notebook is named after its class.
        out: A new or empty folder, or one of the same run: same seed, split, oracle, block, versions and commit.
        workers: Processes, each with a cell at a time; None: one per core. Results do not depend on it.
        backend: "local", "ray" or "dask".
        address: Address of a running Ray cluster or Dask scheduler; None: one is started here.
        on_progress: Called with the :class:`Progress` at every new phase and after every cell.
        **options: With agents: the other fields of :class:`EvaluationConfig`, such as ``tasks`` and ``env``.
    """
    check_backend(backend, workers, address)
    if on_progress is not None:
        check_type("on_progress", on_progress, Callable)
    tell = on_progress or (lambda now: None)
    tell(Progress("checking"))
    config, given = _read(config, options)
    manifest = plan(config, given)
    grid = cells(manifest)
    failures: dict[str, str] = {}
    with open_folder(out, manifest) as (folder, everything):
        missing, costs = [], Costs(grid)
        for cell in grid:
            if is_done(folder, cell):
                costs.add(cell, cell_seconds(folder, cell))
            else:
                missing.append(cell)
        tell(costs.now("starting" if missing else "writing"))
        # The first block of every agent is played first, to learn what the agent costs.
        waiting = sorted(missing, key=lambda cell: (manifest["env"].index(cell.env), cell.first))
        with closing(_play_all(waiting, workers, backend, address, given)) as results:  # workers always end here
            for played in results:
                if played.error is None:
                    write_cell(folder, played.cell, played.data, played.seconds)
                else:
                    failures[played.cell.name] = played.error
                costs.add(played.cell, played.took)
                tell(costs.now("playing"))
        if missing:
            tell(costs.now("writing"))
        found = finish(folder, everything)
    return replace(found, failures=tuple(failures[cell.name] for cell in grid if cell.name in failures))


def _read(config: Any, options: Mapping[str, Any]) -> tuple[EvaluationConfig, dict[str, Given]]:
    """Return a configuration with agents as names, and those agents that no spec describes."""
    if isinstance(config, Mapping | list | tuple):
        known = [field.name for field in fields(EvaluationConfig) if field.name != "agents"]
        for option in options:
            check_option("evaluate", option, [*known, "workers", "backend", "address", "on_progress"])
        names, given = name_agents(config)
        env = {"env": (options["env"],)} if isinstance(options.get("env"), str) else {}
        return EvaluationConfig(names, **{**options, **env}), given
    if not isinstance(config, EvaluationConfig):
        raise InputError(f"config must be an EvaluationConfig or a list of agents, got {config!r}")
    if options:
        raise InputError(f"options must go with a list of agents, got {', '.join(options)} with an EvaluationConfig")
    if not isinstance(config.agents, list | tuple):
        return config, {}  # refused together with the other rules
    names, given = name_agents(config.agents)
    return replace(config, agents=names), given


def _play_all(
    missing: Sequence[Cell], workers: int | None, backend: str, address: str | None, given: Mapping[str, Given]
) -> Generator[Played]:
    """Yield the result of each cell, in the order in which they end.

    If a worker process dies, the cells that were running are halved until one is identified as the cause. Its agent is
    not tried further in that environment; all other cells are played.
    """
    owner = None
    if backend == "local":
        owner, workers = os.getpid(), min(workers or cpu_count(), len(missing))
    groups = [list(missing)]
    blamed: dict[tuple[str, str], str] = {}
    while groups:
        group = groups.pop(0)
        yield from (Played(cell, error=blamed[cell.pair]) for cell in group if cell.pair in blamed)
        if not (group := [cell for cell in group if cell.pair not in blamed]):
            continue
        left, waiting = {cell.name: cell for cell in group}, iter(group)
        try:
            with (
                open_backend(backend, workers, address) as parallel,
                closing(parallel(delayed(play)(cell, owner, given.get(cell.agent)) for cell in waiting)) as results,
            ):
                for played in results:
                    del left[played.cell.name]
                    yield played
        except BrokenProcessPool as error:
            rest = list(waiting)  # cells that no worker received
            flying = list(left.values())[: len(left) - len(rest)]
            if not flying:
                raise InputError("worker processes must start, but one died before it received a cell") from error
            if len(group) == 1:
                blamed[group[0].pair] = _end(group[0])
            half = (len(flying) + 1) // 2
            groups = [flying[:half], flying[half:], rest, *groups]


def _end(cell: Cell) -> str:
    end = f"agent {cell.agent!r} ended its worker process on {cell.tasks} of {cell.env!r}"
    return f"{end}, by itself or for lack of memory; its other tasks there are not tried"
