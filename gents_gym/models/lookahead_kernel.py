"""Compiles the value of further observations under the filter model, for each task and action on its own."""

import math

import numpy as np
from numba import njit

from gents_gym.numerics.series import decay32

_SHRINK = np.float32(math.pi / 8)
_ZERO, _ONE, _HALF, _TINY = np.float32(0), np.float32(1), np.float32(0.5), np.float32(1e-12)


@njit(cache=True, error_model="numpy")
def look_ahead_filter(
    binary: bool,
    scale: tuple[float, float],
    noise: float,
    row: np.ndarray,  # (B, K) float32
    rows: np.ndarray,  # (B, C, K) float32
    mean: np.ndarray,  # (B·A, K) float32
    covariance: np.ndarray,  # (B·A, K, K) float32
    counts: np.ndarray,  # (n,) float32
    nodes: np.ndarray,  # (g,) float32
    weights: np.ndarray,  # (g,) float32
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gains (B, A, n) and shares (B, A) of :class:`gents_gym.types.Outlook`.

    In a row c, an action's predictor x_c·β is N(s_c, v_c). An observation in the current row x reduces v_c by h·w_c²,
    w_c = x_cᵀPx, and k of them reduce it by g·w_c², g = kh / (1 + (k-1)vh); the mean moves by w_c·√g times a standard
    normal number, the same in all rows. For binary outcomes that number is integrated by ``nodes`` and ``weights``,
    except that the first observation's two outcomes are exact. For Gaussian outcomes the expected maximum has a closed
    form.

    Args:
        binary: Whether outcomes are 0 and 1, else Gaussian.
        scale: A pair (a, b): a reward is a + b·P(Y=1), or a + b times the predictor.
        noise: Variance of a Gaussian outcome around its predictor.
        row: The current context.
        rows: The imagined contexts.
        mean: Mean of the coefficients.
        covariance: Covariance of the coefficients.
        counts: Observations k, whole numbers.
        nodes: Nodes of a quadrature rule for N(0, 1).
        weights: Its weights.
    """
    n_tasks, n_rows, _ = rows.shape
    n_actions = len(mean) // n_tasks
    base, factor = np.float32(scale[0]), np.float32(scale[1])
    gains = np.zeros((n_tasks, n_actions, len(counts)), np.float32)
    shares = np.zeros((n_tasks, n_actions), np.float32)
    s, v, values = np.empty((3, n_actions, n_rows), np.float32)
    top, second, rival, w = np.empty((4, n_rows), np.float32)
    best, room = np.empty(n_rows, np.int64), np.empty((4, n_rows), np.float32)
    for b in range(n_tasks):
        for a in range(n_actions):
            _predict(rows[b], mean[b * n_actions + a], covariance[b * n_actions + a], s[a], v[a])
            _value(binary, base, factor, s[a], v[a], values[a])
        _rank(values, best, top, second)
        for a in range(n_actions):
            m, p = mean[b * n_actions + a], covariance[b * n_actions + a]
            centre, spread = _cross(row[b], rows[b], m, p, w)
            for c in range(n_rows):
                rival[c] = second[c] if best[c] == a else top[c]
                if best[c] == a:
                    shares[b, a] += min(w[c] * w[c] / max(spread * v[a, c], _TINY), _ONE) / n_rows
            if not binary:
                for i in range(len(counts)):
                    step = _step(counts[i], spread, _ONE / (spread + np.float32(noise)))
                    gains[b, a, i] = _gain_gaussian(step, factor, values[a], w, rival)
                continue
            shrink = _ONE / np.sqrt(_ONE + _SHRINK * spread)
            chance = _chance(centre * shrink)
            h = shrink * shrink * chance * (_ONE - chance)
            for i in range(len(counts)):
                g = _step(counts[i], spread, h)
                if counts[i] == _ONE:
                    ends = np.array([-shrink * chance, shrink * (_ONE - chance)])
                    parts = np.array([_ONE - chance, chance])
                    gains[b, a, i] = _gain_binary(g, ends, parts, base, factor, s[a], v[a], w, rival, room)
                else:
                    moves = nodes * np.sqrt(g)
                    gains[b, a, i] = _gain_binary(g, moves, weights, base, factor, s[a], v[a], w, rival, room)
    return gains, shares


@njit(cache=True, error_model="numpy")
def _step(count, spread, h):  # type: ignore[no-untyped-def]
    """Return g: k observations reduce a variance by g·w², one reduces it by h·w²."""
    return count * h / (_ONE + (count - _ONE) * max(spread * h, _ZERO))


@njit(cache=True, fastmath=True, error_model="numpy")
def _chance(logit):  # type: ignore[no-untyped-def]
    """Return σ of the logit."""
    e = decay32(logit)
    high = _ONE / (_ONE + e)
    return e * high if logit < _ZERO else high


@njit(cache=True, fastmath=True, error_model="numpy")
def _predict(rows, m, p, s, v):  # type: ignore[no-untyped-def]
    """Set mean and variance of the predictors in all rows."""
    for c in range(len(rows)):
        x, centre, spread = rows[c], _ZERO, _ZERO
        for k in range(len(m)):
            d = _HALF * p[k, k] * x[k]
            for j in range(k):
                d += p[k, j] * x[j]
            spread += (d + d) * x[k]
            centre += m[k] * x[k]
        s[c], v[c] = centre, max(spread, _ZERO)


@njit(cache=True, fastmath=True, error_model="numpy")
def _cross(x, rows, m, p, w):  # type: ignore[no-untyped-def]
    """Set w_c = x_cᵀPx, and return mean and variance of the predictor in the row x."""
    d, centre, spread = np.zeros_like(x), _ZERO, _ZERO
    for k in range(len(x)):
        for j in range(len(x)):
            d[k] += p[k, j] * x[j]
        centre += m[k] * x[k]
        spread += d[k] * x[k]
    for c in range(len(rows)):
        w[c] = _ZERO
        for k in range(len(x)):
            w[c] += d[k] * rows[c, k]
    return centre, max(spread, _ZERO)


@njit(cache=True, fastmath=True, error_model="numpy")
def _value(binary, base, factor, s, v, values):  # type: ignore[no-untyped-def]
    """Set the mean rewards for predictors with mean s and variance v."""
    for c in range(len(s)):
        values[c] = base + factor * (_chance(s[c] / np.sqrt(_ONE + _SHRINK * v[c])) if binary else s[c])


@njit(cache=True)
def _rank(values, best, top, second):  # type: ignore[no-untyped-def]
    """Set the best action of every row, its value and the value of the second best."""
    for c in range(len(best)):
        best[c], top[c], second[c] = 0, values[0, c], -np.inf
        for a in range(1, len(values)):
            if values[a, c] > top[c]:
                best[c], top[c], second[c] = a, values[a, c], top[c]
            elif values[a, c] > second[c]:
                second[c] = values[a, c]


@njit(cache=True, fastmath=True, error_model="numpy")
def _gain_binary(g, moves, weights, base, factor, s, v, w, rival, room):  # type: ignore[no-untyped-def]
    """Return the mean over rows of E[max(f, rival)] - max(E[f], rival), where f is the prediction after a move."""
    centre, step, mean, most = room
    for c in range(len(s)):
        shrink = _ONE / np.sqrt(_ONE + _SHRINK * max(v[c] - g * w[c] * w[c], _ZERO))
        centre[c], step[c], mean[c], most[c] = s[c] * shrink, w[c] * shrink, _ZERO, _ZERO
    for i in range(len(moves)):
        for c in range(len(s)):
            ahead = base + factor * _chance(centre[c] + step[c] * moves[i]) - rival[c]
            mean[c] += weights[i] * ahead
            most[c] += weights[i] * max(ahead, _ZERO)
    gain = _ZERO
    for c in range(len(s)):
        gain += most[c] - max(mean[c], _ZERO)
    return max(gain / np.float32(len(s)), _ZERO)


@njit(cache=True, error_model="numpy")
def _gain_gaussian(g, factor, values, w, rival):  # type: ignore[no-untyped-def]
    """Return the mean over rows of E[max(f, rival)] - max(E[f], rival) for Gaussian f, in closed form."""
    gain, size = 0.0, math.sqrt(g)
    for c in range(len(values)):
        deviation = abs(factor * w[c]) * size
        if deviation > 0:
            z = abs(values[c] - rival[c]) / deviation
            tail = 0.5 * math.erfc(z / math.sqrt(2.0))
            gain += deviation * max(math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) - z * tail, 0.0)
    return np.float32(gain / len(values))
