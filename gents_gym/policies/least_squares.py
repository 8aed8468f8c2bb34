"""Fits a ridge regression of rewards on contexts for each task and action."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import check_number, check_reward_fn
from gents_gym.policies.least_squares_kernel import fit_least_squares
from gents_gym.policies.table import Table, predict_linear
from gents_gym.types import RewardFn, identity

RANK = 1e-7  # smaller relative differences are float32 rounding of the contexts


@dataclass(frozen=True, eq=False)
class LeastSquaresPolicy:
    """Fitted coefficients, intercept first, (B, A, 1+D)."""

    coefficients: np.ndarray

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        predicted = predict_linear(self.coefficients, context)
        return predicted[:, 0] if np.ndim(context) == 2 else predicted


@dataclass(frozen=True)
class LeastSquares:
    """scikit-learn's ``Ridge`` of R(Y) on the context for each task and action, all solved at once.

    Minimises Σ (R(Y) - b - w·X)² + alpha·|w|² over the slopes w and a free intercept b. It takes any outcomes; only
    contexts are features. The default penalty is negligible for contexts of ordinary size, and keeps the solve fast if
    the rows do not determine the slopes. With alpha=0 such rows give the minimum-norm slopes, solved one problem at a
    time.
    """

    alpha: float = 1e-6  # penalty, named as in scikit-learn
    reward_fn: RewardFn = identity  # R of the outcomes

    def __post_init__(self) -> None:
        """Check the options."""
        check_reward_fn(self.reward_fn)
        check_number("alpha", self.alpha, 0)

    def fit(
        self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None, weights: np.ndarray | None = None
    ) -> LeastSquaresPolicy:
        """Fit B·A models.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A).
            warm_start: Ignored, because the solution has a closed form.
            weights: (B, T, A), or None for ones; a zero drops the row. An action without rows predicts R(0).
        """
        table = Table(contexts, outcomes, weights)
        # Copies, because a batch's own arrays are read-only, and the kernel is compiled for writable ones only.
        x, y = np.array(table.contexts, order="C"), np.array(self.reward_fn(table.outcomes), np.float32, order="C")
        w = np.zeros((0, 0, 0), np.float32) if table.weights is None else np.array(table.weights, order="C")
        solution = np.zeros((len(x), y.shape[2], x.shape[2] + 1))
        solved = fit_least_squares(x, y, w, float(self.alpha), solution)
        for b, a in np.argwhere(~solved):  # rows that do not determine the slopes
            solution[b, a] = self._solve(x[b], y[b, :, a], None if table.weights is None else w[b, :, a])
        return LeastSquaresPolicy(solution)

    def _solve(self, contexts: np.ndarray, rewards: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return the minimum-norm solution of one problem, (1+D,)."""
        x, y = contexts.astype(np.float64), rewards.astype(np.float64)
        shares = np.ones(len(x)) if weights is None else weights.astype(np.float64)
        if not shares.any():
            return np.append(np.asarray(self.reward_fn(np.zeros(1, np.float32)), np.float64), np.zeros(x.shape[1]))
        centre, level = np.average(x, axis=0, weights=shares), np.average(y, weights=shares)
        root = np.sqrt(shares)
        x -= centre
        x[:, np.abs(x[shares > 0]).max(axis=0) <= RANK * np.abs(centre)] = 0
        rows = np.concatenate([root[:, None] * x, np.sqrt(self.alpha) * np.eye(x.shape[1])])
        slopes = np.linalg.lstsq(rows, np.append(root * (y - level), np.zeros(x.shape[1])), rcond=RANK)[0]
        return np.append(level - slopes @ centre, slopes)
