"""The evaluation harness: environments and agents in; a folder with results, and what they say, out."""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from joblib import cpu_count, delayed

from gents_gym.checks import InputError
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
        out: A new or empty folder, or one of the same run: same seed, split, oracle, block, versions and weights.
        workers: Processes, each with a cell at a time; None: one per core. Results do not depend on it.
        backend: "local", "ray" or "dask".
        address: Of a running Ray cluster or Dask scheduler; None: one is started here.
        on_cell: Told how many cells are over, done or failed, and how many there are; first of all, and after each.
    """
    check_backend(backend, workers, address)
    manifest = plan(config)
    out = open_folder(out, manifest)
    grid = cells(manifest)
    missing = [cell for cell in grid if not is_done(out, cell)]
    failures: dict[str, str] = {}
    tell = on_cell or (lambda over, total: None)
    tell(len(grid) - len(missing), len(grid))
    with closing(_play_all(missing, workers, backend, address)) as results:  # whatever happens, workers end here
        for over, played in enumerate(results, len(grid) - len(missing) + 1):
            if played.error is None:
                write_cell(out, played.cell, played.data, played.seconds)
            else:
                failures[played.cell.name] = played.error
            tell(over, len(grid))
    return replace(finish(out), failures=tuple(failures[cell.name] for cell in grid if cell.name in failures))


def _play_all(missing: Sequence[Cell], workers: int | None, backend: str, address: str | None) -> Generator[Played]:
    """Yield what became of each cell, in the order in which they end."""
    if not missing:
        return
    owner = None
    if backend == "local":
        owner, workers = os.getpid(), min(workers or cpu_count(), len(missing))
    try:
        with open_backend(backend, workers, address) as parallel:
            yield from parallel(delayed(play)(cell, owner) for cell in missing)
    except BrokenProcessPool as error:
        rule = "what was written stays, and the same command goes on from it"
        raise InputError(f"a worker process was killed, perhaps for want of memory; {rule}") from error
