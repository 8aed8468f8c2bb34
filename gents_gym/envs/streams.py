"""The streams of tasks that the slots of a vector environment walk through."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gents_gym.checks import InputError, InputTypeError, check_integer
from gents_gym.randomness import stream
from gents_gym.types import TaskDistribution, Tasks

Seeds = int | Sequence[int | None] | None


class Streams:
    """Which task each slot plays next: the seed of its stream, and how far it has come in it."""

    def __init__(self, distribution: TaskDistribution, split: str, n_slots: int) -> None:
        self._distribution, self._split = distribution, split
        self._seeds: list[int | None] = [None] * n_slots
        self._next = np.zeros(n_slots, np.int64)  # the number of the next task
        self._stride = np.ones(n_slots, np.int64)  # how far apart a slot's tasks are in its stream

    def check(self, seed: Any) -> Seeds:
        """Check ``seed``; return it as an int, a list of B of them, or None."""
        if seed is None or isinstance(seed, int | np.integer):
            return None if seed is None else check_integer("seed", seed, 0)
        rule = f"seed must be a whole number or a list of B={len(self._seeds)} of them"
        if not isinstance(seed, list | tuple | np.ndarray):
            raise InputTypeError(f"{rule}, got {seed!r}")
        if len(seed) != len(self._seeds):
            raise InputError(f"{rule}, got {len(seed)}")
        return [None if one is None else check_integer("seed", one, 0) for one in seed]

    def start(self, seed: Seeds, slots: np.ndarray, rng: np.random.Generator) -> None:
        """Start streams.

        A whole number is one stream for all: slot i plays the tasks i, B + i, 2B + i, … of it. In a list each of
        ``slots`` has its own: slot i plays the tasks 0, 1, 2, … of the stream ``seed[i]``. None goes on in the stream
        that there is, or starts one that ``rng`` draws.
        """
        if seed is None and None in self._seeds:
            seed = int(rng.integers(2**63))
        if isinstance(seed, int):
            n_slots = len(self._seeds)
            self._seeds = [seed] * n_slots
            self._next[:], self._stride[:] = np.arange(n_slots), n_slots
        elif seed is not None:
            for i in slots:
                if (one := seed[i]) is not None or self._seeds[i] is None:
                    self._seeds[i] = int(rng.integers(2**63)) if one is None else one
                    self._next[i], self._stride[i] = 0, 1

    def draw(self, slots: np.ndarray, numbers: Any = None) -> tuple[np.ndarray, Tasks]:
        """Return the numbers of the next tasks of ``slots``, or the given ``numbers``, and these tasks."""
        if numbers is None:
            numbers = self._next[slots]
            self._next[slots] += self._stride[slots]
        numbers = np.asarray(numbers)
        seeds = [self._seeds[i] for i in slots]
        if len(set(seeds)) == 1:
            return numbers, self._sample(seeds[0], numbers.tolist())
        return numbers, _join([self._sample(*pair) for pair in zip(seeds, numbers[:, None].tolist(), strict=True)])

    def generators(self, role: str, slots: np.ndarray, numbers: np.ndarray) -> list[np.random.Generator]:
        """Return what draws a role's part of the tasks ``numbers`` (n,) of ``slots`` (n,).

        A task that the caller gave has the number -1, and the generator of its slot's number.
        """
        pairs = zip(slots.tolist(), numbers.tolist(), strict=True)
        return [stream(self._seeds[i] or 0, role, i if number < 0 else number, self._split) for i, number in pairs]

    def _sample(self, seed: int | None, numbers: list[int]) -> Tasks:
        assert seed is not None
        return self._distribution.sample(seed, numbers, self._split)


def _join(batches: list[Tasks]) -> Tasks:
    """Return the tasks of all batches as one."""
    first = batches[0]
    names = [field.name for field in fields(first) if isinstance(getattr(first, field.name), np.ndarray)]
    likelihood = first.likelihood if all(b.likelihood == first.likelihood for b in batches) else None
    arrays: dict[str, Any] = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    return replace(first, **arrays, likelihood=likelihood)  # type: ignore[arg-type]
