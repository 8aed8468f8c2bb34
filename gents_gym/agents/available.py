"""The available ("live") actions as columns: an agent computes with these only, whatever the size of the pool."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import check_available
from gents_gym.types import TaskInfo


@dataclass(frozen=True, eq=False)
class Available:
    """The available actions of B tasks as columns; tasks with fewer actions than others are padded."""

    actions: np.ndarray  # (B, n): available actions in order, then pads: other actions of the task
    counts: np.ndarray  # (B,): how many are available
    n_actions: int  # size of the pool

    def mask(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores (B, n) with -inf for pads."""
        return self._without_pads(scores, -np.inf)

    def spread(self, probabilities: np.ndarray) -> np.ndarray:
        """Return probabilities (B, n) as probabilities of the whole pool, (B, A): 0 for unavailable actions."""
        found = np.zeros((len(self.actions), self.n_actions))
        np.put_along_axis(found, self.actions, self._without_pads(probabilities, 0.0), axis=1)
        return found

    def share(self, probabilities: np.ndarray) -> np.ndarray:
        """Return probabilities (B, n) with 0 for pads, normalised to sum to 1."""
        kept = self._without_pads(probabilities, 0.0)
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))

    def _without_pads(self, values: np.ndarray, blank: float) -> np.ndarray:
        """Return the values (B, n) with pads replaced by ``blank``."""
        if np.count_nonzero(self.counts == self.actions.shape[1]) == len(self.counts):
            return values
        return np.where(np.arange(self.actions.shape[1]) < self.counts[:, None], values, blank)

    def at(self, column: np.ndarray) -> np.ndarray:
        """Return the actions (B,) in the columns (B,)."""
        picked: np.ndarray = np.take_along_axis(self.actions, column[:, None], axis=1)[:, 0]
        return picked


def find_available(available: Any, info: TaskInfo) -> Available | None:
    """Return the live actions of ``available`` (B, A), or None if all are; raise if a task has none."""
    if available is None:
        return None
    shape = (len(info), info.n_actions)
    known = isinstance(available, np.ndarray) and available.dtype == np.bool_ and available.shape == shape
    if known and np.count_nonzero(available) == available.size:  # the most frequent case, without the slower checks
        return None
    available = check_available(available, "(B, A)", shape)
    counts = np.count_nonzero(available, axis=1)
    most = int(counts.max())
    if np.count_nonzero(counts == info.n_actions) == len(counts):
        return None
    if np.count_nonzero(counts == most) == len(counts):
        return Available(np.nonzero(available)[1].reshape(-1, most), counts, info.n_actions)
    return Available(np.argsort(~available, axis=1, kind="stable")[:, :most], counts, info.n_actions)


def same_available(one: Available | None, other: Available | None) -> bool:
    """Whether two decisions have the same available actions."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one.actions, other.actions) and np.array_equal(one.counts, other.counts)


def counts_of(live: Available | None) -> np.ndarray | None:
    """Return how many actions are live in each task, (B,); None: all."""
    return None if live is None else live.counts


def spread(probabilities: np.ndarray, live: Available | None) -> np.ndarray:
    """Return probabilities of all actions (B, A), from those of all, (B, A), or of the live ones, (B, n)."""
    return probabilities if live is None else live.spread(probabilities)


def pick_best(scores: np.ndarray, live: Available | None) -> np.ndarray:
    """Return the actions (B,) with the highest scores: (B, A), or (B, n) for the live ones."""
    return scores.argmax(axis=1) if live is None else live.at(live.mask(scores).argmax(axis=1))


def pick_any(uniform: np.ndarray, live: Available | None, n_actions: int) -> np.ndarray:
    """Return actions (B,), uniformly drawn by uniform numbers (B,) from all actions or from the live ones."""
    if live is None:
        return (uniform * n_actions).astype(np.int64)
    return live.at((uniform * live.counts).astype(np.int64))


def even_chances(live: Available | None, info: TaskInfo) -> np.ndarray:
    """Return uniform probabilities over the available actions, (B, A)."""
    if live is None:
        return np.full((len(info), info.n_actions), 1 / info.n_actions)
    return live.spread(np.broadcast_to(1 / live.counts[:, None], live.actions.shape))
