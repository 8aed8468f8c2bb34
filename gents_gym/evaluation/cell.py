"""One cell of the grid, played by a worker: a cell in, its file's bytes or what went wrong out."""

import copy
import os
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from gents_gym.checks import InputError, TaskError
from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.grid import Cell, versions, weights_hash
from gents_gym.evaluation.rollout import rollout
from gents_gym.evaluation.store import cell_bytes
from gents_gym.types import ActionRows, Agent, Fittable

TRAINING_ROWS = 1000  # rows of each historical action


@dataclass(frozen=True)
class Played:
    """What became of a cell: its file's bytes, or a line that says why there are none."""

    cell: Cell
    data: bytes = b""
    seconds: float = 0.0  # the agent's own; not part of the results
    error: str | None = None


def play(cell: Cell, owner: int | None = None) -> Played:
    """Play a cell with one thread; whatever fails in it is told and ends nothing else.

    Args:
        cell: What to play.
        owner: The process that waits for the result: a child of it that outlives it stops, as nobody would take it.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for libraries that are not loaded yet
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if owner is not None and owner not in (os.getpid(), os.getppid()):
            os._exit(1)

    try:
        agent = _agent(cell)
        with threadpool_limits(1):
            _warm_up(cell)
            envs = make_envs(cell.env, cell.stop - cell.first, cell.run["split"])
            indices = range(cell.first, cell.stop)
            record = rollout(envs, agent, cell.run["seed"], cell.run["oracle"], indices=indices, on_step=count)
        tasks = envs.unwrapped.tasks.content_hash if record.regret else None  # type: ignore[attr-defined]
        envs.close()
        return Played(cell, cell_bytes(cell, record, tasks), record.seconds)
    except (Exception, SystemExit) as error:
        return Played(cell, error=_blame(cell, steps + 1, error))


_WARM: set[tuple[str, str]] = set()  # environments and agents that this process has met


def _warm_up(cell: Cell) -> None:
    """Play three decisions that do not count, once per process: compiling and loading are no decision's time."""
    if (cell.env, cell.agent) in _WARM:
        return
    _WARM.add((cell.env, cell.agent))
    with suppress(Exception, SystemExit):  # what fails here fails again where it is told
        rollout(make_envs(cell.env, 2, "train"), _agent(cell), max_steps=3)


def _blame(cell: Cell, step: int, error: BaseException) -> str:
    """Return the line that names agent, task, step, and where in the code it happened."""
    first, last = cell.first, cell.stop - 1
    where = f"task {first}" if first == last else f"tasks {first} to {last}"
    if isinstance(error, TaskError):
        where = f"task {first + error.position}"
    root = error
    while isinstance(root, TaskError) and root.__cause__ is not None:
        root = root.__cause__
    message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    if not isinstance(root, InputError):
        frame = traceback.extract_tb(root.__traceback__)[-1]
        message += f" ({Path(frame.filename).name}, line {frame.lineno})"
    return f"agent {cell.agent!r} failed on {where} of {cell.env!r} at step {step}: {' '.join(message.split())}"


def _agent(cell: Cell) -> Agent:
    """Return a fresh agent, fitted; one that played another block could carry something over."""
    agent = make_agent(cell.agent)
    if (here := versions()) != cell.run["versions"]:
        raise InputError(f"a worker must have the run's versions, {cell.run['versions']}, got {here}")
    if weights_hash(agent) != cell.weights:
        raise InputError(f"a worker must have the run's weights, {cell.weights}, got {weights_hash(agent)}")
    if not isinstance(agent, Fittable):
        return agent
    return copy.deepcopy(_fitted(cell.env, cell.agent, cell.run["seed"], cell.run["training_actions"]))


@lru_cache(maxsize=32)
def _fitted(env: str, spec: str, seed: int, n_actions: int) -> Agent:
    """Return the agent fitted to rows of the train split; once per process, for all blocks of tasks."""
    agent = make_agent(spec)
    rows = _rows(env, seed, n_actions)
    if isinstance(agent, Fittable) and rows is not None:
        with threadpool_limits(1):
            agent.fit(rows)
    return agent


@lru_cache(maxsize=1)
def _rows(env: str, seed: int, n_actions: int) -> ActionRows | None:
    """Return historical rows, which no evaluation plays; None where the environment has none."""
    distribution = getattr(make_envs(env, 1).unwrapped, "distribution", None)
    return None if distribution is None else distribution.sample_actions(seed, range(n_actions), TRAINING_ROWS, "train")
