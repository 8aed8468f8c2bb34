"""Picks the action with the highest score; among equal scores the first, or a random one."""

from collections.abc import Sequence

import numpy as np

from gents_gym.agents.ahead import one_hot
from gents_gym.agents.available import Available, counts_of, pick_best, spread
from gents_gym.checks import check_choice, check_rngs
from gents_gym.randomness import Draws

TIES = ("first", "random")


def check_ties(ties: str) -> None:
    """Raise unless ``ties`` is a known rule for equally good actions."""
    check_choice("ties", ties, TIES)


class Chooser:
    """Picks actions by their scores.

    Random picks come from children of the agent's generators, so the agent's other draws stay the same, and a task's
    picks depend only on its own generator.
    """

    def __init__(self, ties: str, rngs: Sequence[np.random.Generator], n_actions: int) -> None:
        """Start B new tasks with ``n_actions`` actions."""
        self._uniform: Draws | None = None
        self._others: Draws | None = None
        if ties == "random":
            children = [rng.spawn(1)[0] for rng in check_rngs(rngs, len(rngs))]
            self._uniform = Draws(children, "random", n_actions)
            self._others = Draws([child.spawn(1)[0] for child in children], "random", n_actions)

    def __call__(self, scores: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest scores: (B, A), or (B, n) for the live ones."""
        return _pick(scores, self._uniform, live)

    def vote(self, scores: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return a pick that is not played, one-hot, (B, A); the played picks stay the same."""
        return one_hot(_pick(scores, self._others, live), scores.shape[1] if live is None else live.n_actions)

    def probabilities(self, scores: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the probability that each action is picked given the scores, (B, A); nothing is drawn."""
        if self._uniform is None:
            return one_hot(pick_best(scores, live), scores.shape[1] if live is None else live.n_actions)
        best = _best(scores, live)
        return spread(best / best.sum(axis=1, keepdims=True), live)


def _pick(scores: np.ndarray, uniform: Draws | None, live: Available | None) -> np.ndarray:
    if uniform is None:
        return pick_best(scores, live)
    return pick_best(np.where(_best(scores, live), uniform.next(counts_of(live)), -1), live)


def _best(scores: np.ndarray, live: Available | None) -> np.ndarray:
    scores = scores if live is None else live.mask(scores)
    return np.asarray(scores == scores.max(axis=1, keepdims=True))  # (B, A) or (B, n)
