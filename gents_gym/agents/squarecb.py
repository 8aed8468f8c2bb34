"""SquareCB: inverse-gap weighting of the one-step prediction of the model that TS-Gen samples from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.ahead import Ahead, draw_actions
from gents_gym.agents.base import Resettable
from gents_gym.agents.greedy import Greedy
from gents_gym.agents.on_model import DEFAULT_MODEL
from gents_gym.checks import check_number, check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import TaskInfo


@dataclass
class SquareCB(Resettable):
    """Plays an action with a probability that falls with the gap of its prediction to the best one's.

    Abe and Long (1999), Foster and Rakhlin (2020), with p_θ's prediction in the place of an online regression: of A
    actions, p_a = 1 / (A + γ_t (ŷ_best - ŷ_a)) for all but the best, which has the rest. γ_t = γ t^growth at the t-th
    decision. γ multiplies rewards, so rewards of another scale want another γ.
    """

    model: Any = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    gamma: float = 300.0  # the higher, the greedier
    growth: float = 0.5  # how γ grows with the number of the decision; 0: not at all

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("gamma", self.gamma, 0)
        check_number("growth", self.growth, 0)
        self._greedy = Greedy(self.model)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits tasks like the first of these."""
        self._greedy.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        self._greedy.reset(info, rngs)
        self._scores = Ahead(self._greedy.scores)
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)
        self._decision = 1

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,)."""
        chances = self._weigh(self._scores.take(context))
        self._decision += 1
        return draw_actions(chances, self._uniform.next()[:, 0])

    def probabilities(self, context: np.ndarray) -> np.ndarray:
        """Return the inverse-gap weights, (B, D) to (B, A)."""
        return self._weigh(self._scores.look(context))

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Tell the model what was played and what came of it."""
        self._greedy.observe(context, action, outcome)

    def _weigh(self, scores: np.ndarray) -> np.ndarray:
        return inverse_gap_weights(scores, self.gamma * self._decision**self.growth)


def inverse_gap_weights(scores: np.ndarray, gamma: float) -> np.ndarray:
    """Return SquareCB's probabilities for predictions, (B, A) to (B, A)."""
    tasks, best = np.arange(len(scores)), scores.argmax(axis=1)
    weights = 1 / (scores.shape[1] + gamma * (scores[tasks, best][:, None] - scores))  # (B, A)
    weights[tasks, best] = 0
    weights[tasks, best] = 1 - weights.sum(axis=1)
    return np.asarray(weights)
