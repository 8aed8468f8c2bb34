"""The moments of linear predictors with Gaussian coefficients, compiled, so that each is computed on its own."""

import numpy as np
from numba import njit


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
