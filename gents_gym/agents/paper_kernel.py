"""Fast imputation with the paper model: states and contexts in, completed tables out.

Library products do the head's layers; a compiled loop does all between them. The state lives inside the head's input:
column a of it is (x, the lower half of (XᵀX + I)^-1, β̂) of action a. A hidden unit that is always 1 carries the biases.
"""

from typing import Any

import numpy as np
import torch
from numba import njit

from gents_gym.models.paper import PaperModel, PaperState
from gents_gym.series import decay32

ROWS = 256  # actions at a time: their hidden layers stay in the second-level cache

_ZERO, _ONE = np.float32(0), np.float32(1)


def impute_paper(
    model: PaperModel,
    state: PaperState,
    rows: np.ndarray,
    played: np.ndarray,
    seen: np.ndarray,
    uniform: np.ndarray,
) -> np.ndarray:
    """Return the tables (B, T, A): row after row, every missing outcome is drawn and absorbed.

    Args:
        model: The paper model.
        state: Its state after all that was observed, of N = B·A actions.
        rows: The contexts as the model's histories keep them, (B, T, K).
        played: The action observed in a row, (B, T), -1 for none.
        seen: Its outcome, (B, T).
        uniform: (B, T, A).
    """
    with torch.no_grad():
        first, others, last, bias = _head(model)
        known = state.action_features @ model.plain[:, : model.config.action_dim].T + model.bias  # (N, W)
        base = _widened(known.numpy(), first.shape[1])
        coefficients = (state.inverse * state.products[:, None]).sum(2)
    lower = np.tril_indices(model.size)
    start = np.concatenate([state.inverse.numpy()[:, *lower], coefficients.numpy()], axis=1)  # (N, P+K)
    table = np.empty_like(uniform)
    n_all = len(base)
    for begin in range(0, n_all, ROWS):
        here = slice(begin, min(begin + ROWS, n_all))
        inputs = np.empty((first.shape[0], here.stop - begin), np.float32)
        inputs[rows.shape[2] :] = start[here].T
        layers = [np.empty((here.stop - begin, first.shape[1]), np.float32) for _ in range(2)]
        for t in range(rows.shape[1]):
            _set_contexts(inputs, rows, t, begin, uniform.shape[2])
            np.matmul(inputs.T, first, out=layers[0])
            np.add(layers[0], base[here], out=layers[0])
            for weights in others:
                np.maximum(layers[0], _ZERO, out=layers[0])
                np.matmul(layers[0], weights, out=layers[1])
                layers.reverse()
            _absorb(inputs, layers[0], last, bias, rows.shape[2], t, begin, played, seen, uniform, table)
    return table


def _head(model: PaperModel) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, np.float32]:
    """Return the head's weights, inputs first, as columns of the widened layers."""
    size, action_dim = model.size, model.config.action_dim
    wide = -(-(model.config.width + 1) // 8) * 8
    folded = model.folded.numpy()
    square = folded[:, : size * size].reshape(-1, size, size)
    square = np.tril(square) + np.triu(square, 1).swapaxes(1, 2)  # the inverse is symmetric: one half, both weights
    parts = [model.plain.numpy()[:, action_dim:], square[:, *np.tril_indices(size)], folded[:, size * size :]]
    first = np.zeros((sum(part.shape[1] for part in parts), wide), np.float32)
    first[:, : model.config.width] = np.concatenate(parts, axis=1).T
    others = []
    for layer in model.hidden:
        if isinstance(layer, torch.nn.Linear):
            weights = np.zeros((wide, wide), np.float32)
            weights[: model.config.width] = _widened(layer.weight.numpy().T, wide, 0)
            weights[model.config.width] = _widened(layer.bias.numpy()[None], wide)
            others.append(weights)
    last = _widened(model.last.weight.numpy(), wide, 0)[0]
    return first, others, last, np.float32(model.last.bias.item())


def _widened(values: np.ndarray, wide: int, one: float = 1) -> np.ndarray:
    """Return (n, W) values as (n, wide): then ``one`` for the unit that carries the biases, and zeros."""
    widened = np.zeros((len(values), wide), np.float32)
    widened[:, : values.shape[1]] = values
    widened[:, values.shape[1]] = one
    return widened


@njit(cache=True)
def _set_contexts(inputs: np.ndarray, rows: np.ndarray, t: int, begin: int, n_actions: int) -> None:
    """Put row t of each action's task into the first D lines of the inputs."""
    for a in range(inputs.shape[1]):
        for k in range(rows.shape[2]):
            inputs[k, a] = rows[(begin + a) // n_actions, t, k]


@njit(cache=True, fastmath=True, error_model="numpy")
def _absorb(
    inputs: np.ndarray,  # (D+P+D, n)
    hidden: np.ndarray,  # (n, wide): the last hidden layer before its activation
    last: np.ndarray,  # (wide,)
    bias: Any,
    size: int,  # D
    t: int,
    begin: int,
    played: np.ndarray,  # (B, T)
    seen: np.ndarray,  # (B, T)
    uniform: np.ndarray,  # (B, T, A)
    table: np.ndarray,  # (B, T, A)
) -> None:
    """Draw row t's outcomes into the table, and update the statistics in the inputs with the missing ones."""
    n, n_actions = inputs.shape[1], uniform.shape[2]
    gain, error = np.empty(n, np.float32), np.empty(n, np.float32)
    direction = np.zeros((size, n), np.float32)
    for a in range(n):
        logit = bias
        for j in range(len(last)):
            logit += last[j] * max(hidden[a, j], _ZERO)
        e = decay32(logit)
        high = _ONE / (_ONE + e)
        chance = high if logit >= _ZERO else e * high
        task, action = (begin + a) // n_actions, (begin + a) % n_actions
        if played[task, t] == action:
            gain[a], table[task, t, action] = _ZERO, seen[task, t]
        else:
            outcome = _ONE if uniform[task, t, action] < chance else _ZERO
            gain[a], table[task, t, action] = _ONE, outcome
        error[a] = table[task, t, action]
    i = size
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
            error[a] -= inputs[i + k, a] * inputs[k, a]  # y − x·β̂
    for a in range(n):
        gain[a] /= spread[a]
    i = size
    for k in range(size):
        for j in range(k + 1):
            for a in range(n):
                inputs[i, a] -= gain[a] * direction[k, a] * direction[j, a]
            i += 1
    for k in range(size):
        for a in range(n):
            inputs[i + k, a] += gain[a] * direction[k, a] * error[a]
