"""How the benchmarks measure: sizes, and rates of work."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """How much is measured; the defaults are those that results are reported for."""

    rounds: int = 3  # every contestant runs so often, in turn; its best rate counts, which noise disturbs least
    tasks: int = 256  # side by side, for environments and LinUCB
    trained: int = 500  # actions in the batch whose training is timed
    batch: int = 100  # tasks side by side, for TS-Gen
    horizon: int = 500  # T
    decisions: int = 20  # that are timed
    evaluated: int = 200  # tasks of the comparison that two workers play
    starts: int = 7  # processes of each kind whose start is timed
    large: int = 500  # tasks side by side in the measurement of memory


def rate(work: Callable[[], Any], amount: int) -> float:
    """Return the amount of work per second of one run."""
    started = time.perf_counter()
    work()
    return amount / (time.perf_counter() - started)


def best_rates(contestants: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Run every contestant in turn, so often, and return its best rate."""
    rates: dict[str, float] = dict.fromkeys(contestants, 0.0)
    for _ in range(rounds):
        for name, contestant in contestants.items():
            rates[name] = max(rates[name], contestant())
    return rates
