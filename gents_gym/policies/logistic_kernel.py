"""Compiles the logistic fit by Newton's method; every inner loop runs along a task's rows."""

import numpy as np
from numba import njit

from gents_gym.numerics.series import decay64

FEW = 64  # rows on which starting points are compared


@njit(cache=True, fastmath=True, error_model="numpy")
def fit_logistic(
    contexts: np.ndarray,  # (B, T, D) float32
    outcomes: np.ndarray,  # (B, T, A) float32, each 0 or 1
    weights: np.ndarray,  # (B, T, A) float32, or (0, 0, 0) for ones
    penalty: float,  # on the slopes
    solution: np.ndarray,  # (B, A, 1+D) float64, intercept first: an earlier one, then the optimum; 0 of a constant
    constant: np.ndarray,  # (B, A) float64: the outcome of a column that has one alone, 0 of one without rows, else NaN
    tolerance: float,
    max_iterations: int,
    warm: bool,  # whether there is an earlier solution
) -> np.ndarray:
    """Minimise the penalised log loss by Newton's method; return which columns are solved, constant ones included.

    It starts at the linear discriminant, or at the earlier solution if that fits the first rows better. A step that
    goes too far is shortened by the secant rule. Columns that do not converge are left to a solver with a line search.
    """
    n_tasks, n_rows, size = contexts.shape
    n_actions = outcomes.shape[2]
    weighted = weights.shape[0] > 0
    solved = np.ones((n_tasks, n_actions), np.bool_)
    ones, counts = np.ones(n_rows, np.float32), np.ones(n_rows, np.float32)
    x, y, w, largest = np.empty((1 + size, n_rows)), np.empty(n_rows), np.empty(n_rows), np.empty(1 + size)
    sums, factor = np.empty(1 + size), np.empty((1 + size, 1 + size))
    work = (np.empty(n_rows), np.empty(n_rows), np.empty(1 + size), np.empty(1 + size), np.empty((1 + size, 1 + size)))
    for b in range(n_tasks):
        n = 0
        if not weighted:
            n = _gather(contexts[b], ones, x, w, largest)
            _bound(x, w, n, penalty, sums, factor)
        for a in range(n_actions):
            if weighted:
                for t in range(n_rows):
                    counts[t] = weights[b, t, a]
            winning, i = 0.0, 0
            for t in range(n_rows):
                if counts[t] > 0:
                    y[i] = outcomes[b, t, a]
                    winning += y[i]
                    i += 1
            if winning == 0 or winning == i:
                constant[b, a] = 1.0 if winning > 0 else 0.0
                solution[b, a] = 0
                continue
            if weighted:
                n = _gather(contexts[b], counts, x, w, largest)
                _bound(x, w, n, penalty, sums, factor)
            constant[b, a] = np.nan
            beta = solution[b, a]
            _start(x, y, w, n, sums, factor, beta, warm, work)
            solved[b, a] = _solve(x, y, w, n, penalty, beta, largest, tolerance, max_iterations, work)
    return solved


@njit(cache=True, fastmath=True, error_model="numpy")
def _gather(contexts, counts, x, w, largest):  # type: ignore[no-untyped-def]
    """Store the rows (1, context) that count contiguously, and each feature's largest size; return their number."""
    size, n = contexts.shape[1], 0
    for t in range(contexts.shape[0]):
        if counts[t] > 0:
            x[0, n] = 1
            for k in range(size):
                x[1 + k, n] = contexts[t, k]
            w[n] = counts[t]
            n += 1
    for k in range(1 + size):
        most = 0.0
        for t in range(n):
            most = max(most, abs(x[k, t]))
        largest[k] = most
    return n


@njit(cache=True, fastmath=True, error_model="numpy")
def _products(x, weight, n, penalty, matrix):  # type: ignore[no-untyped-def]
    """Write the lower half of Σ weight·xxᵀ of the first n rows, plus the penalty on the slopes."""
    size = x.shape[0]
    for k in range(0, size, 2):  # two rows and two columns share each read
        h = min(k + 1, size - 1)
        for j in range(0, k + 1, 2):
            i = min(j + 1, size - 1)
            kj = ki = hj = hi = 0.0
            for t in range(n):
                p, q = weight[t] * x[k, t], weight[t] * x[h, t]
                kj += p * x[j, t]
                ki += p * x[i, t]
                hj += q * x[j, t]
                hi += q * x[i, t]
            matrix[k, j], matrix[k, i], matrix[h, j], matrix[h, i] = kj, ki, hj, hi
    for k in range(1, size):
        matrix[k, k] += penalty


@njit(cache=True, fastmath=True, error_model="numpy")
def _bound(x, w, n, penalty, sums, factor):  # type: ignore[no-untyped-def]
    """Write the sums of the features, and the factor of ¼Σwxxᵀ plus the penalty, which bounds every Hessian."""
    _products(x, w, n, 4 * penalty, factor)
    sums[:] = factor[:, 0]
    for k in range(len(sums)):
        for j in range(k + 1):
            factor[k, j] /= 4
    _factorise(factor)


@njit(cache=True, fastmath=True, error_model="numpy")
def _start(x, y, w, n, sums, factor, beta, warm, work):  # type: ignore[no-untyped-def]
    """Write the linear discriminant of the two classes to beta, or leave beta if it fits the first rows better.

    The discriminant's slopes are those of the first Newton step from zero, divided by the share of y that they leave
    unexplained. From there Newton's method takes four steps on average; from another table's optimum it takes five or
    six.
    """
    slope, curve, winning, first, _ = work
    size = len(beta)
    for k in range(size):
        total = 0.0
        for t in range(n):
            total += w[t] * y[t] * x[k, t]
        winning[k] = total
    ones, zeros = winning[0], sums[0] - winning[0]
    for k in range(size):
        winning[k] -= sums[k] / 2
    _backsolve(factor, winning, first)
    explained = 0.0
    for k in range(size):
        explained += winning[k] * first[k]
    scale = 1 / max(1 - explained / sums[0], 0.1)
    first[0] = np.log(ones / zeros)
    for k in range(1, size):
        first[k] *= scale
        middle = (winning[k] + sums[k] / 2) / ones + (sums[k] / 2 - winning[k]) / zeros  # of the classes' means, twice
        first[0] -= first[k] * middle / 2
    n = min(n, FEW)
    if not warm or _misfit(x, y, w, n, first, slope, curve) < _misfit(x, y, w, n, beta, slope, curve):
        beta[:] = first


@njit(cache=True, fastmath=True, error_model="numpy")
def _misfit(x, y, w, n, beta, slope, curve):  # type: ignore[no-untyped-def]
    """Return Σ(w(p − y))² of the first n rows."""
    _slopes(x, y, w, n, beta, slope, curve)
    total = 0.0
    for t in range(n):
        total += slope[t] ** 2
    return total


@njit(cache=True, fastmath=True, error_model="numpy")
def _solve(x, y, w, n, penalty, beta, largest, tolerance, max_iterations, work):  # type: ignore[no-untyped-def]
    """Solve one problem on the first n columns of x (K, n), in place of beta; return whether it converged.

    ``largest`` (K,) holds the largest absolute value of each feature.
    """
    slope, curve, gradient, step, hessian = work
    size, before = len(beta), 0.0
    step[:] = 0
    for _ in range(max_iterations):
        _slopes(x, y, w, n, beta, slope, curve)
        norm = 0.0
        for k in range(size):
            total = 0.0
            for t in range(n):
                total += slope[t] * x[k, t]
            gradient[k] = total + (penalty * beta[k] if k > 0 else 0.0)
            norm = max(norm, abs(gradient[k]))
        if norm <= tolerance:
            return True
        descent = 0.0  # slope along the last step: negative if the step went beyond the line's minimum
        for k in range(size):
            descent += gradient[k] * step[k]
        if descent < -0.5 * before:  # too far beyond: go back to the minimum that a linear gradient predicts
            share = before / (before - descent)
            for k in range(size):
                beta[k] += (1 - share) * step[k]
                step[k] *= share
            before *= share
            continue
        _products(x, curve, n, penalty, hessian)
        steepest = 0.0
        for k in range(size):
            steepest = max(steepest, hessian[k, k])
        _factorise(hessian)
        _backsolve(hessian, gradient, step)
        before, move = 0.0, 0.0
        for k in range(size):
            beta[k] -= step[k]
            before += gradient[k] * step[k]
            move += largest[k] * abs(step[k])
        # No logit moves by more than ``move``, so no curve p(1 - p) changes by a larger share than e^move - 1, and by
        # Cauchy-Schwarz no entry of the next gradient is larger than this, so the next gradient is known to be small
        # without computing it.
        if move < 0.5 and move * np.sqrt(steepest * before) <= tolerance:
            return True
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
def _factorise(matrix: np.ndarray) -> None:
    """Overwrite the lower half of a positive definite matrix by its Cholesky factor."""
    for j in range(len(matrix)):  # column by column: the entries of a column do not wait for each other
        for k in range(j, len(matrix)):
            total = matrix[k, j]
            for i in range(j):
                total -= matrix[k, i] * matrix[j, i]
            matrix[k, j] = np.sqrt(max(total, 1e-12)) if j == k else total / matrix[j, j]


@njit(cache=True, error_model="numpy")
def _backsolve(factor: np.ndarray, right: np.ndarray, solution: np.ndarray) -> None:
    """Solve the equations of a matrix with this Cholesky factor."""
    size = len(right)
    for k in range(size):
        total = right[k]
        for i in range(k):
            total -= factor[k, i] * solution[i]
        solution[k] = total / factor[k, k]
    for k in range(size - 1, -1, -1):
        total = solution[k]
        for i in range(k + 1, size):
            total -= factor[i, k] * solution[i]
        solution[k] = total / factor[k, k]
