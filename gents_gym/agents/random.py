"""The uniformly random agent: the reference that every other agent must beat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.agents.base import Resettable
from gents_gym.checks import check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import TaskInfo


@dataclass
class Random(Resettable):
    """Plays every action with the same probability."""

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        self._n_actions = info.n_actions
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return random actions (B,)."""
        return (self._uniform.next()[:, 0] * self._n_actions).astype(np.int64)

    def probabilities(self, context: np.ndarray) -> np.ndarray:
        """Return 1/A for every action, (B, D) to (B, A)."""
        return np.full((len(context), self._n_actions), 1 / self._n_actions)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn nothing."""
