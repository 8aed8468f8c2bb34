"""Items that come and go: which actions of a task's pool can be played at each decision, drawn beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_integer, check_memory, check_number, check_option
from gents_gym.numerics.rounds import rounds

WORD = 8  # booleans that are flipped at once
RULE = "turnover must be a dict such as {'live': 20, 'rate': 0.01}"


@dataclass(frozen=True)
class Turnover:
    """So many actions are live; at each decision but the first, each leaves with a probability, and another comes.

    The one that comes is drawn from those that are not live, so an action that left may come again.
    """

    live: int
    rate: float

    def draw(self, rngs: Sequence[np.random.Generator], horizon: int, n_actions: int) -> np.ndarray:
        """Return which actions are available in each task, (B, T, A); ``rngs[i]`` draws those of task i."""
        if self.live > n_actions:
            raise InputError(f"turnover's 'live' must be at most n_actions={n_actions}, got {self.live}")
        check_memory(2 * len(rngs) * horizon * n_actions, tasks=len(rngs), horizon=horizon, n_actions=n_actions)
        order = np.argsort(np.stack([rng.random(n_actions) for rng in rngs]), axis=1)  # (B, A); the first ones are live
        flips = np.zeros((len(rngs), horizon, -(-n_actions // WORD)), np.uint64)  # eight actions in a number
        bits = flips.view(np.bool_)  # (B, T, ≥A)
        bits[np.arange(len(rngs))[:, None], 0, order[:, : self.live]] = True
        if self.live < n_actions and self.rate > 0:
            self._move(rngs, order, bits)
        np.bitwise_xor.accumulate(flips, axis=1, out=flips)
        return np.ascontiguousarray(bits[..., :n_actions])

    def _move(self, rngs: Sequence[np.random.Generator], order: np.ndarray, flips: np.ndarray) -> None:
        """Let actions leave and come: both flip a boolean of ``flips`` (B, T, ≥A)."""
        chances, spare = (flips.shape[1] - 1) * self.live, order.shape[1] - self.live
        hits = self._hits(rngs, chances)  # (B, n): a task's times and places, in this order, at which one leaves
        comers = np.stack([rng.random(hits.shape[1]) for rng in rngs])
        task, k = np.nonzero(hits < chances)
        time, leaving = np.divmod(hits[task, k], self.live)
        coming = self.live + (comers[task, k] * spare).astype(np.int64)
        for at in rounds(task):  # a move of each task that has one more
            who, when = task[at], time[at] + 1
            left, came = order[who, leaving[at]], order[who, coming[at]]
            order[who, leaving[at]], order[who, coming[at]] = came, left
            flips[who, when, left] ^= True
            flips[who, when, came] ^= True

    def _hits(self, rngs: Sequence[np.random.Generator], chances: int) -> np.ndarray:
        """Return which of so many chances hit in each task, in order, (B, n); those beyond do not count.

        The gaps between hits are drawn, so that few numbers are drawn for few hits.
        """
        mean = self.rate * chances
        count = int(mean + 8 * mean**0.5) + 16  # enough: eight standard deviations more than expected
        gaps = np.stack([rng.geometric(self.rate, count) for rng in rngs])
        return np.minimum(gaps, chances + 1).cumsum(axis=1) - 1


def make_turnover(turnover: Any) -> Turnover | None:
    """Check ``turnover`` and return what it says; None if every action is always available.

    Args:
        turnover: None, or a dict with "live" (how many actions can be played at a time) and "rate" (the probability
            that one of them is replaced before the next decision; 0 if it is not there).
    """
    if turnover is None:
        return None
    if not isinstance(turnover, dict) or "live" not in turnover:
        raise InputError(f"{RULE}, got {turnover!r}")
    for name in turnover:
        check_option("turnover", name, ("live", "rate"))
    live = check_integer("turnover's 'live'", turnover["live"], 1)
    rate = check_number("turnover's 'rate'", turnover.get("rate", 0.0), 0)
    if rate > 1:
        raise InputError(f"turnover's 'rate' must be a probability, at most 1, got {rate:g}")
    return Turnover(live, rate)
