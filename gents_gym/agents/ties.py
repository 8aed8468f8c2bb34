"""Picks the action of the highest score; among equal ones the first, or one at random."""

from collections.abc import Sequence

import numpy as np

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
        if ties == "random":
            self._uniform = Draws([rng.spawn(1)[0] for rng in check_rngs(rngs, len(rngs))], "random", n_actions)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest of the scores (B, A)."""
        if self._uniform is None:
            return scores.argmax(axis=1)
        best = scores == scores.max(axis=1, keepdims=True)  # (B, A)
        return np.where(best, self._uniform.next(), -1).argmax(axis=1)
