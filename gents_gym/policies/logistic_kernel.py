"""The compiled logistic fit: tables in, Newton's optima out; every inner loop runs along a task's rows."""

import numpy as np
from numba import njit

from gents_gym.series import decay64


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
    weighted = weights.shape[0] > 0
    converged = np.zeros((n_tasks, n_actions), np.bool_)
    ones = np.ones(n_rows, np.float32)
    x, products = np.empty((size, n_rows)), np.empty((size * (size + 1) // 2, n_rows))
    y, w = np.empty(n_rows), np.empty(n_rows)
    work = (np.empty(n_rows), np.empty(n_rows), np.empty(size), np.empty(size), np.empty((size, size)))
    for b in range(n_tasks):
        n = 0 if weighted else _gather(rows[b], ones, x, products, w)
        for a in range(n_actions):
            if wanted[b, a]:
                counts = weights[b, a] if weighted else ones
                if weighted:
                    n = _gather(rows[b], counts, x, products, w)
                i = 0
                for t in range(n_rows):
                    if counts[t] > 0:
                        y[i] = outcomes[b, a, t]
                        i += 1
                converged[b, a] = _solve(x, products, y, w, n, penalty, solution[b, a], tolerance, max_iterations, work)
    return converged


@njit(cache=True, fastmath=True, error_model="numpy")
def _gather(rows: np.ndarray, counts: np.ndarray, x: np.ndarray, products: np.ndarray, w: np.ndarray) -> int:
    """Put the rows that count side by side, with the products of their features, and return how many there are."""
    size, n = rows.shape[0], 0
    for t in range(rows.shape[1]):
        if counts[t] > 0:
            for k in range(size):
                x[k, n] = rows[k, t]
            w[n] = counts[t]
            n += 1
    i = 0
    for k in range(size):
        for j in range(k + 1):
            for t in range(n):
                products[i, t] = x[k, t] * x[j, t]
            i += 1
    return n


@njit(cache=True, fastmath=True, error_model="numpy")
def _solve(x, products, y, w, n, penalty, beta, tolerance, max_iterations, work):  # type: ignore[no-untyped-def]
    """Solve one problem on the first n columns of x (K, n), in place of beta; return whether it converged."""
    slope, curve, gradient, step, hessian = work
    size, before = len(beta), 0.0
    step[:] = 0
    for _ in range(max_iterations):
        _slopes(x, y, w, n, beta, slope, curve)
        norm, i = 0.0, 0
        for k in range(size):
            total = 0.0
            for t in range(n):
                total += slope[t] * x[k, t]
            gradient[k] = total + (penalty * beta[k] if k > 0 else 0.0)
            norm = max(norm, abs(gradient[k]))
        if norm <= tolerance:
            return True
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
                for t in range(n):
                    total += curve[t] * products[i, t]
                hessian[k, j] = total + (penalty if j == k and k > 0 else 0.0)
                i += 1
        _newton_step(hessian, gradient, step)
        before = 0.0
        for k in range(size):
            beta[k] -= step[k]
            before += gradient[k] * step[k]
    return False


@njit(cache=True, fastmath=True, error_model="numpy")
def _slopes(x, y, w, n, beta, slope, curve):  # type: ignore[no-untyped-def]
    """Write w(p − y) and wp(1 − p) of the first n rows."""
    for t in range(n):
        slope[t] = beta[0]
    for k in range(1, x.shape[0]):
        for t in range(n):
            slope[t] += beta[k] * x[k, t]
    for t in range(n):
        logit = slope[t]
        e = decay64(logit)
        high = 1 / (1 + e)
        chance = high if logit >= 0 else e * high
        slope[t] = w[t] * (chance - y[t])
        curve[t] = w[t] * chance * (1 - chance)


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
