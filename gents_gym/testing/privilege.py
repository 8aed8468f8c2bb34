"""Checks that an agent uses no hidden information, by twin tasks that look alike and by its attributes."""

import dis
import inspect
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import gymnasium as gym
import numpy as np

from gents_gym.checks import InputError
from gents_gym.envs import BanditVectorEnv
from gents_gym.evaluation.rollout import rollout
from gents_gym.testing.contract import breach
from gents_gym.testing.player import Player, check_same_actions
from gents_gym.types import ActionRows, Tasks

KNOWING = (Tasks, gym.Env, gym.vector.VectorEnv)  # types that hold every outcome


@dataclass(frozen=True)
class Given:
    """A task distribution of given tasks."""

    tasks: Tasks

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices``, whatever the seed."""
        return self.tasks[list(indices)]

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Raise, because there are no rows."""
        raise InputError("these tasks have no historical rows")


def twin(tasks: Tasks, others: Tasks, actions: np.ndarray, steps: int) -> Tasks:
    """Return ``others`` that look like ``tasks`` to an agent that plays ``actions`` (B, t) up to ``steps``."""
    contexts, outcomes = others.contexts.copy(), others.outcomes.copy()
    contexts[:, :steps] = tasks.contexts[:, :steps]
    seen = actions[:, :steps, None]
    np.put_along_axis(outcomes[:, :steps], seen, np.take_along_axis(tasks.outcomes[:, :steps], seen, 2), 2)
    same = {"action_features": tasks.action_features, "texts": tasks.texts, "reward_fn": tasks.reward_fn}
    same["available"] = tasks.available
    return replace(others, contexts=contexts, outcomes=outcomes, **same)  # type: ignore[arg-type]


def check_unprivileged(player: Player, tasks: Tasks, others: Tasks) -> None:
    """Raise if the agent has hidden information: it holds an environment, or acts on what it cannot see."""

    def play(given: Tasks) -> np.ndarray:
        agent = player.fresh()
        envs = BanditVectorEnv(Given(given), len(given), autoreset_mode="Disabled")
        actions = rollout(envs, agent, max_steps=player.steps).actions
        for path, held in _held(agent, player.name):
            raise breach(
                f"{player.name} holds information that is hidden from agents",
                done="an agent played, and its attributes and the variables of its methods were searched",
                expected="no environment and no tasks, whose tables hold every outcome",
                seen=f"{path} is of type {type(held).__name__}",
                advice="keep only what TaskInfo holds; an agent that needs the table has for_tasks(tasks), and its "
                "results are marked as privileged",
            )
        return actions

    first = play(tasks)
    steps = min(first.shape[1], tasks.horizon - 1)
    check_same_actions(
        f"{player.name} acts on information that it cannot have seen",
        first[:, :steps],
        play(twin(tasks, others, first, steps))[:, :steps],
        f"tasks were played that are alike in all that is seen up to decision {steps}, but neither in the outcomes of "
        "actions that were not played nor in what is to come",
        "use only info, context, action and outcome; an agent that needs the table has for_tasks(tasks), and its "
        "results are marked as privileged",
    )


def _held(agent: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the environments and tasks that an agent can reach, with the names that lead there."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(name, agent)]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, KNOWING):
            yield path, value
        else:
            waiting += [(f"{path}{step}", part) for step, part in _parts(value)]


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds: entries, attributes, including its class's, and variables that its functions use."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from ((f"[{i}]", entry) for i, entry in enumerate(value))
    elif isinstance(value, MethodType | BuiltinMethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, FunctionType):
        yield from ((f".{key}", entry) for key, entry in inspect.getclosurevars(value).nonlocals.items())
        for key in {step.argval for step in dis.get_instructions(value) if step.opname == "LOAD_GLOBAL"}:
            if isinstance(entry := value.__globals__.get(key), KNOWING):
                yield f".{key}", entry
    elif not isinstance(value, type) and not _is_library(type(value)):
        yield from ((f".{key}", entry) for key, entry in getattr(value, "__dict__", {}).items())
        for kind in type(value).__mro__:
            for key, entry in () if _is_library(kind) else vars(kind).items():
                yield f".{key}", getattr(value, key, None) if isinstance(entry, MemberDescriptorType) else entry


def _is_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("builtins", "numpy", "torch", "numba")
