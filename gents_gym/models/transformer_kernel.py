"""Compiles a transformer's pass: tokens of many sequences go through all layers, and each sees its own rows alone.

Keys and values are in pages of ``PAGE`` rows. In each layer of a page, keys come first, with the rows side by side, so
that the scores of a page fill one register. Values follow, row by row. Heads are padded to whole registers.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from torch import nn

from gents_gym.numerics.lanes import WIDTH, fill, load, repeat, store, total, where_less
from gents_gym.numerics.series import decay32

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

PAGE = WIDTH  # rows of a page
TOKENS = 96  # of a block that goes through all layers at once; its layers stay in the second-level cache

_ZERO, _ONE, _HALF, _FOUR = np.float32(0), np.float32(1), np.float32(0.5), np.float32(4)
_ROOT_HALF, _LOW, _EPSILON = np.float32(0.5**0.5), np.float32(-1e30), np.float32(nn.LayerNorm(1).eps)


class Stack(NamedTuple):
    """The weights of L layers of width W, inputs first, with H heads of size d, padded to P.

    Behind a normalised token is a 1, for the biases. Scales and shifts of normalisation are part of the weights behind
    them, and so is attention's d^-1/2.
    """

    query: np.ndarray  # (L, W+1, H·P)
    memory: np.ndarray  # (L, W+1, 2·H·P): keys, then values
    mix: np.ndarray  # (L, H·P, W)
    mix_bias: np.ndarray  # (L, W)
    widen: np.ndarray  # (L, W+1, 4W)
    narrow: np.ndarray  # (L, 4W, W)
    narrow_bias: np.ndarray  # (L, W)
    heads: int


def read_stack(model: "TransformerModel") -> Stack:
    """Return the layers of a transformer."""
    heads, layers = model.config.heads, []
    size = model.config.width // heads
    pad = np.kron(np.eye(heads), np.eye(size, -(-size // WIDTH) * WIDTH))  # (H·d, H·P)
    for block in model.stack():
        query = _behind(block.norm, block.query) @ pad * size**-0.5
        memory = _behind(block.norm, block.memory) @ np.kron(np.eye(2), pad)
        (mix, mix_bias), narrow = _weights(block.mix), _weights(block.narrow)
        layers.append([query, memory, pad.T @ mix, mix_bias, _behind(block.norm_out, block.widen), *narrow])
    return Stack(*(np.array(part, np.float32) for part in zip(*layers, strict=True)), heads)


def _weights(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, inputs first, and biases, in double precision."""
    return linear.weight.detach().double().numpy().T, linear.bias.detach().double().numpy()


def _behind(norm: nn.LayerNorm, linear: nn.Linear) -> np.ndarray:
    """Return weights that scale and shift normalised tokens as well, with the biases as their last row."""
    weights, bias = _weights(linear)
    scale, shift = (part.detach().double().numpy() for part in (norm.weight, norm.bias))
    return np.vstack([scale[:, None] * weights, bias + shift @ weights])


@njit(cache=True, fastmath=True, error_model="numpy")
def run_stack(
    stack: Stack,
    tokens: np.ndarray,  # (N, k, W) float32: they become the last layer's
    tells: bool,  # whether the first token of each sequence is a row, whose keys and values are written behind the others
    pool: np.ndarray,  # (pages, L, 2·PAGE·H·P) float32: keys (H·P, PAGE), then values (PAGE, H·P)
    pages: np.ndarray,  # (N, ·): the pages of each sequence, in the order of its rows
    lengths: np.ndarray,  # (N,): rows before these tokens
    seen: np.ndarray,  # (N,): rows that tokens see, lengths + 1 if they see the new one
) -> None:
    """Take tokens through all layers, in place; what a first token that is a row becomes is left undefined."""
    n_all, n_tokens, width = tokens.shape
    n_layers, spread = len(stack.query), stack.query.shape[2]  # L, H·P
    step = max(1, TOKENS // n_tokens)  # sequences at once
    room = step * n_tokens
    x, y = np.empty((room, width), np.float32), np.empty((room, width), np.float32)
    z, wide = np.ones((room, width + 1), np.float32), np.empty((room, 4 * width), np.float32)
    asked, found = np.empty((room, spread), np.float32), np.empty((room, spread), np.float32)
    memory = np.empty((step, 2 * spread), np.float32)
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
                    _write(memory[i], pool[page, layer], lengths[begin + i] % PAGE)
                if layer + 1 == n_layers:
                    start = n
                    if start == end:
                        break
            np.dot(z[start:end], stack.query[layer], asked[start:end])
            for i in range(n):
                where = pages[begin + i]
                for at in range(start + i, end, n):
                    _attend(asked[at], found[at], flat, where, layer, n_layers, stack.heads, seen[begin + i], scores)
            np.dot(found[start:end], stack.mix[layer], y[start:end])
            _add(x[start:end], y[start:end], stack.mix_bias[layer])
            _standardise(x[start:end], z[start:end])
            np.dot(z[start:end], stack.widen[layer], wide[start:end])
            _bend(wide[start:end].reshape(-1))
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
def _bend(x):  # type: ignore[no-untyped-def]
    """Apply GELU, x·(1 + erf(x/√2))/2, to numbers (n,) in place; erf is a ratio of polynomials."""
    for i in range(len(x)):
        u = min(max(x[i] * _ROOT_HALF, -_FOUR), _FOUR)
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
        x[i] = _HALF * x[i] * (_ONE + u * top / low)


@njit(cache=True, fastmath=True, error_model="numpy")
def _write(memory, page, row):  # type: ignore[no-untyped-def]
    """Write the keys and values of one row to one layer of a page."""
    spread = len(memory) // 2
    for j in range(spread):
        page[j * PAGE + row] = memory[j]
        page[(PAGE + row) * spread + j] = memory[spread + j]


@njit(cache=True, fastmath=True, error_model="numpy")
def _attend(asked, found, flat, where, layer, n_layers, heads, n_rows, scores):  # type: ignore[no-untyped-def]
    """Write to ``found`` (H·P,) the mean of values, weighted by a softmax of the scores of what is asked, (H·d,).

    ``flat`` is the pool, ``where`` the sequence's pages, ``scores`` has room for a number for each row.
    """
    size = len(asked) // heads  # P
    whole = 2 * PAGE * len(asked)  # of a page's layer
    n_pages = (n_rows + PAGE - 1) // PAGE
    for first in range(0, len(asked), size):  # of a head
        most = fill(_LOW)
        for p in range(n_pages):
            at = (where[p] * n_layers + layer) * whole + first * PAGE
            one, two, three, four = fill(_ZERO), fill(_ZERO), fill(_ZERO), fill(_ZERO)
            for j in range(0, size, 4):
                one += repeat(asked, first + j) * load(flat, at + j * PAGE)
                two += repeat(asked, first + j + 1) * load(flat, at + (j + 1) * PAGE)
                three += repeat(asked, first + j + 2) * load(flat, at + (j + 2) * PAGE)
                four += repeat(asked, first + j + 3) * load(flat, at + (j + 3) * PAGE)
            score = (one + two) + (three + four)
            store(scores, p * PAGE, score)
            if p + 1 == n_pages:
                for r in range(n_rows, n_pages * PAGE):
                    scores[r] = _LOW
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
        share = _ONE / total(summed)
        for part in range(first, first + size, WIDTH):
            one, two, three, four = fill(_ZERO), fill(_ZERO), fill(_ZERO), fill(_ZERO)
            for p in range(n_pages):
                at = (where[p] * n_layers + layer) * whole + len(asked) * PAGE + part
                start, rows = p * PAGE, min(PAGE, n_rows - p * PAGE)
                for r in range(0, rows - 3, 4):
                    one += repeat(scores, start + r) * load(flat, at + r * len(asked))
                    two += repeat(scores, start + r + 1) * load(flat, at + (r + 1) * len(asked))
                    three += repeat(scores, start + r + 2) * load(flat, at + (r + 2) * len(asked))
                    four += repeat(scores, start + r + 3) * load(flat, at + (r + 3) * len(asked))
                for r in range(rows // 4 * 4, rows):
                    one += repeat(scores, start + r) * load(flat, at + r * len(asked))
            store(found, part, share * ((one + two) + (three + four)))
