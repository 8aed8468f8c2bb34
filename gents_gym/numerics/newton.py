"""Solves batches of convex problems by Newton's method, such as penalised logistic regressions."""

import warnings
from abc import ABC, abstractmethod

import numpy as np

MOST_PAIRS = 1 << 26  # most products of two columns that are kept, 512 MB; more are computed again for every Hessian


class NewtonProblems(ABC):
    """Many convex problems of one size that Newton's method solves side by side.

    A subclass defines the objectives. Gradients and Hessians are computed from their ``chances``; arrays of problems
    have the leading axes of ``_center``, which is also where the search begins.
    """

    _center: np.ndarray  # (..., K)

    @abstractmethod
    def loss(self, solution: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives (...) at ``solution`` (..., K), and the probabilities there."""

    @abstractmethod
    def gradient(self, solution: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' gradients, (..., K)."""

    @abstractmethod
    def hessian(self, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' second derivatives, (..., K, K), at the probabilities ``chances``."""

    @abstractmethod
    def _rounding(self) -> np.ndarray:
        """Return the rounding error of gradients, broadcast to (..., K)."""

    @abstractmethod
    def _each(self, flags: np.ndarray) -> np.ndarray:
        """Return flags of problems in the shape of ``chances``."""

    def solve(
        self,
        start: np.ndarray | None = None,
        wanted: np.ndarray | None = None,
        tolerance: float = 1e-8,
        max_iterations: int = 100,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the optima (..., K) and their probabilities.

        Args:
            start: Where to begin, (..., K); None: at the center.
            wanted: Booleans (...), the problems to solve; the others stay at the start.
            tolerance: The largest gradient entry at a solution.
            max_iterations: Newton steps; only extreme data needs this many.
        """
        solution = self._center
        still = np.ones(solution.shape[:-1], np.bool_) if wanted is None else wanted
        loss, chances = self.loss(solution)
        if start is not None:
            solution, loss, chances = self._better(solution, loss, chances, start)
        rounding = self._rounding()
        for _ in range(max_iterations):
            gradient = self.gradient(solution, chances)
            still = still & (np.abs(gradient) > np.maximum(tolerance, rounding)).any(axis=-1)
            if not still.any():
                break
            step = _solve_regular(self.hessian(chances), gradient) * still[..., None]
            solution, loss, chances = self._descend(solution, loss, chances, step)
        else:
            if still.any():
                warnings.warn(f"{still.sum()} logistic fits stopped after {max_iterations} steps", stacklevel=2)
        return solution, chances

    def _descend(
        self, solution: np.ndarray, loss: np.ndarray, chances: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take the steps; each is halved until its objective does not rise beyond rounding, or not taken at all."""
        for _ in range(40):
            tried = solution - step
            new_loss, new_chances = self.loss(tried)
            worse = ~(new_loss <= loss + 1e-9 * (1 + np.abs(loss)))  # a NaN counts as worse
            if not worse.any():
                return tried, new_loss, new_chances
            step = np.where(worse[..., None], step / 2, step)
        return self._better(solution, loss, chances, np.where(worse[..., None], solution, tried))

    def _better(
        self, solution: np.ndarray, loss: np.ndarray, chances: np.ndarray, other: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, problem by problem, the one of two points with the lower objective, and its data."""
        with np.errstate(over="ignore", invalid="ignore"):
            other_loss, other_chances = self.loss(other)
        lower = other_loss <= loss
        return (
            np.where(lower[..., None], other, solution),
            np.where(lower, other_loss, loss),
            np.where(self._each(lower), other_chances, chances),
        )


class LogisticProblems(NewtonProblems):
    """B·A logistic regressions with Gaussian penalties; the A problems of a task share its rows.

    Each minimises Σ_t w_t·logloss(y_t, x_t·β) + ½ (β−μ)ᵀ Λ (β−μ) over β.

    Args:
        rows: x, (B, T, K) float64; an intercept is a column of ones.
        outcomes: y, (B, T, A), each 0 or 1.
        precision: Λ, (..., K, K), broadcast to (B, A, K, K); a zero on its diagonal leaves that entry free.
        center: μ, (..., K), broadcast to (B, A, K).
        weights: w, (B, T, A), or None for ones; a zero drops the row.
    """

    def __init__(
        self,
        rows: np.ndarray,
        outcomes: np.ndarray,
        precision: np.ndarray,
        center: np.ndarray | float = 0.0,
        weights: np.ndarray | None = None,
    ) -> None:
        self._rows = rows
        self._precision = precision
        self._weights = weights
        self._shape = (len(rows), outcomes.shape[2], rows.shape[2])  # (B, A, K)
        self._center = np.broadcast_to(center, self._shape)
        self._upper = np.triu_indices(rows.shape[2])
        counted = outcomes if weights is None else outcomes * weights
        self._target = counted.swapaxes(1, 2) @ rows  # (B, A, K)
        self._pairs: np.ndarray | None = None

    def loss(self, solution: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives (B, A) at ``solution`` (B, A, K), and the probabilities of a 1, (B, T, A)."""
        logits = self._rows @ solution.swapaxes(1, 2)  # (B, T, A)
        odds = np.exp(-np.abs(logits))
        surprise = np.maximum(logits, 0) + np.log(1 + odds)
        surprise = surprise if self._weights is None else surprise * self._weights
        away = solution - self._center
        penalty = 0.5 * (away * self._pull(away)).sum(axis=2)
        chances = np.where(logits >= 0, 1, odds) / (1 + odds)
        return surprise.sum(axis=1) - (self._target * solution).sum(axis=2) + penalty, chances

    def gradient(self, solution: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' gradients, (B, A, K)."""
        counted = chances if self._weights is None else chances * self._weights
        return counted.swapaxes(1, 2) @ self._rows - self._target + self._pull(solution - self._center)

    def hessian(self, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' second derivatives, (B, A, K, K), where the probabilities are ``chances``."""
        spread = chances * (1 - chances)
        spread = spread if self._weights is None else spread * self._weights
        found = np.empty((*self._shape, self._shape[2]))
        first, second = self._upper
        if self._rows[..., 0].size * len(first) > MOST_PAIRS:
            for a in range(self._shape[1]):
                found[:, a] = (self._rows * spread[..., a, None]).swapaxes(1, 2) @ self._rows
            return found + self._precision
        if self._pairs is None:  # (B, T, K(K+1)/2): Hessians are weighted sums of these
            self._pairs = self._rows[:, :, first] * self._rows[:, :, second]
        found[:, :, first, second] = found[:, :, second, first] = spread.swapaxes(1, 2) @ self._pairs
        return found + self._precision

    def _rounding(self) -> np.ndarray:
        return 1e-14 * np.abs(self._rows).sum(axis=1)[:, None]  # (B, 1, K)

    def _each(self, flags: np.ndarray) -> np.ndarray:
        return flags[:, None]  # (B, 1, A)

    def _pull(self, away: np.ndarray) -> np.ndarray:
        """Return Λ·(β−μ), (B, A, K)."""
        return (self._precision @ away[..., None])[..., 0]


def _solve_regular(curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the Newton steps, (..., K); a small diagonal term keeps saturated or huge data solvable."""
    bump = np.eye(curvature.shape[-1])
    try:
        return np.linalg.solve(curvature + 1e-12 * bump, gradient[..., None])[..., 0]
    except np.linalg.LinAlgError:
        scale = np.abs(curvature).max(axis=(-2, -1), keepdims=True)
        return np.linalg.solve(curvature + (1e-12 + 1e-15 * scale) * bump, gradient[..., None])[..., 0]
