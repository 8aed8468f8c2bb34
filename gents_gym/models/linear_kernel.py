"""Compiles the filters of Gaussian and categorical outcomes, which absorb outcomes and complete tables in lanes.

The belief about an action's Q linear predictors is N(m, P) over Q·K coefficients; only the lower half of P is kept.
Actions are contiguous in the last axis of every array, so one instruction processes many of them.
"""

import numpy as np
from numba import njit

from gents_gym.models.categorical_kernel import CONTRACT, react_categorical

LANES = 64  # actions side by side: their states stay in the first-level cache
GAUSSIAN, CATEGORICAL = 0, 1

_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def run_linear(
    form: int,  # GAUSSIAN or CATEGORICAL
    noise: float,  # variance of Gaussian outcomes
    shift: float,  # an outcome is shift + unit · its value inside the filter
    unit: float,
    nodes: np.ndarray,  # (n, Q) float32: the rule of categorical outcomes
    shares: np.ndarray,  # (n,) float32: its weights
    draws: bool,
    rows: np.ndarray,  # (B, T, K) float32
    played: np.ndarray,  # (B, T): the action observed in a row, which absorbs nothing there; -1 for none
    seen: np.ndarray,  # (B, T) float32: its outcome
    states: np.ndarray,  # (B·A,): where the actions' states lie
    mean: np.ndarray,  # (N, Q·K) float32: states after all that was observed
    covariance: np.ndarray,  # (N, Q·K, Q·K) float32
    numbers: np.ndarray,  # (B, T, A) float32: the likelihood's random numbers, or outcomes as the filter calls them
    kept: np.ndarray,  # (B, T, A) float32: what states keep since the previous row; empty: everything
    prior_mean: np.ndarray,  # (N, Q·K) float32: the mean that states return to; empty if they do not drift
    prior_covariance: np.ndarray,  # (N, Q·K, Q·K) float32
) -> np.ndarray:
    """Absorb row by row, and return the tables (B, T, A).

    With ``draws``, outcomes are drawn and the states stay unchanged. Without it, outcomes are given and the states
    change.
    """
    n_tasks, n_rows, size = rows.shape
    n_actions, n_states = numbers.shape[2], len(states)
    table = np.empty((n_tasks, n_rows, n_actions), np.float32)
    lanes = _make_lanes(size, mean.shape[1], len(shares))
    x, m, p = lanes[:3]
    forgets = kept.size > 0
    share, first_m, first_p = np.ones(LANES, np.float32), np.empty_like(m), np.empty_like(p)
    y, counts = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    task, action = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for first in range(0, n_states, LANES):
        own = states[first : first + LANES]
        n = len(own)
        wide = (n + 7) // 8 * 8  # whole vector registers; unused lanes stay at zero
        x[:], y[:], counts[:] = _ZERO, _ZERO, _ZERO
        for a in range(n):
            task[a], action[a] = (first + a) // n_actions, (first + a) % n_actions
        _load(own, wide, mean, covariance, m, p)
        if forgets:
            _load(own, wide, prior_mean, prior_covariance, first_m, first_p)
        for t in range(n_rows):
            if forgets:
                for a in range(n):
                    share[a] = kept[task[a], t, action[a]]
                _forget(wide, share, first_m, first_p, m, p)
            for a in range(n):
                for k in range(size):
                    x[k, a] = rows[task[a], t, k]
                y[a] = numbers[task[a], t, action[a]]
                counts[a] = _ZERO if played[task[a], t] == action[a] else _ONE
            _step(form, draws, np.float32(noise), nodes, shares, wide, lanes, y, counts)
            for a in range(n):
                came = np.float32(shift) + np.float32(unit) * y[a]
                table[task[a], t, action[a]] = came if counts[a] > _ZERO else seen[task[a], t]
        if not draws:
            _store(own, m, p, mean, covariance)
    return table


@njit(cache=True)
def _make_lanes(size, n_coefficients, n_nodes):  # type: ignore[no-untyped-def]
    """Return lanes for x (K), m (Q·K), half of P, d (Q·K·Q), s (Q), v (Q·Q), gain (Q), weight (Q·Q) and two buffers."""
    q = n_coefficients // size
    half = n_coefficients * (n_coefficients + 1) // 2
    return (
        np.empty((size, LANES), np.float32),
        np.empty((n_coefficients, LANES), np.float32),
        np.empty((half, LANES), np.float32),
        np.empty((n_coefficients * q, LANES), np.float32),
        np.empty((q, LANES), np.float32),
        np.empty((q * q, LANES), np.float32),
        np.empty((q, LANES), np.float32),
        np.empty((q * q, LANES), np.float32),
        np.empty((2 + q, LANES), np.float32),
        np.empty((n_nodes * (1 + q), LANES), np.float32),
    )


@njit(cache=True)
def _load(states, wide, mean, covariance, m, p):  # type: ignore[no-untyped-def]
    """Copy states into lanes; lanes without a state are zero."""
    n = len(states)
    m[:, n:wide], p[:, n:wide] = _ZERO, _ZERO
    for a in range(n):
        i = 0
        for k in range(len(m)):
            m[k, a] = mean[states[a], k]
            for j in range(k + 1):
                p[i, a] = covariance[states[a], k, j]
                i += 1


@njit(cache=True)
def _store(states, m, p, mean, covariance):  # type: ignore[no-untyped-def]
    """Copy lanes back into states."""
    for a in range(len(states)):
        i = 0
        for k in range(len(m)):
            mean[states[a], k] = m[k, a]
            for j in range(k + 1):
                covariance[states[a], k, j] = covariance[states[a], j, k] = p[i, a]
                i += 1


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _forget(wide, kept, first_m, first_p, m, p):  # type: ignore[no-untyped-def]
    """Move m and P back towards the prior: κ and κ² of the difference are kept."""
    for k in range(len(m)):
        mk, fk = m[k], first_m[k]
        for a in range(wide):
            mk[a] = fk[a] + kept[a] * (mk[a] - fk[a])
    for i in range(len(p)):
        pi, fi = p[i], first_p[i]
        for a in range(wide):
            pi[a] = fi[a] + kept[a] * kept[a] * (pi[a] - fi[a])


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _step(form, draws, noise, nodes, shares, wide, lanes, y, counts):  # type: ignore[no-untyped-def]
    """Absorb outcomes y if ``counts`` is 1; with ``draws``, y holds random numbers that become outcomes first."""
    x, m, p, d, s, v, gain, weight, room, chance = lanes
    _read(wide, x, m, p, d, s, v)
    if form == GAUSSIAN:
        _react_gaussian(wide, draws, noise, s, v, y, counts, gain, weight)
    else:
        react_categorical(wide, draws, nodes, shares, s, v, d, y, counts, gain, weight, room, chance)
    _write(wide, d, gain, weight, m, p, room)


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _read(wide, x, m, p, d, s, v):  # type: ignore[no-untyped-def]
    """Set d = PX for X = I_Q ⊗ x, and the predictors' moments s = Xᵀm and v = XᵀPX."""
    size, q = len(x), len(s)
    for dk in d:
        for a in range(wide):
            dk[a] = _ZERO
    i = 0
    for own in range(q):
        for k in range(size):
            xk = x[k]
            for other in range(own + 1):
                dk = d[(own * size + k) * q + other]
                for j in range(size if other < own else k):
                    pi, xj, dj = p[i], x[j], d[(other * size + j) * q + own]
                    for a in range(wide):
                        dk[a] += pi[a] * xj[a]
                        dj[a] += pi[a] * xk[a]
                    i += 1
            pi, dk = p[i], d[(own * size + k) * q + own]
            for a in range(wide):
                dk[a] += pi[a] * xk[a]
            i += 1
    for own in range(q):
        _sum_products(wide, m, own * size, 1, x, s[own])
        for j in range(q):
            _sum_products(wide, d, own * size * q + j, q, x, v[own * q + j])


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _sum_products(wide, values, first, step, x, total):  # type: ignore[no-untyped-def]
    """Set total = Σ_k values[first + step·k]·x_k."""
    for a in range(wide):
        total[a] = _ZERO
    for k in range(len(x)):
        vk, xk = values[first + step * k], x[k]
        for a in range(wide):
            total[a] += vk[a] * xk[a]


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _write(wide, d, gain, weight, m, p, row):  # type: ignore[no-untyped-def]
    """Set m += d·gain and P −= d·weight·dᵀ; ``row`` is a buffer for one row of d·weight."""
    q = len(gain)
    i = 0
    for k in range(len(m)):
        mk = m[k]
        for j in range(q):
            dj, gj = d[k * q + j], gain[j]
            for a in range(wide):
                mk[a] += dj[a] * gj[a]
            rj, d0, w0 = row[j], d[k * q], weight[j]
            for a in range(wide):
                rj[a] = d0[a] * w0[a]
            for h in range(1, q):
                dh, wh = d[k * q + h], weight[h * q + j]
                for a in range(wide):
                    rj[a] += dh[a] * wh[a]
        for h in range(k + 1):
            pi = p[i]
            for j in range(q):
                rj, dj = row[j], d[h * q + j]
                for a in range(wide):
                    pi[a] -= rj[a] * dj[a]
            i += 1


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _react_gaussian(wide, draws, noise, s, v, y, counts, gain, weight):  # type: ignore[no-untyped-def]
    """Set gain and weight for outcomes y; with ``draws``, y holds standard normals that become outcomes first."""
    s0, v0, gain0, weight0 = s[0], v[0], gain[0], weight[0]
    for a in range(wide):
        sound = not v0[a] <= _ZERO  # rounding can make it negative if nothing is left to learn; a NaN must show
        variance = (v0[a] if sound else _ZERO) + noise
        if draws:
            y[a] = s0[a] + np.sqrt(variance) * y[a]
        weight0[a] = counts[a] / variance if sound else _ZERO
        gain0[a] = weight0[a] * (y[a] - s0[a])
