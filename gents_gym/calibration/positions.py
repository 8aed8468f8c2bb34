"""Ranks true quantities among draws of a posterior; the ranks are uniform if the posterior is correct."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from gents_gym.calibration.reliability import wilson

LEVELS = (0.5, 0.8, 0.95)  # levels of central intervals
BINS = 20  # most bins of the test
FEWEST = 5  # least expected positions per bin


@dataclass(frozen=True, eq=False)
class Placed:
    """Positions of true quantities, and the widths of the central 80 % intervals of their draws, both (n, ...)."""

    positions: np.ndarray
    widths: np.ndarray

    @classmethod
    def stack(cls, parts: Sequence["Placed"]) -> "Placed":
        """Stack S arrays (n,) to (n, S)."""
        return cls(*(np.stack([getattr(one, name) for one in parts], axis=1) for name in ("positions", "widths")))

    @classmethod
    def join(cls, parts: Sequence["Placed"]) -> "Placed":
        """Concatenate blocks."""
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("positions", "widths")))


def place(truth: np.ndarray, draws: np.ndarray, uniform: np.ndarray) -> Placed:
    """Return the position of each truth among its draws, (n,) in [0, 1).

    The rank of a truth that is exchangeable with its M draws takes each of M + 1 values equally often. A position is
    the rank, with ties broken at random, plus a uniform random number, divided by M + 1; it is uniform for every M.

    Args:
        truth: (n,).
        draws: (n, M).
        uniform: Random numbers in [0, 1), (n,).
    """
    below, ties = (found.sum(axis=1) for found in (draws < truth[:, None], draws == truth[:, None]))
    low, high = np.quantile(draws, (0.1, 0.9), axis=1)
    return Placed((below + uniform * (ties + 1)) / (draws.shape[1] + 1), high - low)


def coverage(positions: np.ndarray, level: float) -> tuple[float, float, float]:
    """Return the share of positions in the central interval of ``level``, and the share's 95 % interval."""
    inside = np.abs(positions - 0.5) <= level / 2
    low, high = wilson(inside.sum(), np.array(len(inside)))
    return float(inside.mean()), float(low), float(high)


def uniform_p(positions: np.ndarray) -> float:
    """Return the p value of a chi-square test that positions (n,) are uniform on [0, 1]."""
    bins = min(BINS, max(2, len(positions) // FEWEST))
    counts = np.bincount(np.minimum((positions * bins).astype(np.int64), bins - 1), minlength=bins)
    expected = len(positions) / bins
    return float(chdtrc(bins - 1, ((counts - expected) ** 2).sum() / expected))


def joint_p(p_values: np.ndarray) -> float:
    """Return one p value for several tests, whatever their dependence: the smallest times their number."""
    return float(min(1.0, p_values.min() * p_values.size))
