"""Plays each task with its own single-task agent, an object with ``act(observation) -> int``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.base import Resettable
from gents_gym.agents.late import LastAct
from gents_gym.checks import InputError, TaskError, check_actions, check_array, check_available, check_played
from gents_gym.construct import make_object
from gents_gym.types import Feedback, TaskInfo


@dataclass
class PerTask(Resettable):
    """Plays each task with its own object.

    An object needs ``act(observation) -> int``, with the observation of the single environment:
    ``{"context": (D,), "action_features": (A, F)}``, and ``"available"`` (A,) if only some actions can be played. It
    may have ``reset(info, rng)``, called first with what is known of its task (a batch of one) and its own generator,
    and ``observe(observation, action, reward)``. If outcomes arrive late, an object that learns must have
    ``observe_late(decision, observation, action, reward)``, called for each outcome with the number of its decision and
    what was seen and played there.
    """

    agent: str | Callable[[], Any]  # makes one object: a class or function, or ``package.module:Class``
    packages: Sequence[str] = ()  # distributions whose versions are recorded in the manifest of results

    def __post_init__(self) -> None:
        """Check that ``agent`` can be called and its objects can act."""
        if not isinstance(self.agent, str) and not callable(self.agent):
            raise InputError(f"agent must be a class, a function or 'package.module:Class', got {self.agent!r}")
        if not hasattr(made := self._make(), "act"):
            raise InputError(f"agent must make objects with act(observation), got {made!r}")

    def check(self, info: TaskInfo) -> None:
        """Raise if outcomes arrive late and objects cannot take late ones."""
        made = self._make()
        if info.late and hasattr(made, "observe") and not hasattr(made, "observe_late"):
            rule = "agent's objects must have observe_late(decision, observation, action, reward) if outcomes are late"
            raise InputError(f"{rule}, got {made!r}")

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Make a new object for each of the B tasks."""
        self.check(info)
        self._info = info
        self._acted, self._time = LastAct(), 0
        self._open: dict[tuple[int, int], tuple[np.ndarray, int]] = {}  # contexts and actions by task and decision
        self._members = [self._make() for _ in rngs]
        for i, (member, rng) in enumerate(zip(self._members, rngs, strict=True)):
            if hasattr(member, "reset"):
                self._told(i, "reset", info[i], rng)

    def _make(self) -> Any:
        return make_object("agent", self.agent, {}, {}) if isinstance(self.agent, str) else self.agent()

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return each object's action (B,)."""
        shape = (len(self._info), self._info.n_actions)
        available = None if available is None else check_available(available, "(B, A)", shape)
        actions = [self._act(i, shown) for i, shown in enumerate(self._observations(context, available))]
        found = check_actions(actions, *shape)
        if available is not None:
            check_played(found, available)
        return self._acted.keep(context, found)

    def _act(self, i: int, observation: dict[str, np.ndarray]) -> Any:
        action = self._told(i, "act", observation)
        if np.ndim(action) or np.asarray(action).dtype.kind not in "iu":
            raise TaskError(f"action must be a whole number, got {action!r}", i)
        return action

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Give each object its own reward."""
        rewards = self._info.reward_fn(np.asarray(outcome))
        for i, observation in enumerate(self._observations(context)):
            if hasattr(self._members[i], "observe"):
                self._told(i, "observe", observation, int(action[i]), float(rewards[i]))

    def observe_late(self, feedback: Feedback) -> None:
        """Give each object its own rewards that arrived, with what it saw and played then."""
        for i, seen in enumerate(zip(*self._acted.take(), strict=True)):
            self._open[i, self._time] = seen
        self._time += 1
        rewards = self._info.reward_fn(np.asarray(feedback.outcome))
        for i, decision, reward in zip(feedback.task.tolist(), feedback.decision.tolist(), rewards, strict=True):
            if (i, decision) not in self._open:
                raise InputError(f"an outcome must arrive once for each decision, got decision {decision} of task {i}")
            context, action = self._open.pop((i, decision))
            if hasattr(self._members[i], "observe_late"):
                observation = self._observation(context, i)
                self._told(i, "observe_late", decision, observation, int(action), float(reward))

    def _told(self, i: int, verb: str, *arguments: Any) -> Any:
        """Return what a method of object ``i`` returns; errors name the task."""
        try:
            return getattr(self._members[i], verb)(*arguments)
        except Exception as error:
            raise TaskError(f"{type(error).__name__}: {error}", i) from error

    def _observations(self, context: np.ndarray, available: np.ndarray | None = None) -> list[dict[str, np.ndarray]]:
        shape = (len(self._info), self._info.context_dim)
        shown = [self._observation(x, i) for i, x in enumerate(check_array("context", context, "(B, D)", shape))]
        if available is None:
            return shown
        return [{**one, "available": row.astype(np.int8)} for one, row in zip(shown, available, strict=True)]

    def _observation(self, context: np.ndarray, i: int) -> dict[str, np.ndarray]:
        return {"context": context.astype(np.float32), "action_features": self._info.action_features[i].copy()}


def playable(observation: dict[str, np.ndarray], n_actions: int) -> list[int]:
    """Return the actions that an object may play, according to its observation."""
    found: list[int] = np.flatnonzero(observation.get("available", np.ones(n_actions))).tolist()
    return found
