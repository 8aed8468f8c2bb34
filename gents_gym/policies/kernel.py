"""The compiled logistic fit: tables in, Newton's optima out; every inner loop runs along a task's rows."""

import numpy as np
from numba import njit


@njit(cache=True, fastmath=True, error_model="numpy")
def fit_logistic(
    rows: np.ndarray,  # (B, K, T) float64, the first feature ones
    outcomes: np.ndarray,  # (B, A, T) float32
    weights: np.ndarray,  # (B, A, T) float32, or (0, 0, 0) for ones
    penalty: float,  # on all but the first coefficient
    wanted: np.ndarray,  # (B, A) bool: the problems to solve
    solution: np.ndarray,  # (B, A, K) float64: the start, and then the optimum
    tolerance: float,
    max_iterations: int,
) -> np.ndarray:
    """Minimise the penalised log loss of the wanted problems by Newton's method; return which converged, (B, A).

    A step that goes too far is cut by the secant rule. What has not converged is left to a solver with a line search.
    """
    n_tasks, size, n_rows = rows.shape
    n_actions = outcomes.shape[1]
    converged = np.zeros((n_tasks, n_actions), np.bool_)
    products = np.empty((size * (size + 1) // 2, n_rows))
    slope, curve = np.empty(n_rows), np.empty(n_rows)
    gradient, step = np.empty(size), np.empty(size)
    hessian = np.empty((size, size))
    for b in range(n_tasks):
        i = 0
        for k in range(size):
            for j in range(k + 1):
                for t in range(n_rows):
                    products[i, t] = rows[b, k, t] * rows[b, j, t]
                i += 1
        for a in range(n_actions):
            if not wanted[b, a]:
                continue
            beta, before = solution[b, a], 0.0
            step[:] = 0
            for _ in range(max_iterations):
                _slopes(rows[b], outcomes[b, a], beta, slope, curve)
                if weights.shape[0] > 0:
                    for t in range(n_rows):
                        slope[t] *= weights[b, a, t]
                        curve[t] *= weights[b, a, t]
                norm, i = 0.0, 0
                for k in range(size):
                    total = 0.0
                    for t in range(n_rows):
                        total += slope[t] * rows[b, k, t]
                    gradient[k] = total + (penalty * beta[k] if k > 0 else 0.0)
                    norm = max(norm, abs(gradient[k]))
                if norm <= tolerance:
                    converged[b, a] = True
                    break
                descent = 0.0  # along the last step: negative where the step went beyond the line's minimum
                for k in range(size):
                    descent += gradient[k] * step[k]
                if descent < -0.5 * before:  # too far beyond: back to where a straight line puts the minimum
                    share = before / (before - descent)
                    for k in range(size):
                        beta[k] += (1 - share) * step[k]
                        step[k] *= share
                    before *= share
                    continue
                for k in range(size):
                    for j in range(k + 1):
                        total = 0.0
                        for t in range(n_rows):
                            total += curve[t] * products[i, t]
                        hessian[k, j] = total + (penalty if j == k and k > 0 else 0.0)
                        i += 1
                _newton_step(hessian, gradient, step)
                before = 0.0
                for k in range(size):
                    beta[k] -= step[k]
                    before += gradient[k] * step[k]
    return converged


@njit(cache=True, fastmath=True, error_model="numpy")
def _slopes(rows: np.ndarray, outcomes: np.ndarray, beta: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> None:
    """Write p − y and p(1 − p) of every row; the sigmoid is made of sums and products, which run in parallel."""
    size, n_rows = rows.shape
    for t in range(n_rows):
        slope[t] = beta[0]
    for k in range(1, size):
        for t in range(n_rows):
            slope[t] += beta[k] * rows[k, t]
    for t in range(n_rows):
        logit = slope[t]
        y = -min(abs(logit), 40.0) / 64  # e^x = (e^(x/64))^64, the inner one by its series
        e = 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7 * (1 + y / 8 * (
            1 + y / 9 * (1 + y / 10)))))))))  # fmt: skip
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        high = 1 / (1 + e)
        chance = high if logit >= 0 else e * high
        slope[t] = chance - outcomes[t]
        curve[t] = chance * (1 - chance)


@njit(cache=True, error_model="numpy")
def _newton_step(hessian: np.ndarray, gradient: np.ndarray, step: np.ndarray) -> None:
    """Solve H·step = gradient by a Cholesky factor that overwrites the lower half of H."""
    size = len(gradient)
    for k in range(size):
        for j in range(k + 1):
            total = hessian[k, j]
            for i in range(j):
                total -= hessian[k, i] * hessian[j, i]
            hessian[k, j] = np.sqrt(max(total, 1e-12)) if j == k else total / hessian[j, j]
    for k in range(size):
        total = gradient[k]
        for i in range(k):
            total -= hessian[k, i] * step[i]
        step[k] = total / hessian[k, k]
    for k in range(size - 1, -1, -1):
        total = step[k]
        for i in range(k + 1, size):
            total -= hessian[i, k] * step[i]
        step[k] = total / hessian[k, k]
