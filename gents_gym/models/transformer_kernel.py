"""Compiles a transformer's pass: tokens of many sequences go through all layers, each seeing rows of its own only.

Keys and values are in pages of ``PAGE`` rows. In each layer of a page, keys come first, with the rows side by side,
so that the scores of a page fill one register. Values follow, row by row; each head's part is padded to whole registers.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from torch import nn

from gents_gym.numerics.lanes import WIDTH, fill, load, store, where_less
from gents_gym.numerics.series import decay32

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

PAGE = WIDTH  # rows of a page
TOKENS = 96  # of a block that goes through all layers at once; its layers stay in the second-level cache

_ZERO, _ONE, _HALF, _FOUR = np.float32(0), np.float32(1), np.float32(0.5), np.float32(4)
_ROOT_HALF, _LOW, _EPSILON = np.float32(0.5**0.5), np.float32(-1e30), np.float32(nn.LayerNorm(1).eps)


class Stack(NamedTuple):
    """The layers' weights, inputs first: L layers of width W, H heads of size d, padded to size P for values.

    Scales and shifts of normalisation are part of the weights behind them, and so is attention's d^-1/2.
    """

    query: np.ndarray  # (L, W, W)
    query_bias: np.ndarray  # (L, W)
    memory: np.ndarray  # (L, W, W + H·P): keys, then values
    memory_bias: np.ndarray  # (L, W + H·P)
    mix: np.ndarray  # (L, H·P, W)
    mix_bias: np.ndarray  # (L, W)
    widen: np.ndarray  # (L, W, 4W)
    widen_bias: np.ndarray  # (L, 4W)
    narrow: np.ndarray  # (L, 4W, W)
    narrow_bias: np.ndarray  # (L, W)
    heads: int


def read_stack(model: "TransformerModel") -> Stack:
    """Return the layers of a transformer."""
    heads, found = model.config.heads, []
    size = model.config.width // heads
    spread = _spread(heads, size)
    for block in model.stack():
        query, query_bias = _behind(block.norm, block.query)
        memory, memory_bias = (np.split(part, 2, -1) for part in _behind(block.norm, block.memory))
        memory = np.concatenate([memory[0], memory[1] @ spread], -1), np.concatenate([memory_bias[0], memory_bias[1] @ spread])
        mix, mix_bias = _plain(block.mix)
        layer = [query * size**-0.5, query_bias * size**-0.5, *memory, spread.T @ mix, mix_bias]
        found.append([*layer, *_behind(block.norm_out, block.widen), *_plain(block.narrow)])
    return Stack(*(np.array(part, np.float32) for part in zip(*found, strict=True)), heads)


def _plain(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, inputs first, and biases, in double precision."""
    return linear.weight.detach().double().numpy().T, linear.bias.detach().double().numpy()


def _behind(norm: nn.LayerNorm, linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and biases that do the norm's scale and shift as well."""
    weights, bias = _plain(linear)
    scale, shift = (part.detach().double().numpy() for part in (norm.weight, norm.bias))
    return scale[:, None] * weights, bias + shift @ weights


def _spread(heads: int, size: int) -> np.ndarray:
    """Return the matrix (H·d, H·P) that pads each head to whole registers."""
    padded = -(-size // WIDTH) * WIDTH
    return np.kron(np.eye(heads), np.eye(size, padded))


def page_size(stack: Stack) -> int:
    """Return how many numbers one layer of a page has."""
    return PAGE * stack.memory.shape[2]


@njit(cache=True, fastmath=True, error_model="numpy")
def run_stack(
    stack: Stack,
    tokens: np.ndarray,  # (N, k, W) float32: they become the last layer's
    tells: bool,  # whether the first token of each sequence is a row, whose keys and values are written behind the others
    pool: np.ndarray,  # (pages, L, page_size) float32
    pages: np.ndarray,  # (N, ·): the pages of each sequence, in the order of its rows
    lengths: np.ndarray,  # (N,): rows before these tokens
    seen: np.ndarray,  # (N,): rows that tokens see, lengths + 1 if they see the new one
) -> None:
    """Take tokens through all layers, in place; what a first token that is a row becomes is left undefined."""
    n_all, n_tokens, width = tokens.shape
    n_layers, heads, spread = len(stack.query), stack.heads, stack.mix.shape[1]
    step = max(1, TOKENS // n_tokens)  # sequences at once
    room = step * n_tokens
    x, z, y = np.empty((room, width), np.float32), np.empty((room, width), np.float32), np.empty((room, width), np.float32)
    found, wide = np.empty((room, spread), np.float32), np.empty((room, 4 * width), np.float32)
    memory = np.empty((step, width + spread), np.float32)
    scores = np.empty((np.max(seen) // PAGE + 2) * PAGE, np.float32)
    flat = pool.reshape(-1)
    for begin in range(0, n_all, step):
        n = min(step, n_all - begin)
        for t in range(n_tokens):
            x[t * n : (t + 1) * n] = tokens[begin : begin + n, t]
        start, end = 0, n_tokens * n
        for layer in range(n_layers):
            _standardise(x[start:end], z[start:end])
            if tells:
                np.dot(z[:n], stack.memory[layer], memory[:n])
                for i in range(n):
                    page = pages[begin + i, lengths[begin + i] // PAGE]
                    _write(memory[i], stack.memory_bias[layer], pool[page, layer], lengths[begin + i] % PAGE, width)
                if layer + 1 == n_layers:
                    start = n
                    if start == end:
                        break
            np.dot(z[start:end], stack.query[layer], y[start:end])
            for i in range(n):
                where = pages[begin + i]
                for at in range(start + i, end, n):
                    asked, got = y[at], found[at]
                    for j in range(width):
                        asked[j] += stack.query_bias[layer, j]
                    _attend(asked, got, flat, where, layer, n_layers, heads, seen[begin + i], scores)
            np.dot(found[start:end], stack.mix[layer], y[start:end])
            _add(x[start:end], y[start:end], stack.mix_bias[layer])
            _standardise(x[start:end], z[start:end])
            np.dot(z[start:end], stack.widen[layer], wide[start:end])
            _bend(wide[start:end], stack.widen_bias[layer])
            np.dot(wide[start:end], stack.narrow[layer], y[start:end])
            _add(x[start:end], y[start:end], stack.narrow_bias[layer])
        for t in range(start // n, n_tokens):
            tokens[begin : begin + n, t] = x[t * n : (t + 1) * n]


@njit(cache=True, fastmath=True, error_model="numpy")
def _standardise(x, z):  # type: ignore[no-untyped-def]
    """Write tokens (n, W), less their mean and divided by their standard deviation, to z."""
    n, width = x.shape
    for i in range(n):
        mean = square = _ZERO
        for j in range(width):
            mean += x[i, j]
        mean /= np.float32(width)
        for j in range(width):
            z[i, j] = x[i, j] - mean
            square += z[i, j] * z[i, j]
        scale = _ONE / np.sqrt(square / np.float32(width) + _EPSILON)
        for j in range(width):
            z[i, j] *= scale


@njit(cache=True, fastmath=True, error_model="numpy")
def _add(x, y, bias):  # type: ignore[no-untyped-def]
    """Add y (n, W) and a bias (W,) to x."""
    for i in range(len(x)):
        for j in range(len(bias)):
            x[i, j] += y[i, j] + bias[j]


@njit(cache=True, fastmath=True, error_model="numpy")
def _bend(x, bias):  # type: ignore[no-untyped-def]
    """Add a bias and apply GELU, x·(1 + erf(x/√2))/2, in place; erf is a ratio of polynomials, right to 1e-6."""
    for i in range(len(x)):
        for j in range(len(bias)):
            number = x[i, j] + bias[j]
            u = min(max(number * _ROOT_HALF, -_FOUR), _FOUR)
            s = u * u
            top = np.float32(-2.72614225801306e-10)
            top = top * s + np.float32(2.77068142495902e-08)
            top = top * s + np.float32(-2.10102402082508e-06)
            top = top * s + np.float32(-5.69250639462346e-05)
            top = top * s + np.float32(-7.34990630326855e-04)
            top = top * s + np.float32(-2.95459980854025e-03)
            top = top * s + np.float32(-1.60960333262415e-02)
            low = np.float32(-1.45660718464996e-05)
            low = low * s + np.float32(-2.13374055278905e-04)
            low = low * s + np.float32(-1.68282697438203e-03)
            low = low * s + np.float32(-7.37332916720468e-03)
            low = low * s + np.float32(-1.42647390514189e-02)
            x[i, j] = _HALF * number * (_ONE + u * top / low)


@njit(cache=True, fastmath=True, error_model="numpy")
def _write(memory, bias, page, row, width):  # type: ignore[no-untyped-def]
    """Write the keys and values of one row to one layer of a page."""
    for j in range(width):
        page[j * PAGE + row] = memory[j] + bias[j]
    spread = len(memory) - width
    for j in range(spread):
        page[width * PAGE + row * spread + j] = memory[width + j] + bias[width + j]


@njit(cache=True, fastmath=True, error_model="numpy")
def _attend(asked, found, flat, where, layer, n_layers, heads, n_rows, scores):  # type: ignore[no-untyped-def]
    """Write to ``found`` (H·P,) the mean of values, weighted by a softmax of the scores of what is asked, (H·d,).

    ``flat`` is the pool, ``where`` the sequence's pages, ``scores`` has room for a number for each row.
    """
    size, padded = len(asked) // heads, len(found) // heads
    spread, whole = heads * padded, PAGE * (len(asked) + heads * padded)  # of a row's values, of a page's layer
    n_pages = (n_rows + PAGE - 1) // PAGE
    for head in range(heads):
        for p in range(n_pages):
            at, score = (where[p] * n_layers + layer) * whole + head * size * PAGE, fill(_ZERO)
            for j in range(size):
                score += asked[head * size + j] * load(flat, at + j * PAGE)
            store(scores, p * PAGE, score)
        for r in range(n_rows, n_pages * PAGE):
            scores[r] = _LOW
        most = load(scores, 0)
        for p in range(1, n_pages):
            score = load(scores, p * PAGE)
            most = where_less(most, score, score, most)
        store(scores, n_pages * PAGE, most)
        top = scores[n_pages * PAGE]
        for r in range(n_pages * PAGE, (n_pages + 1) * PAGE):
            top = max(top, scores[r])
        summed = fill(_ZERO)
        for p in range(n_pages):
            weight = decay32(load(scores, p * PAGE) - top)
            store(scores, p * PAGE, weight)
            summed += weight
        store(scores, n_pages * PAGE, summed)
        whole_sum = _ZERO
        for r in range(n_pages * PAGE, (n_pages + 1) * PAGE):
            whole_sum += scores[r]
        share = _ONE / whole_sum
        for part in range(0, padded, WIDTH):
            one, two, three, four = fill(_ZERO), fill(_ZERO), fill(_ZERO), fill(_ZERO)
            for p in range(n_pages):
                at = (where[p] * n_layers + layer) * whole + len(asked) * PAGE + head * padded + part
                first, rows = p * PAGE, min(PAGE, n_rows - p * PAGE)
                for r in range(0, rows - 3, 4):
                    one += scores[first + r] * load(flat, at + r * spread)
                    two += scores[first + r + 1] * load(flat, at + (r + 1) * spread)
                    three += scores[first + r + 2] * load(flat, at + (r + 2) * spread)
                    four += scores[first + r + 3] * load(flat, at + (r + 3) * spread)
                for r in range(rows // 4 * 4, rows):
                    one += scores[first + r] * load(flat, at + r * spread)
            store(found, head * padded + part, share * ((one + two) + (three + four)))
