"""Shared by agents that can report their action probabilities: a decision prepared before ``act``, and votes."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import numpy as np

from gents_gym.agents.available import Available, same_available

Found = TypeVar("Found")
DEFAULT_VOTES = 32  # decisions that a vote share is estimated from, the played one included


class Ahead(Generic[Found]):
    """The basis of a decision, found once: when its probabilities are requested, or otherwise in ``act``.

    So an agent draws the same numbers in the same order, whether or not probabilities are requested.
    """

    def __init__(self, find: Callable[..., Found]) -> None:
        """Take the function that finds it from contexts (B, D), and from live actions if only some are available."""
        self._find = find
        self._kept: tuple[np.ndarray, Available | None, Found] | None = None  # contexts, live actions, what was found

    def look(self, context: np.ndarray, live: Available | None = None) -> Found:
        """Return the basis of the next decision, and keep it for ``act``."""
        kept = self._kept
        if kept is None or not np.array_equal(context, kept[0]) or not same_available(live, kept[1]):
            self._kept = kept = np.array(context), live, self._ask(context, live)
        return kept[2]

    def take(self, context: np.ndarray, live: Available | None = None) -> Found:
        """Return it for ``act``, and forget it: the next decision may have the same contexts."""
        found = self._ask(context, live) if self._kept is None else self.look(context, live)
        self._kept = None
        return found

    def _ask(self, context: np.ndarray, live: Available | None) -> Found:
        return self._find(context) if live is None else self._find(context, live)


def one_hot(action: np.ndarray, n_actions: int) -> np.ndarray:
    """Return probability 1 for each of the actions (B,), and 0 for others, (B, A)."""
    return (action[:, None] == np.arange(n_actions)).astype(np.float64)


def vote_share(votes: Iterable[np.ndarray]) -> np.ndarray:
    """Return the mean of the votes, (B, A) each; each vote sums to 1 over actions."""
    counted = list(votes)
    return np.asarray(sum(counted) / len(counted))


def draw_actions(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (B,) drawn from probabilities (B, A), given uniform numbers (B,) in [0, 1)."""
    steps = np.cumsum(probabilities, axis=1)  # (B, A)
    action = (steps <= uniform[:, None] * steps[:, -1:]).sum(axis=1)
    # Rounding may pass the end; then the last action with a positive probability is drawn.
    last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(action, last)
