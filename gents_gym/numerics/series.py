"""Computes the exponential by sums and products, which compiled loops vectorise, without library calls."""

from typing import Any

import numpy as np
from numba import njit

_ONE, _PART, _FAR = np.float32(1), np.float32(1 / 64), np.float32(30)
_HALF, _THIRD, _FOURTH, _FIFTH, _SIXTH = (np.float32(1 / n) for n in (2, 3, 4, 5, 6))


@njit(cache=True, fastmath=True, error_model="numpy")
def decay32(x: Any) -> Any:
    """Return e^-|x| in float32, with |x| clipped at 30: (e^(-|x|/64))^64, the inner one by its series."""
    y = -min(abs(x), _FAR) * _PART
    e = _ONE + y * (_ONE + y * _HALF * (_ONE + y * _THIRD * (_ONE + y * _FOURTH * (_ONE + y * _FIFTH * (
        _ONE + y * _SIXTH)))))  # fmt: skip
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e


@njit(cache=True, fastmath=True, error_model="numpy")
def decay64(x: Any) -> Any:
    """Return e^-|x| in float64, with |x| clipped at 40: (e^(-|x|/64))^64, the inner one by its series."""
    y = -min(abs(x), 40.0) / 64
    e = 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7 * (1 + y / 8 * (
        1 + y / 9 * (1 + y / 10)))))))))  # fmt: skip
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e
