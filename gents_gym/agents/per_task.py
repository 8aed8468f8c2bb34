"""The adapter for single-task agents: one ``act(observation) -> int`` object per task in, one batched agent out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.base import Resettable
from gents_gym.checks import InputError, TaskError, check_actions, check_array
from gents_gym.construct import make_object
from gents_gym.types import TaskInfo


@dataclass
class PerTask(Resettable):
    """Plays each task with an object of its own.

    An object needs ``act(observation) -> int``, with the observation of the single environment:
    ``{"context": (D,), "action_features": (A, F)}``. It may have ``reset(info, rng)``, called first with what
    is known of its task (a batch of one) and its own generator, and ``observe(observation, action, reward)``.
    """

    agent: str | Callable[[], Any]  # makes one object: a class or function, or ``package.module:Class``
    packages: Sequence[str] = ()  # distributions whose versions show in the results; a manifest records them

    def __post_init__(self) -> None:
        """Check that there is something to call, and that it can act."""
        if not isinstance(self.agent, str) and not callable(self.agent):
            raise InputError(f"agent must be a class, a function or 'package.module:Class', got {self.agent!r}")
        if not hasattr(made := self._make(), "act"):
            raise InputError(f"agent must make objects with act(observation), got {made!r}")

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Make a new object for each of the B tasks."""
        self._info = info
        self._members = [self._make() for _ in rngs]
        for i, (member, rng) in enumerate(zip(self._members, rngs, strict=True)):
            if hasattr(member, "reset"):
                self._told(i, "reset", info[i], rng)

    def _make(self) -> Any:
        return make_object("agent", self.agent, {}, {}) if isinstance(self.agent, str) else self.agent()

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return each object's action (B,)."""
        shown = self._observations(context)
        actions = [self._act(i, observation) for i, observation in enumerate(shown)]
        return check_actions(actions, len(self._info), self._info.n_actions)

    def _act(self, i: int, observation: dict[str, np.ndarray]) -> Any:
        action = self._told(i, "act", observation)
        if np.ndim(action) or np.asarray(action).dtype.kind not in "iu":
            raise TaskError(f"action must be a whole number, got {action!r}", i)
        return action

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Tell each object its own reward."""
        rewards = self._info.reward_fn(np.asarray(outcome))
        for i, observation in enumerate(self._observations(context)):
            if hasattr(self._members[i], "observe"):
                self._told(i, "observe", observation, int(action[i]), float(rewards[i]))

    def _told(self, i: int, verb: str, *arguments: Any) -> Any:
        """Return what object ``i`` answers; what it raises names its task."""
        try:
            return getattr(self._members[i], verb)(*arguments)
        except Exception as error:
            raise TaskError(f"{type(error).__name__}: {error}", i) from error

    def _observations(self, context: np.ndarray) -> list[dict[str, np.ndarray]]:
        shape = (len(self._info), self._info.context_dim)
        pairs = zip(check_array("context", context, "(B, D)", shape), self._info.action_features, strict=True)
        return [{"context": x.copy(), "action_features": z.copy()} for x, z in pairs]
