"""The uniformly random agent: the reference that every other agent must beat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.agents.available import even_chances, find_available, pick_any
from gents_gym.agents.base import Resettable
from gents_gym.checks import check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, TaskInfo


@dataclass
class Random(Resettable):
    """Plays every action with the same probability."""

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._info = info
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return random actions (B,)."""
        return pick_any(self._uniform.next()[:, 0], find_available(available, self._info), self._info.n_actions)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return 1/A for every action, (B, D) to (B, A)."""
        return even_chances(find_available(available, self._info), self._info)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn nothing."""

    def observe_late(self, feedback: Feedback) -> None:
        """Learn nothing."""
