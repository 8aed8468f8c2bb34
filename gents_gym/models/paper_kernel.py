"""Completes tables quickly with the paper model.

A library's product computes the head's first layer, products that skip units at zero the others, and a compiled loop
does everything between them. The state is inside the head's input: its column a is (x, the lower half of
(XᵀX + I)^-1, β̂ or XᵀY) of action a. A hidden unit that is always 1 carries the biases. If the head reads the context
itself, x is (its row of X, the context), and the weights of the row are zero.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from gents_gym.numerics.rectified import add_products, aligned, padded
from gents_gym.numerics.series import decay32

ROWS = 512  # actions at a time: their hidden layers stay in the second-level cache

_ZERO, _ONE, _TINY = np.float32(0), np.float32(1), np.float32(1e-12)


class Head(NamedTuple):
    """The head's weights, inputs first, as columns of widened layers, and its first layer's output for Z."""

    first: Tensor  # (R+P+K, wide): R entries of the current context, P of the inverse, K of the other statistic
    others: list[np.ndarray]  # (wide, wide) each
    last: np.ndarray  # (wide,)
    bias: np.float32
    by_action: Tensor  # (W, F)
    first_bias: Tensor  # (W,)
    size: int  # K
    raw: bool  # the other statistic is XᵀY, not β̂


def impute_paper(
    head: Head,
    state: Any,
    rows: np.ndarray,
    played: np.ndarray,
    seen: np.ndarray,
    uniform: np.ndarray,
) -> np.ndarray:
    """Return the tables (B, T, A): row by row, every missing outcome is drawn and absorbed.

    The last row is NaN for an action with a logit or a hidden unit that is not finite, which outcomes would not show.

    Args:
        head: The paper model's head.
        state: The model's state after everything observed, for N = B·A actions.
        rows: The contexts as the model's histories keep them and its head reads them, (B, T, R).
        played: The action observed in a row, (B, T), -1 for none.
        seen: Its outcome, (B, T).
        uniform: (B, T, A).
    """
    first, others, last, bias, by_action, first_bias, size, raw = head
    known = state.action_features @ by_action.T + first_bias  # (N, W)
    base = _widened(known.numpy(), first.shape[1])
    lower = np.tril_indices(size)
    other = state.products if raw else (state.inverse * state.products[:, None]).sum(2)
    start = np.concatenate([state.inverse.numpy()[:, *lower], other.numpy()], axis=1)  # (N, P+K)
    table = np.empty_like(uniform)
    n_all = len(base)
    for begin in range(0, n_all, ROWS):
        here = slice(begin, min(begin + ROWS, n_all))
        inputs = np.empty((first.shape[0], here.stop - begin), np.float32)
        inputs[rows.shape[2] :] = start[here].T
        columns, known = torch.from_numpy(inputs).T, torch.from_numpy(base[here])  # the same numbers as tensors
        tasks, actions = np.divmod(np.arange(begin, here.stop), uniform.shape[2])
        units = np.zeros(len(tasks), np.float32)  # sums of logits and hidden units, scaled down so as not to overflow
        layers = [aligned(here.stop - begin, first.shape[1]) for _ in range(2)]
        for t in range(rows.shape[1]):
            _set_contexts(inputs, rows, t, tasks)
            torch.addmm(known, columns, first, out=torch.from_numpy(layers[0]))
            for weights in others:
                torch.from_numpy(layers[0]).relu_()
                layers[1][:] = _ZERO
                add_products(layers[0], weights, layers[1])
                layers.reverse()
            hidden, lead = layers[0], rows.shape[2]
            _absorb(inputs, hidden, last, bias, size, lead, raw, t, tasks, actions, played, seen, uniform, table, units)
        lost = ~np.isfinite(units)
        table[tasks[lost], -1, actions[lost]] = np.nan
    return table


@torch.no_grad()
def read_head(model: Any) -> Head:
    """Return the head of a paper model."""
    size, action_dim = model.size, model.config.action_dim
    wide = padded(model.config.width + 1)
    folded = model.folded.detach().numpy()
    square = folded[:, : size * size].reshape(-1, size, size)
    # The inverse is symmetric, so one half gets both weights.
    square = np.tril(square) + np.triu(square, 1).swapaxes(1, 2)
    unread = np.zeros((model.config.width, size if model.config.plain_context else 0), np.float32)
    current = model.plain.detach().numpy()[:, action_dim:]
    parts = [unread, current, square[:, *np.tril_indices(size)], folded[:, size * size :]]
    first = np.zeros((sum(part.shape[1] for part in parts), wide), np.float32)
    first[:, : model.config.width] = np.concatenate(parts, axis=1).T
    others = []
    for layer in model.hidden:
        if isinstance(layer, torch.nn.Linear):
            weights = aligned(wide, wide)
            weights[: model.config.width] = _widened(layer.weight.detach().numpy().T, wide, 0)
            weights[model.config.width] = _widened(layer.bias.detach().numpy()[None], wide)
            others.append(weights)
    last = _widened(model.last.weight.detach().numpy(), wide, 0)[0]
    by_action = model.plain[:, :action_dim].detach()
    bias = np.float32(model.last.bias.item())
    first_layer = torch.from_numpy(first)
    return Head(first_layer, others, last, bias, by_action, model.bias.detach(), size, model.config.raw)


def _widened(values: np.ndarray, wide: int, one: float = 1) -> np.ndarray:
    """Return (n, W) values widened to (n, wide): ``one`` for the unit that carries the biases, then zeros."""
    widened = np.zeros((len(values), wide), np.float32)
    widened[:, : values.shape[1]] = values
    widened[:, values.shape[1]] = one
    return widened


@njit(cache=True)
def _set_contexts(inputs: np.ndarray, rows: np.ndarray, t: int, tasks: np.ndarray) -> None:
    """Write row t of each action's task into the first lines of the inputs."""
    for a in range(inputs.shape[1]):
        row = rows[tasks[a], t]
        for k in range(len(row)):
            inputs[k, a] = row[k]


@njit(cache=True, fastmath=True, error_model="numpy")
def _absorb(
    inputs: np.ndarray,  # (R+P+K, n)
    hidden: np.ndarray,  # (n, wide): the last hidden layer before its activation
    last: np.ndarray,  # (wide,)
    bias: Any,
    size: int,  # K
    lead: int,  # R
    raw: bool,
    t: int,
    tasks: np.ndarray,  # (n,)
    actions: np.ndarray,  # (n,)
    played: np.ndarray,  # (B, T)
    seen: np.ndarray,  # (B, T)
    uniform: np.ndarray,  # (B, T, A)
    table: np.ndarray,  # (B, T, A)
    units: np.ndarray,  # (n,): sums to which this row's logits and hidden units are added
) -> None:
    """Draw row t's outcomes into the table, and update the statistics in the inputs with the missing ones."""
    n = inputs.shape[1]
    gain, error = np.empty(n, np.float32), np.empty(n, np.float32)
    direction = np.zeros((size, n), np.float32)
    for a in range(n):
        logit = bias
        for j in range(len(last)):
            logit += last[j] * max(hidden[a, j], _ZERO)
        units[a] += _TINY * logit
        for j in range(len(last)):  # the activation may hide a NaN
            units[a] += _TINY * hidden[a, j]
        e = decay32(logit)
        high = _ONE / (_ONE + e)
        chance = high if logit >= _ZERO else e * high
        task, action = tasks[a], actions[a]
        if played[task, t] == action:
            gain[a], table[task, t, action] = _ZERO, seen[task, t]
        else:
            outcome = _ONE if uniform[task, t, action] < chance else _ZERO
            gain[a], table[task, t, action] = _ONE, outcome
        error[a] = table[task, t, action]
    i = lead
    for k in range(size):  # direction = (XᵀX + I)^-1 x
        for j in range(k + 1):
            for a in range(n):
                direction[k, a] += inputs[i, a] * inputs[j, a]
            if j < k:
                for a in range(n):
                    direction[j, a] += inputs[i, a] * inputs[k, a]
            i += 1
    spread = np.ones(n, np.float32)
    for k in range(size):
        for a in range(n):
            spread[a] += direction[k, a] * inputs[k, a]
            if raw:
                inputs[i + k, a] += gain[a] * error[a] * inputs[k, a]  # y·x
            else:
                error[a] -= inputs[i + k, a] * inputs[k, a]  # y − x·β̂
    for a in range(n):
        gain[a] /= spread[a]
    i = lead
    for k in range(size):
        for j in range(k + 1):
            for a in range(n):
                inputs[i, a] -= gain[a] * direction[k, a] * direction[j, a]
            i += 1
    for k in range(0 if raw else size):
        for a in range(n):
            inputs[i + k, a] += gain[a] * direction[k, a] * error[a]
