"""Plays one cell of the grid in a worker; returns the bytes of its file, or an error message."""

import copy
import math
import os
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from gents_gym.checks import InputError, TaskError
from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import find_distribution, make_envs
from gents_gym.evaluation.given import Given
from gents_gym.evaluation.grid import TRAINING_ROWS, Cell, first_info, resolved_policy, versions, weights_hash
from gents_gym.evaluation.rollout import rollout
from gents_gym.evaluation.sources import code_hashes
from gents_gym.evaluation.store import cell_bytes
from gents_gym.types import ActionRows, Agent, Fittable


@dataclass(frozen=True)
class Played:
    """The result of a cell: the bytes of its file, or a line that says why there are none."""

    cell: Cell
    data: bytes = b""
    seconds: float = 0.0  # the agent's own time; not part of the results
    took: float = math.nan  # seconds in total, with loading and compiling
    error: str | None = None


def play(cell: Cell, owner: int | None = None, given: Given | None = None) -> Played:
    """Play a cell with one thread; an error in it is reported and stops no other cell.

    Args:
        cell: What to play.
        owner: The process that waits for the result; a worker stops if this process has died.
        given: The agent, if no spec describes it.
    """
    started = time.perf_counter()
    _GIVEN.clear()
    if given is not None:
        _GIVEN[cell.agent] = given
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
            options = {"indices": indices, "on_step": count, "propensities": cell.run.get("propensities", False)}
            record = rollout(envs, agent, cell.run["seed"], cell.run["oracle"], **options)
        envs.close()
        data = cell_bytes(cell, record, record.tasks[0] if record.regret else None)
        return Played(cell, data, record.seconds, time.perf_counter() - started)
    except (Exception, SystemExit) as error:
        return Played(cell, error=_blame(cell, steps + 1, error))


_GIVEN: dict[str, Given] = {}  # the agent of the cell that is played, if no spec describes it
_WARM: set[tuple[str, str]] = set()  # environments and agents that this process has warmed up


def _warm_up(cell: Cell) -> None:
    """Play three decisions that do not count, once per process, so that compiling and loading are not timed."""
    if (cell.env, cell.agent) in _WARM:
        return
    _WARM.add((cell.env, cell.agent))
    with suppress(Exception, SystemExit):  # an error here occurs again in the cell, where it is reported
        asked = cell.run.get("propensities", False)
        rollout(make_envs(cell.env, 2, "train"), _agent(cell), max_steps=3, propensities=asked)


def _blame(cell: Cell, step: int, error: BaseException) -> str:
    """Return the line that names the agent, the task, the step and the place in the code."""
    where = f"task {cell.first + error.position}" if isinstance(error, TaskError) else cell.tasks
    root = error.__cause__ if isinstance(error, TaskError) and error.__cause__ is not None else error
    try:
        message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    except Exception:  # other libraries' exceptions may fail to print
        message = type(error).__name__
    frames = traceback.extract_tb(root.__traceback__)  # missing if it was never raised
    if frames and not isinstance(root, InputError):
        message += f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return f"agent {cell.agent!r} failed on {where} of {cell.env!r} at step {step}: {' '.join(message.split())}"


def _agent(cell: Cell) -> Agent:
    """Return a fresh, fitted agent: one that played another block could carry something over."""
    agent = _make(cell.agent)
    if (here := versions()) != cell.run["versions"]:
        raise InputError(f"a worker must have the run's versions, {cell.run['versions']}, got {here}")
    if weights_hash(agent) != cell.weights:
        raise InputError(f"a worker must have the run's weights, {cell.weights}, got {weights_hash(agent)}")
    named = (cell.env, None if cell.agent in _GIVEN else cell.agent, cell.run["oracle"])
    sent = _GIVEN[cell.agent].code if cell.agent in _GIVEN else {}
    if (code := {**code_hashes(*(spec for spec in named if spec is not None)), **sent}) != cell.code:
        raise InputError(f"a worker must have the run's code, {cell.code}, got {code}")
    _check_resolved(cell, agent)
    if not isinstance(agent, Fittable):
        return agent
    made_of = repr((cell.weights, cell.code))
    return copy.deepcopy(_fitted(cell.env, cell.agent, cell.run["seed"], cell.run["training_actions"], made_of))


def _make(agent: str) -> Agent:
    """Return a fresh agent: made from its spec, or a copy of the given one."""
    return copy.deepcopy(_GIVEN[agent].agent) if agent in _GIVEN else make_agent(agent)


def _check_resolved(cell: Cell, agent: Agent) -> None:
    """Raise unless the agent fits the same policy class here as in the manifest."""
    if cell.resolved is None:
        return
    info = first_info(cell.env, cell.run["split"], cell.run["seed"])
    here = resolved_policy(cell.env, cell.agent, agent, info, named=cell.agent not in _GIVEN)
    if here != cell.resolved:
        raise InputError(f"a worker must resolve to the run's policy class, {cell.resolved}, got {here}")


@lru_cache(maxsize=32)
def _fitted(env: str, spec: str, seed: int, n_actions: int, made_of: str) -> Agent:
    """Return the agent fitted to rows of the train split; once per process, for all blocks of tasks.

    ``made_of`` tells apart an agent or corpus that was changed meanwhile.
    """
    agent = _make(spec)
    rows = _rows(env, seed, n_actions, repr(code_hashes(env)))
    if isinstance(agent, Fittable) and rows is not None:
        with threadpool_limits(1):
            agent.fit(rows)
    return agent


@lru_cache(maxsize=1)
def _rows(env: str, seed: int, n_actions: int, made_of: str) -> ActionRows | None:
    """Return historical rows, which no evaluation plays; None if the environment has none."""
    distribution = find_distribution(env)
    return None if distribution is None else distribution.sample_actions(seed, range(n_actions), TRAINING_ROWS, "train")
