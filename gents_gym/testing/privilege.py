"""Whether an agent knows more than it may: twin tasks that look alike, and a search of its attributes."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any

import gymnasium as gym
import numpy as np

from gents_gym.checks import InputError
from gents_gym.envs import BanditVectorEnv
from gents_gym.evaluation.rollout import rollout
from gents_gym.testing.contract import breach
from gents_gym.testing.player import Player, compare
from gents_gym.types import ActionRows, Tasks


@dataclass(frozen=True)
class Given:
    """A task distribution of tasks that are there already."""

    tasks: Tasks

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices``, whatever the seed."""
        return self.tasks[list(indices)]

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Raise: there are none."""
        raise InputError("these tasks have no historical rows")


def twin(tasks: Tasks, others: Tasks, actions: np.ndarray, steps: int) -> Tasks:
    """Return ``others`` in the guise of ``tasks``: what one who plays ``actions`` (B, t) sees up to ``steps``."""
    contexts, outcomes = others.contexts.copy(), others.outcomes.copy()
    contexts[:, :steps] = tasks.contexts[:, :steps]
    seen = actions[:, :steps, None]
    np.put_along_axis(outcomes[:, :steps], seen, np.take_along_axis(tasks.outcomes[:, :steps], seen, 2), 2)
    same = {"action_features": tasks.action_features, "texts": tasks.texts, "reward_fn": tasks.reward_fn}
    return replace(others, contexts=contexts, outcomes=outcomes, **same)  # type: ignore[arg-type]


def check_unprivileged(player: Player, tasks: Tasks, others: Tasks) -> None:
    """Raise where the agent knows more than it was told: it holds an environment, or acts by what it cannot see."""

    def play(given: Tasks) -> np.ndarray:
        agent = player.fresh()
        envs = BanditVectorEnv(Given(given), len(given), autoreset_mode="Disabled")
        actions = rollout(envs, agent, max_steps=player.steps).actions
        for path, held in _held(agent, player.name):
            raise breach(
                f"{player.name} holds what no agent may know",
                done="an agent played, and its attributes were searched",
                expected="no environment and no tasks, whose tables tell every outcome",
                seen=f"{path} is of type {type(held).__name__}",
                advice="keep what TaskInfo tells; an agent that needs the table has for_tasks(tasks), and its results "
                "are marked as privileged",
            )
        return actions

    first = play(tasks)
    half = first.shape[1] // 2
    compare(
        f"{player.name} acts by what it cannot have seen",
        first[:, :half],
        play(twin(tasks, others, first, half))[:, :half],
        f"tasks were played that are alike in all that is seen up to decision {half}, but neither in the outcomes of "
        "actions that were not played nor in what is to come",
        "use info, context, action and outcome alone; an agent that needs the table has for_tasks(tasks), and its "
        "results are marked as privileged",
    )


def _held(agent: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the environments and tasks among the attributes, and what they hold, with their names."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(name, agent)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, type | ModuleType) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tasks | gym.Env | gym.vector.VectorEnv):
            yield path, value
        elif isinstance(value, dict):
            waiting += [(f"{path}[{key!r}]", entry) for key, entry in value.items()]
        elif isinstance(value, list | tuple | set):
            waiting += [(f"{path}[{i}]", entry) for i, entry in enumerate(value)]
        elif hasattr(value, "__dict__") and not type(value).__module__.startswith(("numpy", "torch", "numba")):
            waiting += [(f"{path}.{key}", entry) for key, entry in vars(value).items()]
        waiting += [(f"{path}.__self__", value.__self__)] if hasattr(value, "__self__") else []
        if isinstance(value, FunctionType):
            waiting += [(f"{path}.{key}", entry) for key, entry in inspect.getclosurevars(value).nonlocals.items()]
