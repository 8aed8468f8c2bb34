"""Shared by the benchmarks: sizes, and rates of work over several rounds."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """How much is measured; results are reported for the defaults."""

    rounds: int = 3  # every contestant runs this often, in turn; medians count
    tasks: int = 256  # tasks side by side, for environments and LinUCB
    trained: int = 500  # actions in the batch whose training is timed
    batch: int = 100  # tasks side by side, for TS-Gen
    horizon: int = 500  # T
    decisions: int = 20  # decisions that are timed
    evaluated: int = 200  # tasks of the comparison that two workers play
    starts: int = 7  # processes of each kind whose start is timed
    large: int = 500  # tasks side by side in the measurement of memory
    live: tuple[int, ...] = (100, 1000, 10000)  # live decisions before those that are timed
    timed: int = 500  # live decisions that are timed


@dataclass(frozen=True)
class Rates:
    """Rates of contestants, one for each round."""

    rounds: dict[str, list[float]]  # by contestant

    def __or__(self, other: "Rates") -> "Rates":
        """Return the rates of the contestants of both."""
        return Rates(self.rounds | other.rounds)

    def rate(self, name: str) -> float:
        """Return the median rate."""
        return median(self.rounds[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median of the rounds' ratios of two rates."""
        return median(one / two for one, two in zip(self.rounds[name], self.rounds[other], strict=True))


def rate(work: Callable[[], Any], amount: int) -> float:
    """Return the amount of work per second of one run."""
    started = time.perf_counter()
    work()
    return amount / (time.perf_counter() - started)


def compete(contestants: dict[str, Callable[[], float]], rounds: int) -> Rates:
    """Run every contestant in turn, this often, so that all see the same state of the machine."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            found[name].append(contestant())
    return Rates(found)
