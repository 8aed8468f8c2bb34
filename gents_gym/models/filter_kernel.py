"""The filter model, compiled: its states take in what is observed, and complete tables, many actions at a time."""

import math

import numpy as np
from numba import njit

from gents_gym.numerics.series import decay32

LANES = 64  # actions side by side: their states stay in the first-level cache

_SHRINK = np.float32(math.pi / 8)
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(cache=True, fastmath=True, error_model="numpy")
def impute_filter(
    rows: np.ndarray,  # (B, T, K) float32
    played: np.ndarray,  # (B, T): the action observed in a row, -1 for none
    seen: np.ndarray,  # (B, T) float32: its outcome
    mean: np.ndarray,  # (B·A, K) float32: the states after all that was observed
    covariance: np.ndarray,  # (B·A, K, K) float32
    uniform: np.ndarray,  # (B, T, A) float32
) -> np.ndarray:
    """Return the tables (B, T, A): row after row, every missing outcome is drawn and absorbed."""
    n_tasks, n_rows, size = rows.shape
    n_actions = uniform.shape[2]
    table = np.empty((n_tasks, n_rows, n_actions), np.float32)
    m = np.empty((size, LANES), np.float32)
    p = np.empty((size * (size + 1) // 2, LANES), np.float32)  # the covariances' lower halves
    d, x = np.empty((size, LANES), np.float32), np.empty((size, LANES), np.float32)
    v, s = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    gain, weight = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    draw, missing = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    task, action = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for first in range(0, n_tasks * n_actions, LANES):
        n = min(LANES, n_tasks * n_actions - first)
        wide = (n + 7) // 8 * 8  # whole vector registers; what is left over idles at zero
        for a in range(n, wide):
            draw[a], missing[a] = _ONE, _ZERO
            for k in range(size):
                x[k, a] = m[k, a] = _ZERO
            for i in range(len(p)):
                p[i, a] = _ZERO
        for a in range(n):
            task[a], action[a] = (first + a) // n_actions, (first + a) % n_actions
            i = 0
            for k in range(size):
                m[k, a] = mean[first + a, k]
                for j in range(k + 1):
                    p[i, a] = covariance[first + a, k, j]
                    i += 1
        for t in range(n_rows):
            for a in range(n):
                for k in range(size):
                    x[k, a] = rows[task[a], t, k]
                draw[a] = uniform[task[a], t, action[a]]
                missing[a] = _ZERO if played[task[a], t] == action[a] else _ONE
            i = 0
            for k in range(size):  # d = Px
                dk, xk = d[k], x[k]
                for a in range(wide):
                    dk[a] = _ZERO
                for j in range(k):
                    dj, xj, pi = d[j], x[j], p[i]
                    for a in range(wide):
                        dk[a] += pi[a] * xj[a]
                        dj[a] += pi[a] * xk[a]
                    i += 1
                pi = p[i]
                for a in range(wide):
                    dk[a] += pi[a] * xk[a]
                i += 1
            for a in range(wide):
                v[a] = _ZERO
                s[a] = _ZERO
            for k in range(size):
                dk, xk, mk = d[k], x[k], m[k]
                for a in range(wide):
                    v[a] += dk[a] * xk[a]
                    s[a] += mk[a] * xk[a]
            for a in range(wide):
                shrink = _ONE / np.sqrt(_ONE + _SHRINK * v[a])
                logit = s[a] * shrink
                e = decay32(logit)
                high = _ONE / (_ONE + e)
                chance = high if logit >= _ZERO else e * high
                outcome = _ONE if draw[a] < chance else _ZERO
                draw[a] = outcome
                gain[a] = missing[a] * shrink * (outcome - chance)
                weight[a] = missing[a] * shrink * shrink * chance * (_ONE - chance)
            i = 0
            for k in range(size):
                dk, mk = d[k], m[k]
                for a in range(wide):
                    mk[a] += dk[a] * gain[a]
                    v[a] = weight[a] * dk[a]
                for j in range(k + 1):
                    dj, pi = d[j], p[i]
                    for a in range(wide):
                        pi[a] -= v[a] * dj[a]
                    i += 1
            for a in range(n):
                table[task[a], t, action[a]] = draw[a] if missing[a] > _ZERO else seen[task[a], t]
    return table


@njit(cache=True, fastmath=True, error_model="numpy")
def absorb_filter(
    rows: np.ndarray,  # (n, K) float32
    where: np.ndarray,  # (n,): the states that absorb
    outcome: np.ndarray,  # (n,) float32
    mean: np.ndarray,  # (B·A, K) float32
    covariance: np.ndarray,  # (B·A, K, K) float32
) -> None:
    """Absorb outcomes one after the other, in place."""
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
