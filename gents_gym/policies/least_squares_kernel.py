"""Compiles the least-squares fit: Gram matrices of centred contexts and their Cholesky factors."""

import numpy as np
from numba import njit

SINGULAR = 1e-10  # a smaller pivot, relative to the feature's sum of squares (mean included), may be rounding


@njit(cache=True, fastmath=True, error_model="numpy")
def fit_least_squares(
    contexts: np.ndarray,  # (B, T, D) float32
    rewards: np.ndarray,  # (B, T, A) float32
    weights: np.ndarray,  # (B, T, A) float32, or (0, 0, 0) for ones
    penalty: float,  # on the slopes
    solution: np.ndarray,  # (B, A, 1+D) float64, overwritten: intercept first
) -> np.ndarray:
    """Solve the penalised least-squares problems; return which were solved, (B, A).

    An unsolved problem has rows that do not determine the slopes. Without weights, the actions of a task share one
    Cholesky factor.
    """
    n_tasks, n_rows, size = contexts.shape
    n_actions = rewards.shape[2]
    weighted = weights.shape[0] > 0
    solved = np.zeros((n_tasks, n_actions), np.bool_)
    x, centred = np.empty((size, n_rows)), np.empty((size, n_rows))  # a feature's numbers are contiguous
    y, w, centre = np.empty(n_rows), np.ones(n_rows), np.empty(size)
    factor = np.empty((size, size))
    for b in range(n_tasks):
        for t in range(n_rows):
            for k in range(size):
                x[k, t] = contexts[b, t, k]
        found = not weighted and _factorise(x, w, float(n_rows), penalty, centre, centred, factor)
        for a in range(n_actions):
            total, level = float(n_rows), 0.0
            if weighted:
                total = 0.0
                for t in range(n_rows):
                    w[t] = weights[b, t, a]
                    total += w[t]
                found = total > 0 and _factorise(x, w, total, penalty, centre, centred, factor)
            if found:
                for t in range(n_rows):
                    y[t] = rewards[b, t, a]
                    level += w[t] * y[t]
                level /= total
                for t in range(n_rows):
                    y[t] = y[t] - level if w[t] > 0 else 0.0
                _solve(centred, y, level, centre, factor, solution[b, a])
            solved[b, a] = found
    return solved


@njit(cache=True, fastmath=True, error_model="numpy")
def _factorise(x, w, total, penalty, centre, centred, factor):  # type: ignore[no-untyped-def]
    """Write the features' means, the centred features times the weights, and the Cholesky factor of their Gram matrix.

    Returns whether the matrix is positive definite by more than rounding error.
    """
    size, n_rows = x.shape
    for k in range(size):
        mean = 0.0
        for t in range(n_rows):
            mean += w[t] * x[k, t]
        centre[k] = mean / total
        for t in range(n_rows):
            centred[k, t] = w[t] * (x[k, t] - centre[k])
    for k in range(size):
        for j in range(k + 1):
            dot = 0.0
            for t in range(n_rows):
                dot += centred[k, t] * (x[j, t] - centre[j])
            factor[k, j] = dot + (penalty if j == k else 0.0)
    for k in range(size):
        least = SINGULAR * (factor[k, k] + total * centre[k] ** 2)
        for j in range(k + 1):
            rest = factor[k, j]
            for i in range(j):
                rest -= factor[k, i] * factor[j, i]
            if j < k:
                factor[k, j] = rest / factor[j, j]
            elif rest > least:
                factor[k, k] = np.sqrt(rest)
            else:
                return False
    return True


@njit(cache=True, fastmath=True, error_model="numpy")
def _solve(centred, y, level, centre, factor, beta):  # type: ignore[no-untyped-def]
    """Write the intercept and the slopes of one action."""
    size, n_rows = centred.shape
    for k in range(size):
        rest = 0.0
        for t in range(n_rows):
            rest += centred[k, t] * y[t]
        for i in range(k):
            rest -= factor[k, i] * beta[1 + i]
        beta[1 + k] = rest / factor[k, k]
    beta[0] = level
    for k in range(size - 1, -1, -1):
        rest = beta[1 + k]
        for i in range(k + 1, size):
            rest -= factor[i, k] * beta[1 + i]
        beta[1 + k] = rest / factor[k, k]
        beta[0] -= beta[1 + k] * centre[k]
