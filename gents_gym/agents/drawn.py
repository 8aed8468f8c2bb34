"""Plays the action that is best under a posterior draw of each action's mean reward."""

from collections.abc import Callable, Sequence

import numpy as np

from gents_gym.agents.ahead import Ahead, one_hot
from gents_gym.agents.available import Available, counts_of, pick_best
from gents_gym.checks import check_rngs
from gents_gym.randomness import Draws

# Maps contexts (B, D), and the live actions if only some are, to means and standard deviations, (B, A) or (B, n) each.
Predict = Callable[..., tuple[np.ndarray, np.ndarray]]


class DrawnBest:
    """Plays the action that is best under one draw; further draws estimate the probabilities."""

    def __init__(self, predict: Predict, rngs: Sequence[np.random.Generator], n_actions: int, votes: int) -> None:
        """Start B new tasks; draws of votes that are not played come from children of the generators."""
        rngs = check_rngs(rngs, len(rngs))
        self._predict, self._shape = predict, (len(rngs), votes - 1, n_actions)
        self._normal = Draws(rngs, "standard_normal", n_actions)
        self._others = Draws([rng.spawn(1)[0] for rng in rngs], "standard_normal", (votes - 1) * n_actions, ahead=1)
        self._decision = Ahead(self._decide)

    def act(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest drawn reward."""
        return self._decision.take(context, live)[0]

    def probabilities(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the share of draws under which each action is best, the played draw included, (B, D) to (B, A)."""
        played, mean, deviation = self._decision.look(context, live)
        noise = self._noise(live)  # (B, M-1, n)
        scores = mean[:, None] + deviation[:, None] * noise
        if live is None:
            best = scores.argmax(axis=2)  # (B, M-1)
        else:
            is_live = np.arange(noise.shape[2]) < live.counts[:, None, None]
            best = np.take_along_axis(live.actions, np.where(is_live, scores, -np.inf).argmax(axis=2), axis=1)
        n_actions = self._shape[2]
        votes = (best[..., None] == np.arange(n_actions)).sum(axis=1) + one_hot(played, n_actions)  # (B, A)
        return np.asarray(votes / (self._shape[1] + 1))

    def _noise(self, live: Available | None) -> np.ndarray:
        """Return normal numbers for the votes that are not played, (B, M-1, A) or (B, M-1, n)."""
        if live is None:
            return self._others.next().reshape(self._shape)
        found = self._others.next(self._shape[1] * live.counts)  # each task's own, one vote at a time
        first = np.arange(self._shape[1])[:, None] * live.counts[:, None, None]  # (B, M-1, 1)
        place = np.minimum(first + np.arange(live.actions.shape[1]), found.shape[1] - 1)  # (B, M-1, n)
        return np.take_along_axis(found, place.reshape(len(found), -1), axis=1).reshape(place.shape)

    def _decide(self, context: np.ndarray, live: Available | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, deviation = self._predict(context) if live is None else self._predict(context, live)
        return pick_best(mean + deviation * self._normal.next(counts_of(live)), live), mean, deviation
