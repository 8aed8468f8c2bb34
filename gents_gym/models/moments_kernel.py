"""Compiles the moments of linear predictors with Gaussian coefficients, so that each is computed on its own."""

import numpy as np
from numba import njit

LEAST_SPREAD = 1e-6  # variances of a predictor below this are rounding error


@njit(cache=True)
def predictor_moments(
    rows: np.ndarray,  # (B, C, K) float32
    mean: np.ndarray,  # (B·A, Q·K) float32
    covariance: np.ndarray,  # (B·A, Q·K, Q·K) float32
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (B, C, A, Q) and covariance (B, C, A, Q, Q) of the predictors x·β_q, in double precision."""
    n_tasks, n_contexts, size = rows.shape
    n_actions, n_predictors = len(mean) // n_tasks, mean.shape[1] // size
    centre = np.zeros((n_tasks, n_contexts, n_actions, n_predictors))
    spread = np.zeros((n_tasks, n_contexts, n_actions, n_predictors, n_predictors))
    for b in range(n_tasks):
        for c in range(n_contexts):
            x = rows[b, c].astype(np.float64)
            for a in range(n_actions):
                m, p = mean[b * n_actions + a], covariance[b * n_actions + a]
                for i in range(len(m)):
                    centre[b, c, a, i // size] += m[i] * x[i % size]
                    for j in range(len(m)):
                        spread[b, c, a, i // size, j // size] += x[i % size] * p[i, j] * x[j % size]
    return centre, spread


@njit(cache=True)
def lower_roots(covariance: np.ndarray) -> np.ndarray:  # (n, Q, Q)
    """Return lower triangular L with LLᵀ = V; pivots that are too small become ``LEAST_SPREAD``."""
    found = np.zeros_like(covariance)
    for v, lower in zip(covariance, found):  # noqa: B905
        for j in range(len(v)):
            for i in range(j + 1):
                left = v[j, i]
                for k in range(i):
                    left -= lower[j, k] * lower[i, k]
                lower[j, i] = left / lower[i, i] if i < j else np.sqrt(max(left, LEAST_SPREAD))
    return found
