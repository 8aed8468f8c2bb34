"""A model's learned map of contexts, compiled: contexts in, the rows that histories keep out, each on its own."""

import numpy as np
import torch
from numba import njit

from gents_gym.models.sequence import SequenceModel

_ZERO = np.float32(0)


def map_contexts(model: SequenceModel, contexts: np.ndarray) -> np.ndarray:
    """Return ``model.rows`` of contexts, (..., D) to (..., K).

    A row's bits do not depend on the others: library products may round differently for another number of rows.
    """
    with torch.no_grad():
        if not model.config.context_features:
            return model.rows(torch.tensor(contexts)).numpy()
        scaled = model.scale_contexts(torch.tensor(contexts)).reshape(-1, contexts.shape[-1]).numpy()
    layers = [layer for layer in model.context_map if isinstance(layer, torch.nn.Linear)]
    weights = [np.ascontiguousarray(layer.weight.detach().numpy().T) for layer in layers]  # (inputs, outputs) each
    biases = [layer.bias.detach().numpy() for layer in layers]
    rows = np.ones((len(scaled), 1 + len(biases[2])), np.float32)
    _run(scaled, weights[0], weights[1], weights[2], biases[0], biases[1], biases[2], rows)
    return rows.reshape(*contexts.shape[:-1], -1)


@njit(cache=True)
def _run(
    contexts: np.ndarray,  # (n, D) float32
    first: np.ndarray,  # (D, W)
    second: np.ndarray,  # (W, W)
    third: np.ndarray,  # (W, P)
    first_bias: np.ndarray,
    second_bias: np.ndarray,
    third_bias: np.ndarray,
    rows: np.ndarray,  # (n, 1+P)
) -> None:
    """Write φ̂ of every context behind the leading one of its row."""
    for i in range(len(contexts)):
        a, b, c = first_bias.copy(), second_bias.copy(), third_bias.copy()
        _add(contexts[i], first, a)
        _add(np.maximum(a, _ZERO), second, b)
        _add(np.maximum(b, _ZERO), third, c)
        rows[i, 1:] = c


@njit(cache=True)
def _add(inputs: np.ndarray, weights: np.ndarray, outputs: np.ndarray) -> None:
    """Add inputs·weights to the outputs."""
    for k in range(len(inputs)):
        if inputs[k] != _ZERO:  # as is half of what an activation lets through
            for j in range(len(outputs)):
                outputs[j] += inputs[k] * weights[k, j]
