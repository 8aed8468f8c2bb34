"""SquareCB: inverse-gap weighting of one-step predictions of the model that TS-Gen samples from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.ahead import Ahead, draw_actions
from gents_gym.agents.available import Available, find_available, spread
from gents_gym.agents.base import Resettable
from gents_gym.agents.greedy import Greedy
from gents_gym.agents.on_model import DEFAULT_MODEL
from gents_gym.checks import check_number, check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, TaskInfo


@dataclass
class SquareCB(Resettable):
    """Plays an action with a probability that falls with the gap between its prediction and the best one.

    Abe and Long (1999), Foster and Rakhlin (2020), with p_θ's prediction instead of an online regression. With A
    actions, p_a = 1 / (A + γ_t (ŷ_best - ŷ_a)) for all but the best action, which gets the rest; γ_t = γ t^growth at
    the t-th decision. γ multiplies rewards, so rewards of another scale need another γ.
    """

    model: Any = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    gamma: float = 300.0  # higher is greedier
    growth: float = 0.5  # how γ grows with the number of the decision; 0: not at all

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("gamma", self.gamma, 0)
        check_number("growth", self.growth, 0)
        self._greedy = Greedy(self.model)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits these tasks; only the first is tried."""
        self._greedy.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._greedy.reset(info, rngs)
        self._info = info
        self._scores = Ahead(self._greedy.scores)
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)
        self._decision = 1

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,)."""
        live = find_available(available, self._info)
        chances = self._weigh(self._scores.take(context, live), live)
        self._decision += 1
        column = draw_actions(chances, self._uniform.next()[:, 0])
        return self._greedy.acts(context, column if live is None else live.at(column))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the inverse-gap weights, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return spread(self._weigh(self._scores.look(context, live), live), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._greedy.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._greedy.observe_late(feedback)

    def _weigh(self, scores: np.ndarray, live: Available | None) -> np.ndarray:
        gamma = self.gamma * self._decision**self.growth
        return inverse_gap_weights(scores, gamma) if live is None else weigh_live(scores, gamma, live)


def weigh_live(scores: np.ndarray, gamma: float, live: Available) -> np.ndarray:
    """Return SquareCB's probabilities of the live actions, (B, n) to (B, n); 0 for pads."""
    is_live = np.arange(scores.shape[1]) < live.counts[:, None]
    lowest = np.where(is_live, scores, live.mask(scores).max(axis=1, keepdims=True))  # finite; pads are never the best
    return inverse_gap_weights(lowest, gamma, live.counts, is_live)


def inverse_gap_weights(
    scores: np.ndarray, gamma: float, counts: np.ndarray | None = None, is_live: np.ndarray | None = None
) -> np.ndarray:
    """Return SquareCB's probabilities for predictions, (B, A) to (B, A).

    Given ``counts`` (B,) and ``is_live`` (B, A), only the live entries, ``counts`` of them, get probability.
    """
    tasks, best = np.arange(len(scores)), scores.argmax(axis=1)
    size = scores.shape[1] if counts is None else counts[:, None]
    weights = 1 / (size + gamma * (scores[tasks, best][:, None] - scores))  # (B, A)
    if is_live is not None:
        weights *= is_live
    weights[tasks, best] = 0
    weights[tasks, best] = 1 - weights.sum(axis=1)
    return np.asarray(weights)
