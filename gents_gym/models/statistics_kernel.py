"""Compiles the paper model's statistics along whole sequences, and their gradient."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor


class Statistics(torch.autograd.Function):
    """Statistics of the rows before given entries: ((XᵀX + I)^-1, XᵀY or β̂ = (XᵀX + I)^-1 XᵀY), flattened.

    Each row is added by a rank-one update, in float64. The gradient is with respect to the rows of X.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, outcomes: Tensor, at: Tensor, raw: bool) -> Tensor:
        """Return the statistics before the entries ``at`` (n,) of N sequences of T rows: (N, n, K² + K).

        Args:
            ctx: Stores what the gradient needs.
            rows: (N, T, K).
            outcomes: (N, T).
            at: Entries in rising order.
            raw: Whether the second statistic is XᵀY instead of β̂.
        """
        n_actions, _, size = rows.shape
        x = rows.detach().numpy()
        found = np.empty((n_actions, len(at), size * size + size), x.dtype)
        products = np.empty((n_actions, len(at), size), x.dtype)
        _forward(x, outcomes.numpy(), at.numpy(), raw, found, products)
        ctx.raw = raw
        statistics, sums = torch.from_numpy(found), torch.from_numpy(products)
        ctx.save_for_backward(rows, outcomes, at, statistics, sums)
        return statistics

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient with respect to the rows, (N, T, K)."""
        rows, outcomes, at, statistics, products = (part.detach().numpy() for part in ctx.saved_tensors)
        gradient = np.zeros(rows.shape, rows.dtype)
        above = upstream[0].contiguous().numpy()
        _backward(rows, outcomes, at, ctx.raw, statistics, products, above, gradient)
        return torch.from_numpy(gradient), None, None, None


@njit(cache=True)
def _forward(
    rows: np.ndarray,  # (N, T, K)
    outcomes: np.ndarray,  # (N, T)
    at: np.ndarray,  # (n,)
    raw: bool,
    found: np.ndarray,  # (N, n, K² + K)
    products: np.ndarray,  # (N, n, K)
) -> None:
    """Write the statistics before each entry, and XᵀY next to them."""
    size = rows.shape[2]
    for action in range(len(rows)):
        inverse, product, t = np.eye(size), np.zeros(size), 0
        for i in range(len(at)):
            while t < at[i]:
                row = rows[action, t].astype(np.float64)
                _add_row(inverse, row)
                product += outcomes[action, t] * row
                t += 1
            found[action, i, : size * size] = inverse.reshape(-1)
            found[action, i, size * size :] = product if raw else inverse @ product
            products[action, i] = product


@njit(cache=True)
def _add_row(inverse: np.ndarray, row: np.ndarray) -> None:
    """Update (XᵀX + I)^-1 by a row."""
    size = len(row)
    direction, spread = np.zeros(size), 1.0
    for k in range(size):
        for j in range(size):
            direction[j] += inverse[k, j] * row[k]
    for k in range(size):
        spread += direction[k] * row[k]
    for k in range(size):
        for j in range(size):
            inverse[k, j] -= direction[k] * direction[j] / spread


@njit(cache=True)
def _backward(
    rows: np.ndarray,  # (N, T, K)
    outcomes: np.ndarray,  # (N, T)
    at: np.ndarray,  # (n,)
    raw: bool,
    found: np.ndarray,  # (N, n, K² + K)
    products: np.ndarray,  # (N, n, K)
    above: np.ndarray,  # (N, n, K² + K): the gradient with respect to the statistics
    gradient: np.ndarray,  # (N, T, K): with respect to the rows
) -> None:
    """Write the gradient of the rows: that of XᵀX is −M G M with M its inverse, and rows affect all later entries."""
    size = rows.shape[2]
    half = np.empty((size, size), rows.dtype)
    for action in range(len(rows)):
        square, product = np.zeros((size, size), rows.dtype), np.zeros(size, rows.dtype)
        i = len(at) - 1
        for t in range(rows.shape[1] - 1, -1, -1):
            while i >= 0 and at[i] > t:
                inverse = found[action, i, : size * size].copy().reshape(size, size)
                to_inverse = above[action, i, : size * size].copy().reshape(size, size)
                to_other = above[action, i, size * size :].copy()
                if not raw:
                    to_inverse += np.outer(to_other, products[action, i])
                    to_other = inverse @ to_other
                half[:] = 0
                _add_product(inverse, to_inverse, half)
                _add_product(half, inverse, square)
                product += to_other
                i -= 1
            row = rows[action, t].copy()
            gradient[action, t] = outcomes[action, t] * product - square @ row - row @ square


@njit(cache=True)
def _add_product(one: np.ndarray, other: np.ndarray, result: np.ndarray) -> None:
    """Add the product of two small square matrices to the result; calls of a library take longer."""
    size = len(one)
    for i in range(size):
        for k in range(size):
            for j in range(size):
                result[i, j] += one[i, k] * other[k, j]
