"""Compiles learned maps of contexts, so that each context is mapped on its own."""

from typing import Any

import numpy as np
import torch
from numba import njit

from gents_gym.models.sequence import network

_ZERO = np.float32(0)


def context_network(config: Any) -> torch.nn.Sequential:
    """Return a fresh φ̂ of a configuration's sizes; if they are 0 it is empty, which is the identity."""
    if not config.context_features:
        return torch.nn.Sequential()
    return network(config.context_dim, config.context_width, config.context_features)


def context_weights(config: Any) -> int:
    """Return how many weights φ̂ has, without biases."""
    ends = config.context_dim + config.context_features
    return config.context_width * (config.context_width + ends) if config.context_features else 0


class ContextRows:
    """``model.rows`` of a model with a ``context_map``, as a function of arrays: (..., D) to (..., K).

    A row's bits do not depend on other rows, while library products may round differently for another number of rows.
    """

    def __init__(self, model: Any) -> None:
        """Copy the model's scaling and φ̂ as they are now."""
        self._shift, self._scale = model.context_scaling.numpy()
        layers = [layer for layer in model.context_map if isinstance(layer, torch.nn.Linear)]
        weights = (np.ascontiguousarray(layer.weight.detach().numpy().T) for layer in layers)  # (inputs, outputs) each
        self._layers = (*weights, *(layer.bias.detach().numpy() for layer in layers))
        with torch.no_grad():
            zeros = model.rows(torch.zeros(1, model.config.context_dim))
        self._size = zeros.shape[1]  # K
        self._lead = self._size - (layers[-1].out_features if layers else model.config.context_dim)  # 1, or 0

    def __call__(self, contexts: np.ndarray) -> np.ndarray:
        """Return the rows."""
        scaled = self.scale(contexts)
        rows = np.ones((*contexts.shape[:-1], self._size), np.float32)
        if self._layers:
            first, second, third, *biases = self._layers
            flat = scaled.reshape(-1, contexts.shape[-1])
            flat_rows = rows.reshape(-1, self._size)[:, self._lead :]
            _run(flat, first, second, third, biases[0], biases[1], biases[2], flat_rows)
        else:
            rows[..., self._lead :] = scaled
        return rows

    def scale(self, contexts: np.ndarray) -> np.ndarray:
        """Return the contexts in the model's units, (..., D)."""
        return (contexts - self._shift) * self._scale


def map_contexts(model: Any, contexts: np.ndarray) -> np.ndarray:
    """Return ``model.rows`` of contexts, (..., D) to (..., K)."""
    return ContextRows(model)(contexts)


@njit(cache=True)
def _run(
    contexts: np.ndarray,  # (n, D) float32
    first: np.ndarray,  # (D, W)
    second: np.ndarray,  # (W, W)
    third: np.ndarray,  # (W, P)
    first_bias: np.ndarray,
    second_bias: np.ndarray,
    third_bias: np.ndarray,
    features: np.ndarray,  # (n, P)
) -> None:
    """Write φ̂ of every context."""
    for i in range(len(contexts)):
        a, b, c = first_bias.copy(), second_bias.copy(), third_bias.copy()
        _add(contexts[i], first, a)
        _add(np.maximum(a, _ZERO), second, b)
        _add(np.maximum(b, _ZERO), third, c)
        features[i] = c


@njit(cache=True)
def _add(inputs: np.ndarray, weights: np.ndarray, outputs: np.ndarray) -> None:
    """Add inputs·weights to the outputs."""
    for k in range(len(inputs)):
        if inputs[k] != _ZERO:  # as is half of what an activation lets through
            for j in range(len(outputs)):
                outputs[j] += inputs[k] * weights[k, j]
