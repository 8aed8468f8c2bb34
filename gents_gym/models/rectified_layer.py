"""Computes linear layers of rectified units and their gradients, by compiled loops that skip the units at zero."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from gents_gym.numerics.rectified import BLOCK, add_products, aligned, padded

# Rows at a time, few enough that their units stay in the cache. Columns of a power of two would share its lines.
CHUNK = 240

_ZERO = np.float32(0)


def apply_layers(layers: nn.Sequential, x: Tensor) -> Tensor:
    """Return ``layers(x)`` for linear layers and rectified units; wide float32 layers after these skip zeros."""
    waiting = False  # whether x is still to be rectified
    for layer in layers:
        if isinstance(layer, nn.ReLU):
            waiting = True
        elif waiting and x.dtype == torch.float32 and isinstance(layer, nn.Linear) and 2 * layer.out_features > BLOCK:
            x, waiting = RectifiedLinear.apply(x, layer.weight, layer.bias), False  # type: ignore[no-untyped-call]
        else:
            x, waiting = layer(x.relu() if waiting else x), False
    return x.relu() if waiting else x


class RectifiedLinear(torch.autograd.Function):
    """max(x, 0)·Wᵀ + b, which is ``linear(relu(x), W, b)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the layer, (..., K) to (..., J)."""
        ctx.save_for_backward(x, weight)
        n_out, n_in = weight.shape
        weights = aligned(padded(n_in), padded(n_out))
        weights[:n_in, :n_out] = weight.detach().numpy().T
        rows = x.detach().reshape(-1, n_in).numpy()
        result = np.empty((len(rows), n_out), np.float32)
        units, sums = aligned(CHUNK, padded(n_in)), aligned(CHUNK, padded(n_out))
        _forward(rows, weights, bias.detach().numpy(), units, sums, result)
        return torch.from_numpy(result).reshape(*x.shape[:-1], n_out)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients with respect to x, W and b."""
        x, weight = ctx.saved_tensors
        n_out, n_in = weight.shape
        weights, gradient = aligned(padded(n_out), padded(n_in)), aligned(padded(n_in), padded(n_out))
        weights[:n_out, :n_in] = weight.detach().numpy()
        rows = x.detach().reshape(-1, n_in).numpy()
        above = upstream[0].reshape(-1, n_out).numpy()
        result, bias = np.empty(rows.shape, np.float32), np.zeros(n_out, np.float32)
        columns, slopes = aligned(padded(n_in), CHUNK), aligned(CHUNK, padded(n_out))
        sums = aligned(CHUNK, padded(n_in))
        _backward(rows, above, weights, columns, slopes, sums, result, gradient, bias)
        by_weight = torch.from_numpy(np.ascontiguousarray(gradient[:n_in, :n_out].T))
        return torch.from_numpy(result).reshape(x.shape), by_weight, torch.from_numpy(bias)


@njit(cache=True, error_model="numpy")
def _forward(
    rows: np.ndarray,  # (n, K)
    weights: np.ndarray,  # padded (K, J)
    bias: np.ndarray,  # (J,)
    units: np.ndarray,  # scratch memory: CHUNK padded rows of K
    sums: np.ndarray,  # and of J
    result: np.ndarray,  # (n, J)
) -> None:
    """Write the layer of all rows."""
    n_out = len(bias)
    for start in range(0, len(rows), CHUNK):
        here = rows[start : start + CHUNK]
        n = len(here)
        for r in range(n):
            for k in range(rows.shape[1]):
                units[r, k] = _ZERO if here[r, k] <= _ZERO else here[r, k]  # NaN stays NaN
            for j in range(n_out):
                sums[r, j] = bias[j]
        add_products(units[:n], weights, sums[:n])
        for r in range(n):
            for j in range(n_out):
                result[start + r, j] = sums[r, j]


@njit(cache=True, error_model="numpy")
def _backward(
    rows: np.ndarray,  # (n, K)
    above: np.ndarray,  # (n, J): the gradient with respect to the layer
    weights: np.ndarray,  # padded (J, K)
    columns: np.ndarray,  # scratch memory: CHUNK columns of padded K
    slopes: np.ndarray,  # CHUNK padded rows of J
    sums: np.ndarray,  # and of K
    result: np.ndarray,  # (n, K): the gradient with respect to the rows
    gradient: np.ndarray,  # padded (K, J): that of the weights is added to it
    bias: np.ndarray,  # (J,): that of the biases is added to it
) -> None:
    """Write the gradients of all rows."""
    n_out, n_in = above.shape[1], rows.shape[1]
    for start in range(0, len(rows), CHUNK):
        here = rows[start : start + CHUNK]
        n = len(here)
        columns[:, n:] = _ZERO
        for r in range(n):
            for k in range(n_in):
                columns[k, r] = _ZERO if here[r, k] <= _ZERO else here[r, k]
            for j in range(n_out):
                slopes[r, j] = above[start + r, j]
                bias[j] += slopes[r, j]
        add_products(columns, slopes, gradient)
        sums[:] = _ZERO
        add_products(slopes[:n], weights, sums[:n])
        for r in range(n):
            for k in range(n_in):
                result[start + r, k] = _ZERO if here[r, k] <= _ZERO else sums[r, k]
