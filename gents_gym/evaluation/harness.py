"""The evaluation harness: environments and agents in; a folder with results, and what they say, out."""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from joblib import cpu_count, delayed

from gents_gym.checks import InputError, check_type
from gents_gym.evaluation.backends import check_backend, open_backend
from gents_gym.evaluation.cell import Played, play
from gents_gym.evaluation.grid import Cell, EvaluationConfig, cells, plan
from gents_gym.evaluation.store import Evaluation, finish, is_done, open_folder, write_cell


def evaluate(
    config: EvaluationConfig,
    out: str | Path,
    *,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    on_cell: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Play every agent on the same tasks of every environment, and return what the folder then holds.

    Work that the folder already holds is not done again, so a call that was interrupted goes on where it was. A cell
    that fails is told in ``failures``; the others are played all the same, and the next call tries it again.

    Args:
        config: What is played.
        out: A new or empty folder, or one of the same run: same seed, split, oracle, block, versions and commit.
        workers: Processes, each with a cell at a time; None: one per core. Results do not depend on it.
        backend: "local", "ray" or "dask".
        address: Of a running Ray cluster or Dask scheduler; None: one is started here.
        on_cell: Told how many cells are over, done or failed, and how many there are; first of all, and after each.
    """
    check_backend(backend, workers, address)
    if on_cell is not None:
        check_type("on_cell", on_cell, Callable)
    manifest = plan(config)
    grid = cells(manifest)
    failures: dict[str, str] = {}
    tell = on_cell or (lambda over, total: None)
    with open_folder(out, manifest) as folder:
        missing = [cell for cell in grid if not is_done(folder, cell)]
        tell(len(grid) - len(missing), len(grid))
        with closing(_play_all(missing, workers, backend, address)) as results:  # whatever happens, workers end here
            for over, played in enumerate(results, len(grid) - len(missing) + 1):
                if played.error is None:
                    write_cell(folder, played.cell, played.data, played.seconds)
                else:
                    failures[played.cell.name] = played.error
                tell(over, len(grid))
        found = finish(folder, manifest)
    return replace(found, failures=tuple(failures[cell.name] for cell in grid if cell.name in failures))


def _play_all(missing: Sequence[Cell], workers: int | None, backend: str, address: str | None) -> Generator[Played]:
    """Yield what became of each cell, in the order in which they end.

    Where a worker process dies, the cells in flight are halved until one is alone with the blame. Its agent is not
    tried further in that environment; all other cells are played.
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
                closing(parallel(delayed(play)(cell, owner) for cell in waiting)) as results,
            ):
                for played in results:
                    del left[played.cell.name]
                    yield played
        except BrokenProcessPool as error:
            rest = list(waiting)  # what no worker was given
            flying = list(left.values())[: len(left) - len(rest)]
            if not flying:
                raise InputError("worker processes must start, and one died before it was given a cell") from error
            if len(group) == 1:
                blamed[group[0].pair] = _end(group[0])
            half = (len(flying) + 1) // 2
            groups = [flying[:half], flying[half:], rest, *groups]


def _end(cell: Cell) -> str:
    end = f"agent {cell.agent!r} ended its worker process on {cell.tasks} of {cell.env!r}"
    return f"{end}, by itself or for want of memory; its other tasks there are not tried"
