"""Compiles a transformer: tokens of many sequences go through all layers, and each sees its own rows alone.

Keys and values are in pages of ``PAGE`` rows. In each layer of a page, keys come first, with the rows side by side, so
that the scores of a page fill one register. Values follow, row by row. Heads are padded to whole registers.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from torch import nn

from gents_gym.numerics.lanes import WIDTH, fill, load, repeat, store, total, where_less
from gents_gym.numerics.series import decay32

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

PAGE = WIDTH  # rows of a page
LEAST_VARIANCE = 1e-4  # of Gaussian outcomes, in the model's units
SOFTPLUS_ONE = math.log(math.e - 1)  # softplus is 1 there
TOKENS = 40  # of a block; what its sequences see stays in the second-level cache from row to row

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
    last: np.ndarray  # (W+1, O)
    heads: int


def read_stack(model: "TransformerModel") -> Stack:
    """Return the layers of a transformer."""
    heads, layers = model.config.heads, []
    size = model.config.width // heads
    pad = np.kron(np.eye(heads), np.eye(size, -(-size // WIDTH) * WIDTH))  # (H·d, H·P)
    last = _behind(model.norm, model.last).astype(np.float32)
    for block in model.stack():
        query = _behind(block.norm, block.query) @ pad * size**-0.5
        memory = _behind(block.norm, block.memory) @ np.kron(np.eye(2), pad)
        (mix, mix_bias), narrow = _weights(block.mix), _weights(block.narrow)
        layers.append([query, memory, pad.T @ mix, mix_bias, _behind(block.norm_out, block.widen), *narrow])
    return Stack._make([*(np.array(part, np.float32) for part in zip(*layers, strict=True)), last, heads])


def _weights(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, inputs first, and biases, in double precision."""
    return linear.weight.detach().double().numpy().T, linear.bias.detach().double().numpy()


def _behind(norm: nn.LayerNorm, linear: nn.Linear) -> np.ndarray:
    """Return weights that scale and shift normalised tokens as well, with the biases as their last row."""
    weights, bias = _weights(linear)
    scale, shift = (part.detach().double().numpy() for part in (norm.weight, norm.bias))
    return np.vstack([scale[:, None] * weights, bias + shift @ weights])


class Room(NamedTuple):
    """Memory of a block of n tokens."""

    x: np.ndarray  # tokens, (n, W)
    y: np.ndarray  # what is added to them, (n, W)
    z: np.ndarray  # tokens, normalised, and a 1, (n, W+1)
    wide: np.ndarray  # (n, 4W)
    asked: np.ndarray  # queries, (n, H·P)
    found: np.ndarray  # what attention returns, (n, H·P)
    memory: np.ndarray  # keys and values, (n, 2·H·P)
    outputs: np.ndarray  # (n, O)
    scores: np.ndarray  # of the rows that one token sees, and of a page more


@njit(cache=True, fastmath=True, error_model="numpy")
def run_stack(
    stack: Stack,
    tokens: np.ndarray,  # (N, k, W) float32
    tells: bool,  # whether the first token of each sequence is a row
    pool: np.ndarray,  # (pages, L, 2·PAGE·H·P) float32: keys (H·P, PAGE), then values (PAGE, H·P)
    pages: np.ndarray,  # (N, ·): the pages of each sequence, in the order of its rows
    lengths: np.ndarray,  # (N,): rows before these tokens
) -> np.ndarray:
    """Return the network's outputs at all tokens, (N, k, O).

    The keys and values of a first token that is a row are written behind the others; its outputs are undefined.
    """
    n_all, n_tokens, _ = tokens.shape
    outputs = np.empty((n_all, n_tokens, stack.last.shape[1]), np.float32)
    step = max(1, TOKENS // n_tokens)  # sequences at once
    room, seen = _room(stack, step * n_tokens, np.max(lengths) + 1), lengths + int(tells)
    for begin in range(0, n_all, step):
        here = slice(begin, min(begin + step, n_all))
        n = here.stop - begin
        for k in range(n_tokens):
            room.x[k * n : (k + 1) * n] = tokens[here, k]
        _pass(stack, room, n, n_tokens, tells, pool, pages[here], lengths[here], seen[here])
        for k in range(n_tokens):
            outputs[here, k] = room.outputs[k * n : (k + 1) * n]
    return outputs


@njit(cache=True, fastmath=True, error_model="numpy")
def generate(
    stack: Stack,
    asked: np.ndarray,  # (T, N, W) float32: query tokens
    told: np.ndarray,  # (T, N, W) float32: observation tokens without outcomes, to which outcomes are added in place
    changes: np.ndarray,  # (T, N, Q, W) float32: what each number of the code of an outcome adds
    noise: np.ndarray,  # (T, N) float32
    known: np.ndarray,  # (T, N): rows that are in the histories already
    scaling: np.ndarray,  # (2,) float32: of Gaussian outcomes; empty: there are C outcomes
    pool: np.ndarray,  # as in run_stack
    pages: np.ndarray,  # (N, ·), with room for the rows
    lengths: np.ndarray,  # (N,), to which the rows are added
) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes of rows behind the histories, (T, N), each drawn given those before it, and outputs (T, N, O)."""
    n_rows, n_all, n_codes, width = changes.shape
    table, outputs = np.empty_like(noise), np.empty((n_rows, n_all, stack.last.shape[1]), np.float32)
    step = TOKENS // 2
    room = _room(stack, TOKENS, np.max(lengths) + n_rows)
    for begin in range(0, n_all, step):
        here = slice(begin, min(begin + step, n_all))
        n = here.stop - begin
        for t in range(n_rows):
            start = n if t else 0  # of the tokens that ask
            seen = lengths[here].copy()
            if t:
                room.x[:n] = told[t - 1, here]
                seen += ~known[t - 1, here]
            room.x[start : start + n] = asked[t, here]
            _pass(stack, room, n, 1 + (t > 0), t > 0, pool, pages[here], lengths[here], seen)
            lengths[here] = seen
            outputs[t, here] = room.outputs[start : start + n]
            for i in range(begin, here.stop):
                outcome = _draw(outputs[t, i], noise[t, i], scaling)
                table[t, i] = outcome
                code = _ONE
                if n_codes == 1:
                    code = (outcome - scaling[0]) * scaling[1] if len(scaling) else outcome + outcome - _ONE
                change = changes[t, i, int(outcome) if n_codes > 1 else 0]
                for j in range(width):
                    told[t, i, j] += code * change[j]
    return table, outputs


@njit(cache=True)
def _draw(outputs, noise, scaling):  # type: ignore[no-untyped-def]
    """Return the outcome that the noise is given the network's outputs (O,)."""
    if len(scaling):
        number = float(outputs[1]) + SOFTPLUS_ONE
        variance = (number if number > 20 else np.log1p(np.exp(number))) + LEAST_VARIANCE
        return np.float32((outputs[0] + np.sqrt(variance) * noise) / scaling[1] + scaling[0])
    if len(outputs) == 1:
        return np.float32(noise < 1 / (1 + np.exp(-float(outputs[0]))))
    weights = np.exp(outputs.astype(np.float64) - np.max(outputs))
    return np.float32(np.sum(noise >= (np.cumsum(weights) / np.sum(weights))[:-1]))


@njit(cache=True, fastmath=True, error_model="numpy")
def _room(stack, n, n_rows):  # type: ignore[no-untyped-def]
    """Return memory of n tokens that see at most so many rows."""
    width, spread = stack.narrow_bias.shape[1], stack.query.shape[2]
    return Room(
        np.empty((n, width), np.float32),
        np.empty((n, width), np.float32),
        np.ones((n, width + 1), np.float32),
        np.empty((n, 4 * width), np.float32),
        np.empty((n, spread), np.float32),
        np.empty((n, spread), np.float32),
        np.empty((n, 2 * spread), np.float32),
        np.empty((n, stack.last.shape[1]), np.float32),
        np.empty((n_rows // PAGE + 2) * PAGE, np.float32),
    )


@njit(cache=True, fastmath=True, error_model="numpy")
def _pass(stack, room, n, n_tokens, tells, pool, pages, lengths, seen):  # type: ignore[no-untyped-def]
    """Take the k tokens of n sequences through all layers, from ``room.x`` (k·n, W) to ``room.outputs``.

    The others are as in :func:`run_stack`, with ``seen`` (n,), how many rows the tokens see.
    """
    n_layers, flat = len(stack.query), pool.reshape(-1)
    start, end = 0, n_tokens * n
    for layer in range(n_layers):
        x, y, z, found = room.x[start:end], room.y[start:end], room.z[start:end], room.found[start:end]
        _standardise(x, z)
        if tells:
            np.dot(z[:n], stack.memory[layer], room.memory[:n])
            for i in range(n):
                _write(room.memory[i], pool[pages[i, lengths[i] // PAGE], layer], lengths[i] % PAGE)
            if layer + 1 == n_layers:
                start = n
                if start == end:
                    return
                x, y, z, found = x[n:], y[n:], z[n:], found[n:]
        np.dot(z, stack.query[layer], room.asked[start:end])
        for i in range(n):
            for at in range(start + i, end, n):
                _attend(
                    room.asked[at], room.found[at], flat, pages[i], layer, n_layers, stack.heads, seen[i], room.scores
                )
        np.dot(found, stack.mix[layer], y)
        _add(x, y, stack.mix_bias[layer])
        _standardise(x, z)
        np.dot(z, stack.widen[layer], room.wide[start:end])
        _bend(room.wide[start:end].reshape(-1))
        np.dot(room.wide[start:end], stack.narrow[layer], y)
        _add(x, y, stack.narrow_bias[layer])
    _standardise(room.x[start:end], room.z[start:end])
    np.dot(room.z[start:end], stack.last, room.outputs[start:end])


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
