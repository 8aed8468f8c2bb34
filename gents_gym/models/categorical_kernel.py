"""Updates a filter's predictors given categorical outcomes by weighting a rule's nodes; compiled for many actions."""

import numpy as np
from numba import njit

from gents_gym.models.moments_kernel import LEAST_SPREAD
from gents_gym.numerics.series import decay32

# All of fast-math would estimate quotients and roots, differently in full registers and in the remainder.
CONTRACT = {"contract"}

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(LEAST_SPREAD)


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def react_categorical(wide, draws, nodes, shares, s, v, d, y, counts, gain, weight, room, chance):  # type: ignore[no-untyped-def]
    """Set gain and weight for outcomes y, and d to d·L⁻ᵀ; with ``draws``, uniform numbers become outcomes first.

    v becomes L, its lower root; ``chance`` (n·C) becomes the joint probabilities of nodes and outcomes.
    """
    q = len(s)
    total, own = room[0], room[1]
    if draws:
        _spoil(wide, s, v, y)
    _take_root(wide, v, q)
    _divide(wide, v, d, q)
    _weigh_nodes(wide, nodes, shares, s, v, chance, gain, total)
    if draws:
        _draw(wide, chance, 1 + q, y, total, own)
    for j in range(q):
        for a in range(wide):
            gain[j, a] = _ZERO
    for ww in weight:
        for a in range(wide):
            ww[a] = _ZERO
    for a in range(wide):
        total[a] = _ZERO
    for i in range(len(nodes)):
        for a in range(wide):
            own[a] = _ZERO
        for c in range(1 + q):
            cc, wanted = chance[i * (1 + q) + c], np.float32(c)
            for a in range(wide):
                own[a] += cc[a] if y[a] == wanted else _ZERO
        for a in range(wide):
            total[a] += own[a]
        for j in range(q):
            gj, z = gain[j], nodes[i, j]
            for a in range(wide):
                gj[a] += own[a] * z
            for h in range(j + 1):
                wj, zz = weight[j * q + h], z * nodes[i, h]
                for a in range(wide):
                    wj[a] += own[a] * zz
    for a in range(wide):
        total[a] = _ONE / total[a]
    for gj in gain:
        for a in range(wide):
            gj[a] *= total[a]  # z̄
    for j in range(q):
        for h in range(j + 1):
            wj, wh, gj, gh, same = weight[j * q + h], weight[h * q + j], gain[j], gain[h], _ONE if j == h else _ZERO
            for a in range(wide):
                wj[a] = counts[a] * (same - wj[a] * total[a] + gj[a] * gh[a])  # I - C
                wh[a] = wj[a]
    for gj in gain:
        for a in range(wide):
            gj[a] *= counts[a]


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _spoil(wide, s, v, y):  # type: ignore[no-untyped-def]
    """Set y to NaN if a moment of the predictors is not finite, which the comparisons below would not show."""
    for sj in s:
        for a in range(wide):
            y[a] += _ZERO * sj[a]
    for vj in v:
        for a in range(wide):
            y[a] += _ZERO * vj[a]


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _take_root(wide, v, q):  # type: ignore[no-untyped-def]
    """Replace the lower half of v with its root L; pivots that are too small become ``LEAST_SPREAD``."""
    for j in range(q):
        for i in range(j + 1):
            left = v[j * q + i]
            for k in range(i):
                vj, vi = v[j * q + k], v[i * q + k]
                for a in range(wide):
                    left[a] -= vj[a] * vi[a]
            pivot = v[i * q + i]
            for a in range(wide):
                left[a] = left[a] / pivot[a] if i < j else np.sqrt(max(left[a], _LEAST))


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _divide(wide, lower, d, q):  # type: ignore[no-untyped-def]
    """Replace d by d·L⁻ᵀ."""
    for k in range(0, len(d), q):
        for j in range(q):
            left, pivot = d[k + j], lower[j * q + j]
            for i in range(j):
                di, li = d[k + i], lower[j * q + i]
                for a in range(wide):
                    left[a] -= di[a] * li[a]
            for a in range(wide):
                left[a] /= pivot[a]


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _weigh_nodes(wide, nodes, shares, s, lower, chance, predictors, top):  # type: ignore[no-untyped-def]
    """Set the joint probabilities of nodes and outcomes, w_i softmax(0, s + Lz_i)."""
    q = len(s)
    for i in range(len(nodes)):
        for a in range(wide):
            top[a] = _ZERO
        for j in range(q):
            pj, sj = predictors[j], s[j]
            for a in range(wide):
                pj[a] = sj[a]
            for h in range(j + 1):
                lh, z = lower[j * q + h], nodes[i, h]
                for a in range(wide):
                    pj[a] += lh[a] * z
            for a in range(wide):
                top[a] = max(top[a], pj[a])
        base = chance[i * (1 + q)]
        for a in range(wide):
            base[a] = decay32(top[a])
        for j in range(q):
            pj, cj = predictors[j], chance[i * (1 + q) + 1 + j]
            for a in range(wide):
                cj[a] = decay32(top[a] - pj[a])
        for a in range(wide):
            top[a] = base[a]
        for j in range(q):
            cj = chance[i * (1 + q) + 1 + j]
            for a in range(wide):
                top[a] += cj[a]
        for a in range(wide):
            top[a] = shares[i] / top[a]
        for c in range(1 + q):
            cc = chance[i * (1 + q) + c]
            for a in range(wide):
                cc[a] *= top[a]


@njit(cache=True, fastmath=CONTRACT, error_model="numpy")
def _draw(wide, chance, n_outcomes, y, uniform, ceiling):  # type: ignore[no-untyped-def]
    """Replace uniform numbers y with outcomes: the number of cumulated probabilities that they reach; NaN stays NaN."""
    for a in range(wide):
        uniform[a], ceiling[a] = y[a], _ZERO
        y[a] *= _ZERO
    for c in range(n_outcomes - 1):
        for i in range(c, len(chance), n_outcomes):
            cc = chance[i]
            for a in range(wide):
                ceiling[a] += cc[a]
        for a in range(wide):
            y[a] += _ONE if uniform[a] >= ceiling[a] else _ZERO
