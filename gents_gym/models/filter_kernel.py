"""Compiles the filter model: its states absorb what is observed, and complete tables, for many actions at a time."""

import math

import numpy as np
from numba import njit

from gents_gym.numerics.lanes import WIDTH, fill, load, root, store, where_less
from gents_gym.numerics.series import decay32

_SHRINK = np.float32(math.pi / 8)
_ZERO, _ONE, _TINY = np.float32(0), np.float32(1), np.float32(1e-12)
_EXPONENT = np.int32(0x7F800000)  # bits that are all set in infinities and NaN
_KNOWN = np.float32(2)  # replaces a random number if the outcome was observed


@njit(cache=True, fastmath=True, error_model="numpy")
def impute_filter(
    rows: np.ndarray,  # (B, T, K) float32
    played: np.ndarray,  # (B, T): the action observed in a row, -1 for none
    seen: np.ndarray,  # (B, T) float32: its outcome
    mean: np.ndarray,  # (B·A, K) float32: the states after all that was observed
    covariance: np.ndarray,  # (B·A, K, K) float32
    uniform: np.ndarray,  # (B, T, A) float32
    kept: np.ndarray,  # (B, T, A) float32: what states keep since the previous row; empty: everything
    prior_mean: np.ndarray,  # (B·A, K) float32: the mean that states return to; empty if they do not drift
    prior_covariance: np.ndarray,  # (B·A, K, K) float32
) -> np.ndarray:
    """Return the tables (B, T, A): row by row, every missing outcome is drawn and absorbed.

    The last row is NaN for an action with a logit that is not finite, which outcomes would not show.

    Actions of a task are processed side by side, one in each lane; tasks with few actions share lanes. Unused lanes
    stay at zero.
    """
    n_tasks, n_rows, size = rows.shape
    n_actions = uniform.shape[2]
    side = max(1, WIDTH // n_actions)  # tasks that share lanes
    table = np.empty((n_tasks, n_rows, n_actions), np.float32)
    m, p = np.empty(size * WIDTH, np.float32), np.empty(size * size * WIDTH, np.float32)  # only the lower half of p
    d, x = np.empty(size * WIDTH, np.float32), np.empty(size * 2 * WIDTH, np.float32)
    draw = np.ones(WIDTH, np.float32)
    forgets = kept.size > 0
    share = np.ones(WIDTH, np.float32)
    first_m, first_p = np.zeros_like(m), np.zeros_like(p)
    for begin in range(0, n_tasks, side):
        end = min(begin + side, n_tasks)
        for first in range(0, n_actions, WIDTH):
            n = min(WIDTH, n_actions - first)
            for a in range(WIDTH):
                there, idle = begin * n_actions + first + a, a >= n * (end - begin)
                for k in range(size):
                    m[k * WIDTH + a] = _ZERO if idle else mean[there, k]
                    for j in range(k + 1):
                        p[(k * size + j) * WIDTH + a] = _ZERO if idle else covariance[there, k, j]
            if forgets:
                share[:] = _ONE
                for a in range(n * (end - begin)):
                    there = begin * n_actions + first + a
                    for k in range(size):
                        first_m[k * WIDTH + a] = prior_mean[there, k]
                        for j in range(k + 1):
                            first_p[(k * size + j) * WIDTH + a] = prior_covariance[there, k, j]
            logits = fill(_ZERO)  # their sum, scaled down so that finite ones have a finite sum
            for t in range(n_rows):
                for b in range(begin, end):
                    at, known = (b - begin) * n_actions, played[b, t] - first
                    for k in range(size):  # the next task's lanes follow, so what is filled beyond n does not count
                        store(x, k * 2 * WIDTH + at, fill(rows[b, t, k]))
                    for a in range(n):
                        draw[at + a] = uniform[b, t, first + a]
                    if 0 <= known < n:
                        draw[at + known] = _KNOWN
                if forgets:
                    for b in range(begin, end):
                        for a in range(n):
                            share[(b - begin) * n_actions + a] = kept[b, t, first + a]
                    _forget(size, share, first_m, first_p, m, p)
                v, s = fill(_ZERO), fill(_ZERO)
                for k in range(size):  # d = Px
                    dk, xk = fill(_ZERO), load(x, k * 2 * WIDTH)
                    for j in range(k):
                        dk += load(p, (k * size + j) * WIDTH) * load(x, j * 2 * WIDTH)
                    for j in range(k, size):
                        dk += load(p, (j * size + k) * WIDTH) * load(x, j * 2 * WIDTH)
                    store(d, k * WIDTH, dk)
                    v += dk * xk
                    s += load(m, k * WIDTH) * xk
                shrink = _ONE / root(_ONE + _SHRINK * v)
                logit = s * shrink
                logits += logit * _TINY
                e = decay32(logit)
                high = _ONE / (_ONE + e)
                chance = where_less(logit, _ZERO, e * high, high)
                drawn = load(draw, 0)
                outcome = where_less(drawn, chance, _ONE, _ZERO)
                store(draw, 0, outcome)
                shrink = where_less(drawn, _KNOWN, shrink, _ZERO)  # nothing more is learned from it
                gain = shrink * (outcome - chance)
                weight = shrink * shrink * chance * (_ONE - chance)
                for k in range(size):
                    dk = load(d, k * WIDTH)
                    store(m, k * WIDTH, load(m, k * WIDTH) + dk * gain)
                    dk *= weight
                    for j in range(k + 1):
                        store(p, (k * size + j) * WIDTH, load(p, (k * size + j) * WIDTH) - dk * load(d, j * WIDTH))
                for b in range(begin, end):
                    at, known = (b - begin) * n_actions, played[b, t] - first
                    for a in range(n):
                        table[b, t, first + a] = draw[at + a]
                    if 0 <= known < n:
                        table[b, t, first + known] = seen[b, t]
            store(d, 0, logits)
            bits = d.view(np.int32)  # fast-math may assume that floats are finite, so bits are compared
            for b in range(begin, end):
                for a in range(n):
                    if bits[(b - begin) * n_actions + a] & _EXPONENT == _EXPONENT:
                        table[b, n_rows - 1, first + a] = np.nan
    return table


@njit(cache=True, fastmath=True, error_model="numpy")
def _forget(size, kept, first_m, first_p, m, p):  # type: ignore[no-untyped-def]
    """Move m and P back towards the prior: κ and κ² of the difference are kept."""
    share = load(kept, 0)
    for k in range(size):
        at = k * WIDTH
        store(m, at, load(first_m, at) + share * (load(m, at) - load(first_m, at)))
        for j in range(k + 1):
            at = (k * size + j) * WIDTH
            store(p, at, load(first_p, at) + share * share * (load(p, at) - load(first_p, at)))


@njit(cache=True, fastmath=True, error_model="numpy")
def absorb_filter(
    rows: np.ndarray,  # (n, K) float32
    where: np.ndarray,  # (n,): the states that absorb
    outcome: np.ndarray,  # (n,) float32
    mean: np.ndarray,  # (B·A, K) float32
    covariance: np.ndarray,  # (B·A, K, K) float32
) -> None:
    """Absorb outcomes one at a time, in place."""
    for b in range(len(rows)):
        x, m, p = rows[b], mean[where[b]], covariance[where[b]]
        direction = np.zeros_like(x)
        spread = logit = _ZERO
        for k in range(len(x)):
            for j in range(len(x)):
                direction[k] += p[k, j] * x[j]
            spread += direction[k] * x[k]
            logit += m[k] * x[k]
        shrink = _ONE / np.sqrt(_ONE + _SHRINK * spread)
        chance = _ONE / (_ONE + np.exp(-logit * shrink))
        weight = shrink * shrink * chance * (_ONE - chance)
        for k in range(len(x)):
            m[k] += direction[k] * shrink * (outcome[b] - chance)
            for j in range(len(x)):
                p[k, j] -= weight * direction[k] * direction[j]
