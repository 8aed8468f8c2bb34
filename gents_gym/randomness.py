"""Random streams by name: (seed, role, split, index) in, a generator of its own out."""

from collections.abc import Sequence

import numpy as np

from gents_gym.checks import check_choice, check_integer

# The numbers are part of every stream's identity: append, never renumber.
ROLES = {"task": 0, "actions": 1, "agent": 2, "training": 3, "headlines": 4, "calibration": 5, "imagined": 6}
ROLES |= {"offline": 12, "offline model": 13, "inspection": 14}
SPLITS = {"train": 0, "validation": 1, "test": 2}


def stream(seed: int, role: str, index: int, split: str = "test") -> np.random.Generator:
    """Return the generator of (seed, role, split, index); different names never share numbers."""
    seed = check_integer("seed", seed, 0)
    index = check_integer("index", index, 0)
    key = (ROLES[role], SPLITS[check_choice("split", split, SPLITS)], index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Draws:
    """Per-task random numbers for a batch of tasks, drawn ahead in chunks.

    Task i's numbers come from ``rngs[i]`` alone and in the order of single draws, so neither the
    batch nor the chunk shows in them.
    """

    def __init__(self, rngs: Sequence[np.random.Generator], method: str, size: int, ahead: int = 64) -> None:
        """Draw ``size`` numbers per task and step by the generator's ``method``, such as "random"."""
        self._rngs = rngs
        self._method = method
        self._size = size
        self._ahead = ahead
        self._chunk = np.empty((0, len(rngs), size))  # (ahead, B, size)
        self._used = 0

    def next(self) -> np.ndarray:
        """Return the next step's numbers, (B, size)."""
        if self._used == len(self._chunk):
            drawn = [getattr(rng, self._method)(size=(self._ahead, self._size)) for rng in self._rngs]
            self._chunk = np.stack(drawn, axis=1)  # (ahead, B, size)
            self._used = 0
        self._used += 1
        numbers: np.ndarray = self._chunk[self._used - 1]
        return numbers
