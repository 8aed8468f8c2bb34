"""Compiles the training of many small networks; every inner loop runs along the units of a hidden layer.

A network has one hidden layer. Its unit j is one row of parameters: the bias, the weights of the context (and zeros, up
to a multiple of ``GROUP``), and the weight of the unit in the output. The loops have them transposed, in blocks of
``BLOCK`` units: entry k·BLOCK + u is parameter k of a block's unit u. The distance between two parameters of a unit is
then a constant, which the compiler needs to use vectors. The parameters of missing units are zeros and stay zeros.
"""

from typing import Any

import numpy as np
from numba import njit

from gents_gym.numerics.series import decay32

GROUP = 5  # features per loop, few enough that those of four rows stay in registers
BLOCK = 128  # units per block
LANES = 16  # loops run along a multiple of this many units, so that none has a slow remainder
CHUNK = 64  # rows per pass forward and back, a multiple of 4, few enough that their hidden layer stays in the cache

_ZERO, _ONE, _TINY = np.float32(0), np.float32(1), np.float32(1e-8)
# A unit that no row activates has only the penalty's gradient and shrinks for ever. Below this size, squares would
# become subnormal numbers, which processors multiply many times more slowly, and a step would be at most 1e-11.
_LEAST = np.float32(1e-17)
_KEEP_FIRST, _KEEP_SECOND = np.float32(0.9), np.float32(0.999)  # Adam's decays of the two moments
_NEW_FIRST, _NEW_SECOND = np.float32(0.1), np.float32(0.001)


@njit(cache=True, fastmath=True, error_model="numpy")
def train_networks(
    rows: np.ndarray,  # (B, T, K) float32, K a multiple of GROUP
    outcomes: np.ndarray,  # (B, A, T) float32
    counted: np.ndarray,  # (B, A, T) bool: the rows that count, or (0, 0, 0) for all
    wanted: np.ndarray,  # (B, A) bool: the networks to train
    units: np.ndarray,  # (B, A, W, K+2) float32: the start, and then the result
    biases: np.ndarray,  # (B, A) float32, of the output: the start, and then the result
    uniform: np.ndarray,  # (T, max_epochs): random numbers that determine the order of the rows
    penalty: float,
    rate: float,
    batch: int,
    tolerance: float,
    patience: int,
) -> np.ndarray:
    """Minimise the penalised log loss by Adam as scikit-learn does, and return the epochs it took, (B, A)."""
    n_tasks, n_actions, width, _ = units.shape
    work = _work(width, rows.shape[2])
    chosen = np.arange(rows.shape[1])
    orders, drawn = np.empty(uniform.T.shape, np.int64), 0  # the rows of each epoch, and how many epochs have them
    epochs = np.zeros((n_tasks, n_actions), np.int64)
    for b in range(n_tasks):
        for a in range(n_actions):
            if not wanted[b, a]:
                continue
            if len(counted) > 0:
                chosen, drawn = np.flatnonzero(counted[b, a]), 0
            epochs[b, a], biases[b, a] = _train(
                rows[b], outcomes[b, a], chosen, orders, drawn, units[b, a], biases[b, a], uniform,
                penalty, rate, batch, tolerance, patience, work,
            )  # fmt: skip
            drawn = max(drawn, epochs[b, a])
    return epochs


@njit(cache=True, fastmath=True, error_model="numpy")
def _work(width: int, size: int) -> Any:
    """Return memory for the C blocks of a network, and for a chunk of rows."""
    n_blocks = -(-width // BLOCK)
    return (
        np.zeros((4, n_blocks, (size + 2) * BLOCK), np.float32),  # parameters, their gradient, and its two moments
        np.zeros((n_blocks, CHUNK * BLOCK), np.float32),  # hidden layer
        np.zeros(4 * BLOCK, np.float32),  # sums of four rows
        np.zeros(CHUNK, np.float32),  # outcomes
        np.zeros(CHUNK, np.float32),  # outputs
    )


@njit(cache=True, fastmath=True, error_model="numpy")
def _train(x, y, chosen, orders, drawn, units, bias, uniform, penalty, rate, batch, tolerance, patience, work):  # type: ignore[no-untyped-def]
    """Train one network on the chosen rows, in place; return the epochs and the output's bias."""
    (parameters, hidden, sums, target, out), width, n = work, len(units), len(chosen)
    weights, gradient, moments = parameters[0], parameters[1], parameters[2:]
    moments[:] = _ZERO
    _pack(units, weights)
    first, second = _ZERO, _ZERO  # moments of the output bias's gradient
    left_first, left_second = 1.0, 1.0  # what is left of the moments' initial values
    best, stale, epoch = 1e300, 0, 0
    while epoch < uniform.shape[1] and stale <= patience:
        order = orders[epoch, :n]
        if epoch >= drawn:
            order[:] = chosen if epoch == 0 else orders[epoch - 1, :n]
            for i in range(n - 1, 0, -1):
                j = int(uniform[i, epoch] * (i + 1))
                order[i], order[j] = order[j], order[i]
        total = 0.0
        for start in range(0, n, batch):
            length, slope = min(batch, n - start), _ZERO
            gradient[:] = _ZERO
            for r in range(start, start + length, CHUNK):
                here = order[r : min(r + CHUNK, start + length)]
                for i in range(len(here)):
                    target[i] = y[here[i]]
                out[:] = _ZERO
                for c in range(len(weights)):
                    _forward(x, here, weights[c], _tiles(width, c), hidden[c], sums, out)
                total += _slopes(out, target, len(here), bias, _ONE / np.float32(length))
                for c in range(len(weights)):
                    _backward(x, here, _tiles(width, c), hidden[c], out, gradient[c])
                slope += out.sum()
            left_first *= 0.9
            left_second *= 0.999
            step = np.float32(rate * np.sqrt(1 - left_second) / (1 - left_first))
            decay = np.float32(penalty / length)
            for c in range(len(weights)):
                m, s = moments[0, c], moments[1, c]
                total += 0.5 * penalty * _move(weights[c], gradient[c], m, s, _tiles(width, c), decay, step)
            first = _KEEP_FIRST * first + _NEW_FIRST * slope
            second = _KEEP_SECOND * second + _NEW_SECOND * slope * slope
            bias -= step * first / (np.sqrt(second) + _TINY)
        stale = stale + 1 if total / n > best - tolerance else 0
        best = min(best, total / n)
        epoch += 1
    for j in range(width):
        for k in range(units.shape[1]):
            units[j, k] = weights[j // BLOCK, k * BLOCK + j % BLOCK]
    return epoch, bias


@njit(cache=True, fastmath=True, error_model="numpy")
def _pack(units: np.ndarray, weights: np.ndarray) -> None:
    """Write the units' parameters, (W, K+2), as blocks."""
    for j in range(units.shape[0]):
        for k in range(units.shape[1]):
            weights[j // BLOCK, k * BLOCK + j % BLOCK] = units[j, k]


@njit(cache=True, fastmath=True, error_model="numpy")
def _tiles(width: int, c: int) -> Any:
    """Return the number of units of a network's block c, in ``LANES``, rounded up."""
    return -(-min(width - c * BLOCK, BLOCK) // LANES)


@njit(cache=True, fastmath=True, error_model="numpy")
def _four(x: np.ndarray, here: np.ndarray, q: int, k: int) -> Any:
    """Return ``GROUP`` features from k on, of the four rows from q on; if there are fewer, the last row again."""
    last = len(here) - 1
    i, j, m, n = here[q], here[min(q + 1, last)], here[min(q + 2, last)], here[min(q + 3, last)]
    return (
        (x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3], x[i, k + 4]),
        (x[j, k], x[j, k + 1], x[j, k + 2], x[j, k + 3], x[j, k + 4]),
        (x[m, k], x[m, k + 1], x[m, k + 2], x[m, k + 3], x[m, k + 4]),
        (x[n, k], x[n, k + 1], x[n, k + 2], x[n, k + 3], x[n, k + 4]),
    )


@njit(cache=True, fastmath={"contract", "nnan", "nsz"}, error_model="numpy")
def _add(s: Any, x: Any, w: Any) -> Any:
    """Return s + x·w, summed in this order, so that a row has the same output in each of the four places."""
    return s + x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3] + x[4] * w[4]


@njit(cache=True, fastmath=True, error_model="numpy")
def _forward(
    x: np.ndarray,  # (T, K)
    here: np.ndarray,  # (n,): rows of x, at most CHUNK
    w: np.ndarray,  # ((K+2)·BLOCK,): one block
    tiles: int,  # units of the block, in LANES
    hidden: np.ndarray,  # (CHUNK·BLOCK,)
    sums: np.ndarray,  # (4·BLOCK,): scratch memory
    out: np.ndarray,  # (CHUNK,), without the output's bias
) -> None:
    """Write the hidden layer of a block's units, and add what they contribute to the output."""
    size = x.shape[1]
    last = w[(size + 1) * BLOCK :]
    for q in range(0, len(here), 4):
        if q == 0 or size > GROUP:
            for u in range(BLOCK):
                sums[u] = sums[BLOCK + u] = sums[2 * BLOCK + u] = sums[3 * BLOCK + u] = w[u]
        for k in range(GROUP, size, GROUP):
            (a, b, c, d), v = _four(x, here, q, k), w[(k + 1) * BLOCK :]
            for u in range(tiles * LANES):
                five = v[u], v[BLOCK + u], v[2 * BLOCK + u], v[3 * BLOCK + u], v[4 * BLOCK + u]
                sums[u] = _add(sums[u], a, five)
                sums[BLOCK + u] = _add(sums[BLOCK + u], b, five)
                sums[2 * BLOCK + u] = _add(sums[2 * BLOCK + u], c, five)
                sums[3 * BLOCK + u] = _add(sums[3 * BLOCK + u], d, five)
        (a, b, c, d), h = _four(x, here, q, 0), hidden[q * BLOCK :]
        out_a = out_b = out_c = out_d = _ZERO
        for u in range(tiles * LANES):
            five = w[BLOCK + u], w[2 * BLOCK + u], w[3 * BLOCK + u], w[4 * BLOCK + u], w[5 * BLOCK + u]
            h_a = max(_add(sums[u], a, five), _ZERO)
            h_b = max(_add(sums[BLOCK + u], b, five), _ZERO)
            h_c = max(_add(sums[2 * BLOCK + u], c, five), _ZERO)
            h_d = max(_add(sums[3 * BLOCK + u], d, five), _ZERO)
            h[u], h[BLOCK + u], h[2 * BLOCK + u], h[3 * BLOCK + u] = h_a, h_b, h_c, h_d
            out_a += h_a * last[u]
            out_b += h_b * last[u]
            out_c += h_c * last[u]
            out_d += h_d * last[u]
        out[q] += out_a
        out[q + 1] += out_b
        out[q + 2] += out_c
        out[q + 3] += out_d


@njit(cache=True, fastmath=True, error_model="numpy")
def _slopes(out: np.ndarray, target: np.ndarray, n: int, bias: Any, share: Any) -> Any:
    """Overwrite the n outputs with the loss's derivatives, and return the sum of the log losses."""
    product, rest = 1.0, _ZERO  # log Π(1 + e) is Σ log(1 + e), and 2^CHUNK fits into a float64
    for r in range(n):
        logit = out[r] + bias
        e = decay32(logit)
        product *= _ONE + e
        high = _ONE / (_ONE + e)
        chance = high if logit >= _ZERO else e * high
        rest += max(logit, _ZERO) - target[r] * logit
        out[r] = (chance - target[r]) * share
    out[n:] = _ZERO
    return np.log(product) + rest


@njit(cache=True, fastmath=True, error_model="numpy")
def _backward(x, here, tiles, hidden, slopes, gradient):  # type: ignore[no-untyped-def]
    """Add, for the bias and each feature, the sum of slope times feature over the rows that activate a unit."""
    size = x.shape[1]
    for q in range(0, len(here), 4):
        s_a, s_b, s_c, s_d = slopes[q], slopes[q + 1], slopes[q + 2], slopes[q + 3]
        h = hidden[q * BLOCK :]
        for k in range(0, size, GROUP):
            (a, b, c, d), g = _four(x, here, q, k), gradient[k * BLOCK :]
            ones = _ONE if k == 0 else _ZERO  # before later groups there is no bias, but a feature that is done
            for u in range(tiles * LANES):
                t_a = s_a if h[u] > _ZERO else _ZERO
                t_b = s_b if h[BLOCK + u] > _ZERO else _ZERO
                t_c = s_c if h[2 * BLOCK + u] > _ZERO else _ZERO
                t_d = s_d if h[3 * BLOCK + u] > _ZERO else _ZERO
                g[u] += ones * (t_a + t_b + t_c + t_d)
                g[BLOCK + u] += t_a * a[0] + t_b * b[0] + t_c * c[0] + t_d * d[0]
                g[2 * BLOCK + u] += t_a * a[1] + t_b * b[1] + t_c * c[1] + t_d * d[1]
                g[3 * BLOCK + u] += t_a * a[2] + t_b * b[2] + t_c * c[2] + t_d * d[2]
                g[4 * BLOCK + u] += t_a * a[3] + t_b * b[3] + t_c * c[3] + t_d * d[3]
                g[5 * BLOCK + u] += t_a * a[4] + t_b * b[4] + t_c * c[4] + t_d * d[4]


@njit(cache=True, fastmath=True, error_model="numpy")
def _move(w, gradient, first, second, tiles, decay, step):  # type: ignore[no-untyped-def]
    """Take Adam's step of a block, and return the sum of the penalised parameters' squares before it."""
    squares, last = _ZERO, len(w) - BLOCK
    up, slopes = w[last:], gradient[last:]
    slopes[:] = _ZERO
    for k in range(0, last + 1, BLOCK):
        v, g, m, s = w[k:], gradient[k:], first[k:], second[k:]
        if k < last:
            for u in range(tiles * LANES):
                # An active unit's value is Σ weight·feature, so Σ slope·value is the weighted sum of those sums.
                slopes[u] += v[u] * g[u]
                g[u] *= up[u]
        if k > 0:  # the bias has no penalty
            for u in range(tiles * LANES):
                squares += v[u] * v[u]
                g[u] += decay * v[u]
        for u in range(tiles * LANES):
            d = g[u] if abs(g[u]) > _LEAST else _ZERO
            f = _KEEP_FIRST * m[u] + _NEW_FIRST * d
            m[u] = f if abs(f) > _LEAST else _ZERO
            s[u] = _KEEP_SECOND * s[u] + _NEW_SECOND * d * d
            v[u] -= step * m[u] / (np.sqrt(s[u]) + _TINY)
    return squares


@njit(cache=True, fastmath=True, error_model="numpy")
def network_logits(rows: np.ndarray, units: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Return the networks' log odds, (B, T, K) to (B, T, A)."""
    n_tasks, n_rows, size = rows.shape
    n_actions, width = units.shape[1:3]
    parameters, hidden, sums, _, out = _work(width, size)
    logits, order = np.empty((n_tasks, n_rows, n_actions), np.float32), np.arange(n_rows)
    for b in range(n_tasks):
        for a in range(n_actions):
            _pack(units[b, a], parameters[0])
            for start in range(0, n_rows, CHUNK):
                here = order[start : start + CHUNK]
                out[:] = _ZERO
                for c in range(len(hidden)):
                    _forward(rows[b], here, parameters[0, c], _tiles(width, c), hidden[c], sums, out)
                for r in range(len(here)):
                    logits[b, start + r, a] = out[r] + biases[b, a]
    return logits
