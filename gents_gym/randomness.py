"""Gives each random stream its own generator, named by (seed, role, split, index)."""

from collections.abc import Sequence

import numpy as np

from gents_gym.checks import check_choice, check_integer

# The positions are part of every stream's identity: append, never reorder.
ROLES = {"task": 0, "actions": 1, "agent": 2, "training": 3, "headlines": 4, "calibration": 5, "imagined": 6}
ROLES |= {"delay": 7, "turnover": 8, "live": 9, "offline": 12, "offline model": 13, "distilling": 14}
ROLES |= {"inspection": 15}
SPLITS = {"train": 0, "validation": 1, "test": 2}


def stream(seed: int, role: str, index: int, split: str = "test") -> np.random.Generator:
    """Return the generator of (seed, role, split, index); different names never share numbers."""
    seed = check_integer("seed", seed, 0)
    index = check_integer("index", index, 0)
    key = (ROLES[role], SPLITS[check_choice("split", split, SPLITS)], index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Draws:
    """Per-task random numbers for a batch of tasks, drawn ahead in chunks.

    Task i's numbers come only from ``rngs[i]``, in the order of single draws, so they depend on neither the batch nor
    the chunk.
    """

    def __init__(self, rngs: Sequence[np.random.Generator], method: str, size: int, ahead: int = 64) -> None:
        """Draw ``size`` numbers per task and step with the generator's ``method``, such as "random"."""
        self._rngs = rngs
        self._method = method
        self._size = size
        self._ahead = ahead
        self._chunk = np.empty((len(rngs), 0))  # (B, numbers)
        self._used: int | np.ndarray = 0  # numbers of the chunk used so far, by all tasks or by each, (B,)

    def next(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Return the next step's numbers, (B, size).

        With ``counts`` (B,), task i uses ``counts[i]`` numbers. The result is (B, n) with n the largest count; entries
        beyond a task's count must not be used.
        """
        wanted: int | np.ndarray = self._size
        if counts is not None:
            wanted = int(counts[0]) if np.count_nonzero(counts == counts[0]) == len(counts) else counts
        most = int(np.max(wanted))
        if np.max(self._used) + most > self._chunk.shape[1]:
            self._draw(most)
        used, self._used = self._used, self._used + wanted
        if isinstance(used, int):
            return self._chunk[:, used : used + most]
        return np.take_along_axis(self._chunk, used[:, None] + np.arange(most), axis=1)

    def _draw(self, most: int) -> None:
        """Add a chunk, and drop what all tasks have used."""
        old = int(np.min(self._used))
        drawn = [getattr(rng, self._method)(size=self._ahead * most) for rng in self._rngs]
        self._chunk = np.concatenate([self._chunk[:, old:], np.stack(drawn)], axis=1)
        self._used = self._used - old
