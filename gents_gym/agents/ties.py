"""Picks the action of the highest score; among equal ones the first, or one at random."""

from collections.abc import Sequence

import numpy as np

from gents_gym.agents.ahead import one_hot
from gents_gym.checks import check_choice, check_rngs
from gents_gym.randomness import Draws

TIES = ("first", "random")


def check_ties(ties: str) -> None:
    """Raise unless ``ties`` says which of several equal actions is played."""
    check_choice("ties", ties, TIES)


class Chooser:
    """Picks actions by their scores.

    Random picks come from children of the agent's generators, so all else that an agent draws stays the same, and a
    task's picks depend on its own generator alone.
    """

    def __init__(self, ties: str, rngs: Sequence[np.random.Generator], n_actions: int) -> None:
        """Face B new tasks of ``n_actions`` actions."""
        self._uniform: Draws | None = None
        self._others: Draws | None = None
        if ties == "random":
            children = [rng.spawn(1)[0] for rng in check_rngs(rngs, len(rngs))]
            self._uniform = Draws(children, "random", n_actions)
            self._others = Draws([child.spawn(1)[0] for child in children], "random", n_actions)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest of the scores (B, A)."""
        return _pick(scores, self._uniform)

    def vote(self, scores: np.ndarray) -> np.ndarray:
        """Return a pick that is not played, as 1 for its action, (B, A) to (B, A); played picks stay the same."""
        return one_hot(_pick(scores, self._others), scores.shape[1])

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability that each action is picked by the scores, (B, A) to (B, A); nothing is drawn."""
        if self._uniform is None:
            return one_hot(scores.argmax(axis=1), scores.shape[1])
        best = _best(scores)
        return best / best.sum(axis=1, keepdims=True)


def _pick(scores: np.ndarray, uniform: Draws | None) -> np.ndarray:
    return scores.argmax(axis=1) if uniform is None else np.where(_best(scores), uniform.next(), -1).argmax(axis=1)


def _best(scores: np.ndarray) -> np.ndarray:
    return np.asarray(scores == scores.max(axis=1, keepdims=True))  # (B, A)
