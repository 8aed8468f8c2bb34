"""Compiles the training of many small networks; every inner loop runs along a batch's rows.

A network has one hidden layer. Its unit j is one row of parameters: the bias, the weights of the context (and zeros, up
to a multiple of ``GROUP``), and the weight of the unit in the output.
"""

from typing import Any

import numpy as np
from numba import njit

from gents_gym.numerics.series import decay32

GROUP = 5  # features per loop, few enough that their sums stay in registers
LANES = 8  # batches are padded to a multiple of this many rows, so that no loop has a slow remainder

_ZERO, _ONE, _TINY, _LOW = np.float32(0), np.float32(1), np.float32(1e-8), np.float32(-3e38)
# A unit that no row activates has only the penalty's gradient and shrinks for ever. Below this size, squares would
# become subnormal numbers, which processors multiply many times more slowly, and a step would be at most 1e-11.
_LEAST = np.float32(1e-17)
_KEEP_FIRST, _KEEP_SECOND = np.float32(0.9), np.float32(0.999)  # Adam's decays of the two moments
_NEW_FIRST, _NEW_SECOND = np.float32(0.1), np.float32(0.001)


@njit(cache=True, fastmath=True, error_model="numpy")
def train_networks(
    rows: np.ndarray,  # (B, K, T) float32, K a multiple of GROUP
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
    size, n_rows = rows.shape[1:]
    x, y = np.empty((size, n_rows), np.float32), np.empty(n_rows, np.float32)
    room = -(-batch // LANES) * LANES
    work = (
        np.zeros((size, room), np.float32),
        np.empty(batch, np.float32),
        np.empty((width, room), np.float32),
        np.empty(room, np.float32),
        np.empty((width, size + 2), np.float32),
        np.empty((2, width * (size + 2)), np.float32),
    )
    epochs = np.zeros((n_tasks, n_actions), np.int64)
    for b in range(n_tasks):
        for a in range(n_actions):
            if not wanted[b, a]:
                continue
            n = 0
            for t in range(n_rows):
                if len(counted) == 0 or counted[b, a, t]:
                    for k in range(size):
                        x[k, n] = rows[b, k, t]
                    y[n] = outcomes[b, a, t]
                    n += 1
            epochs[b, a], biases[b, a] = _train(
                x, y, n, units[b, a], biases[b, a], uniform, penalty, rate, batch, tolerance, patience, work
            )
    return epochs


@njit(cache=True, fastmath=True, error_model="numpy")
def _train(x, y, n, units, bias, uniform, penalty, rate, batch, tolerance, patience, work):  # type: ignore[no-untyped-def]
    """Train one network on the first n rows, in place; return the epochs and the output's bias."""
    xb, yb, hidden, out, gradient, moments = work
    size = x.shape[0]
    order = np.arange(n)
    moments[:] = _ZERO
    first, second = _ZERO, _ZERO  # moments of the output bias's gradient
    left_first, left_second = 1.0, 1.0  # what is left of the moments' initial values
    best, stale, epoch = 1e300, 0, 0
    while epoch < uniform.shape[1] and stale <= patience:
        for i in range(n - 1, 0, -1):
            j = int(uniform[i, epoch] * (i + 1))
            order[i], order[j] = order[j], order[i]
        total = 0.0
        for start in range(0, n, batch):
            length = min(batch, n - start)
            for r in range(length):
                i = order[start + r]
                yb[r] = y[i]
                for k in range(size):
                    xb[k, r] = x[k, i]
            filled = -(-length // LANES) * LANES
            forward(xb, units, filled, hidden, out)
            total += _slopes(out, yb, bias, length)
            out[length:filled] = _ZERO
            _backward(xb, units, filled, hidden, out, gradient)
            slope = _ZERO
            for r in range(length):
                slope += out[r]
            left_first *= 0.9
            left_second *= 0.999
            step = np.float32(rate * np.sqrt(1 - left_second) / (1 - left_first))
            total += 0.5 * penalty * _move(units, gradient, moments, np.float32(penalty / length), step)
            first = _KEEP_FIRST * first + _NEW_FIRST * slope
            second = _KEEP_SECOND * second + _NEW_SECOND * slope * slope
            bias -= step * first / (np.sqrt(second) + _TINY)
        stale = stale + 1 if total / n > best - tolerance else 0
        best = min(best, total / n)
        epoch += 1
    return epoch, bias


@njit(cache=True, fastmath=True, error_model="numpy")
def forward(x: np.ndarray, units: np.ndarray, length: int, hidden: np.ndarray, out: np.ndarray) -> None:
    """Write the hidden layer (W, n), and the output (n,) without its bias, for the first n columns of x (K, n)."""
    size, width = x.shape[0], units.shape[0]
    for r in range(length):
        out[r] = _ZERO
    for j in range(0, width, 2):  # two units share each read of a row
        i = min(j + 1, width - 1)
        for r in range(length):
            hidden[j, r] = units[j, 0]
            hidden[i, r] = units[i, 0]
        for k in range(0, size, GROUP):
            u0, u1, u2, u3, u4 = units[j, k + 1], units[j, k + 2], units[j, k + 3], units[j, k + 4], units[j, k + 5]
            w0, w1, w2, w3, w4 = units[i, k + 1], units[i, k + 2], units[i, k + 3], units[i, k + 4], units[i, k + 5]
            last = k + GROUP == size
            u = units[j, size + 1] if last else _ZERO
            w = units[i, size + 1] if last and i > j else _ZERO
            least = _ZERO if last else _LOW
            for r in range(length):
                x0, x1, x2, x3, x4 = x[k, r], x[k + 1, r], x[k + 2, r], x[k + 3, r], x[k + 4, r]
                s = hidden[j, r] + (u0 * x0 + u1 * x1 + u2 * x2 + u3 * x3 + u4 * x4)
                t = hidden[i, r] + (w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3 + w4 * x4)
                s = s if s > least else least
                t = t if t > least else least
                hidden[j, r] = s
                hidden[i, r] = t
                out[r] += u * s + w * t


@njit(cache=True, fastmath=True, error_model="numpy")
def _slopes(out: np.ndarray, y: np.ndarray, bias: Any, length: int) -> Any:
    """Overwrite the outputs with the loss's derivatives, and return the sum of the log losses."""
    share = _ONE / np.float32(length)
    product, rest, total = 1.0, _ZERO, 0.0
    # log Π(1 + e) is Σ log(1 + e), and a product of 512 factors of at most 2 fits into a float64.
    for start in range(0, length, 512):
        product = 1.0
        for r in range(start, min(start + 512, length)):
            logit = out[r] + bias
            e = decay32(logit)
            product *= _ONE + e
            high = _ONE / (_ONE + e)
            chance = high if logit >= _ZERO else e * high
            rest += max(logit, _ZERO) - y[r] * logit
            out[r] = (chance - y[r]) * share
        total += np.log(product)
    return total + rest


@njit(cache=True, fastmath=True, error_model="numpy")
def _backward(x, units, length, hidden, slopes, gradient):  # type: ignore[no-untyped-def]
    """Write the loss's gradient in the units' parameters."""
    size, width = x.shape[0], units.shape[0]
    for j in range(0, width, 2):  # two units share each read of a row
        i = min(j + 1, width - 1)
        u, w = units[j, size + 1], units[i, size + 1]
        for k in range(0, size, GROUP):
            a_out = a_one = a0 = a1 = a2 = a3 = a4 = _ZERO
            b_out = b_one = b0 = b1 = b2 = b3 = b4 = _ZERO
            for r in range(length):
                x0, x1, x2, x3, x4 = x[k, r], x[k + 1, r], x[k + 2, r], x[k + 3, r], x[k + 4, r]
                s, t = hidden[j, r], hidden[i, r]
                d = slopes[r] if s > _ZERO else _ZERO
                e = slopes[r] if t > _ZERO else _ZERO
                a_out += d * s
                b_out += e * t
                a_one += d
                b_one += e
                a0 += d * x0
                a1 += d * x1
                a2 += d * x2
                a3 += d * x3
                a4 += d * x4
                b0 += e * x0
                b1 += e * x1
                b2 += e * x2
                b3 += e * x3
                b4 += e * x4
            gradient[j, 0], gradient[j, size + 1] = u * a_one, a_out
            gradient[j, k + 1], gradient[j, k + 2], gradient[j, k + 3] = u * a0, u * a1, u * a2
            gradient[j, k + 4], gradient[j, k + 5] = u * a3, u * a4
            gradient[i, 0], gradient[i, size + 1] = w * b_one, b_out
            gradient[i, k + 1], gradient[i, k + 2], gradient[i, k + 3] = w * b0, w * b1, w * b2
            gradient[i, k + 4], gradient[i, k + 5] = w * b3, w * b4


@njit(cache=True, fastmath=True, error_model="numpy")
def _move(units: np.ndarray, gradient: np.ndarray, moments: np.ndarray, decay: Any, step: Any) -> Any:
    """Take Adam's step, and return the sum of the penalised parameters' squares before it."""
    squares = _ZERO
    for j in range(units.shape[0]):
        for k in range(1, units.shape[1]):  # the bias has no penalty
            squares += units[j, k] * units[j, k]
            gradient[j, k] += decay * units[j, k]
    all_units, all_gradients = units.reshape(-1), gradient.reshape(-1)
    first, second = moments[0], moments[1]
    for i in range(len(all_units)):
        g = all_gradients[i]
        g = g if abs(g) > _LEAST else _ZERO
        f = _KEEP_FIRST * first[i] + _NEW_FIRST * g
        first[i] = f if abs(f) > _LEAST else _ZERO
        second[i] = _KEEP_SECOND * second[i] + _NEW_SECOND * g * g
        all_units[i] -= step * first[i] / (np.sqrt(second[i]) + _TINY)
    return squares


@njit(cache=True, fastmath=True, error_model="numpy")
def network_logits(rows: np.ndarray, units: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Return the networks' log odds, (B, K, T) to (B, T, A)."""
    n_tasks, _, n_rows = rows.shape
    n_actions, width = units.shape[1:3]
    hidden, out = np.empty((width, n_rows), np.float32), np.empty(n_rows, np.float32)
    logits = np.empty((n_tasks, n_rows, n_actions), np.float32)
    for b in range(n_tasks):
        for a in range(n_actions):
            forward(rows[b], units[b, a], n_rows, hidden, out)
            for t in range(n_rows):
                logits[b, t, a] = out[t] + biases[b, a]
    return logits
