"""Decisions by posterior draws of each action's mean reward: the best under one draw is played."""

from collections.abc import Callable, Sequence

import numpy as np

from gents_gym.agents.ahead import Ahead, one_hot
from gents_gym.checks import check_rngs
from gents_gym.randomness import Draws

Predict = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # contexts (B, D) to means and deviations, (B, A) each


class DrawnBest:
    """Plays the action that is best under a draw, and counts which one would be under others."""

    def __init__(self, predict: Predict, rngs: Sequence[np.random.Generator], n_actions: int, votes: int) -> None:
        """Face B new tasks; draws of votes that are not played come from children of the generators."""
        rngs = check_rngs(rngs, len(rngs))
        self._predict, self._shape = predict, (len(rngs), votes - 1, n_actions)
        self._normal = Draws(rngs, "standard_normal", n_actions)
        self._others = Draws([rng.spawn(1)[0] for rng in rngs], "standard_normal", (votes - 1) * n_actions, ahead=1)
        self._decision = Ahead(self._decide)

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest drawn reward."""
        return self._decision.take(context)[0]

    def probabilities(self, context: np.ndarray) -> np.ndarray:
        """Return the share of draws under which each action is best, the played one among them, (B, D) to (B, A)."""
        played, mean, deviation = self._decision.look(context)
        noise = self._others.next().reshape(self._shape)  # (B, M-1, A)
        best = (mean[:, None] + deviation[:, None] * noise).argmax(axis=2)  # (B, M-1)
        n_actions = self._shape[2]
        votes = (best[..., None] == np.arange(n_actions)).sum(axis=1) + one_hot(played, n_actions)  # (B, A)
        return np.asarray(votes / (self._shape[1] + 1))

    def _decide(self, context: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, deviation = self._predict(context)
        return (mean + deviation * self._normal.next()).argmax(axis=1), mean, deviation
