"""The logistic policy class: complete tables in, one ridge-logistic reward model per task and action out."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError, check_array, check_integer, check_number
from gents_gym.types import RewardFn, identity


@dataclass(frozen=True, eq=False)
class LogisticPolicy:
    """Fitted coefficients, intercept first, (B, A, 1+D); where all outcomes were equal, that constant alone."""

    coefficients: np.ndarray
    constant: np.ndarray  # (B, A): the outcome of a one-class column, NaN elsewhere
    reward_fn: RewardFn = identity

    def probability(self, context: np.ndarray) -> np.ndarray:
        """Return P(Y=1), (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        contexts = context[:, None] if context.ndim == 2 else context  # (B, T, D)
        logits = contexts @ self.coefficients[:, :, 1:].swapaxes(1, 2) + self.coefficients[:, None, :, 0]
        fixed = self.constant[:, None]  # (B, 1, A)
        chances: np.ndarray = np.where(np.isnan(fixed), expit(logits), fixed)  # (B, T, A)
        return chances[:, 0] if context.ndim == 2 else chances

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        losing, winning = self.reward_fn(np.array([0.0, 1.0]))
        return losing + (winning - losing) * self.probability(context)


@dataclass(frozen=True)
class Logistic:
    """scikit-learn's default ``LogisticRegression`` for each task and action, all solved at once.

    Minimises |w|²/(2C) + Σ log-loss over the slopes w and a free intercept, by Newton's method with step
    halving. Binary outcomes; contexts alone are features.
    """

    C: float = 1.0  # inverse penalty, as scikit-learn names it
    tolerance: float = 1e-8  # the largest gradient entry at the solution
    max_iterations: int = 100  # Newton steps; reached only by extreme data
    reward_fn: RewardFn = identity  # R of the outcomes 0 and 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("C", self.C, 0, above=True)
        check_number("tolerance", self.tolerance, 0, above=True)
        check_integer("max_iterations", self.max_iterations, 1)

    def fit(
        self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: LogisticPolicy | None = None
    ) -> LogisticPolicy:
        """Fit B·A models.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A), each 0 or 1.
            warm_start: An earlier solution to start from; it changes the time, not the optimum.
        """
        contexts = check_array("contexts", contexts, "(B, T, D)", (-1, -1, -1), np.float64)
        n_tasks, n_rows, n_context = contexts.shape
        outcomes = check_array("outcomes", outcomes, "(B, T, A)", (n_tasks, n_rows, -1), np.float64)
        if not np.isin(outcomes, (0, 1)).all():
            bad = outcomes[~np.isin(outcomes, (0, 1))][0]
            raise InputError(f"outcomes must be 0 or 1 for the logistic policy class, got {bad:g}")
        shape = (n_tasks, outcomes.shape[2], n_context + 1)
        start = np.zeros(shape)
        if warm_start is not None:
            start = check_array("warm_start", warm_start.coefficients, "(B, A, 1+D)", shape, np.float64).copy()
        rates = outcomes.mean(axis=1)  # (B, A)
        one_class = (rates == 0) | (rates == 1)
        start[one_class] = 0
        solved = self._solve(contexts, outcomes, start, ~one_class)
        return LogisticPolicy(solved, np.where(one_class, rates, np.nan), self.reward_fn)

    def _solve(self, contexts: np.ndarray, outcomes: np.ndarray, solution: np.ndarray, open_: np.ndarray) -> np.ndarray:
        """Run damped Newton steps on all ``open_`` (B, A) problems until each has converged."""
        n_tasks, _, size = solution.shape
        rows = np.concatenate([np.ones_like(contexts[:, :, :1]), contexts], axis=2)  # (B, T, K), K = 1+D
        first, second = np.triu_indices(size)
        pairs = rows[:, :, first] * rows[:, :, second]  # (B, T, K(K+1)/2): Hessians are weighted sums of these
        penalty = np.full(size, 1 / self.C)
        penalty[0] = 0
        target = outcomes.swapaxes(1, 2) @ rows  # (B, A, K)
        hessian = np.empty((n_tasks, solution.shape[1], size, size))
        loss, chances = self._loss(rows, target, penalty, solution)
        for _ in range(self.max_iterations):
            gradient = chances.swapaxes(1, 2) @ rows - target + penalty * solution  # (B, A, K)
            open_ = open_ & (np.abs(gradient).max(axis=2) > self.tolerance)
            if not open_.any():
                break
            weighted = (chances * (1 - chances)).swapaxes(1, 2) @ pairs  # (B, A, K(K+1)/2)
            hessian[:, :, first, second] = hessian[:, :, second, first] = weighted
            # The free intercept's curvature can underflow on saturated data; the bump keeps the solve regular.
            curvature = hessian + np.diag(np.where(penalty == 0, 1e-12, penalty))
            step = np.linalg.solve(curvature, gradient[..., None])[..., 0] * open_[..., None]
            solution, loss, chances = self._descend(rows, target, penalty, solution, loss, step)
        return solution

    @staticmethod
    def _loss(
        rows: np.ndarray, target: np.ndarray, penalty: np.ndarray, solution: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives (B, A) and the predicted probabilities (B, T, A)."""
        logits = rows @ solution.swapaxes(1, 2)  # (B, T, A)
        odds = np.exp(-np.abs(logits))
        fit = (np.maximum(logits, 0) + np.log(1 + odds)).sum(axis=1) - (target * solution).sum(axis=2)
        chances = np.where(logits >= 0, 1, odds) / (1 + odds)
        return fit + 0.5 * (penalty * solution**2).sum(axis=2), chances

    def _descend(
        self,
        rows: np.ndarray,
        target: np.ndarray,
        penalty: np.ndarray,
        solution: np.ndarray,
        loss: np.ndarray,
        step: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take the steps, each halved until its objective does not rise beyond rounding."""
        for _ in range(40):
            tried = solution - step
            new_loss, chances = self._loss(rows, target, penalty, tried)
            worse = new_loss > loss + 1e-9 * (1 + np.abs(loss))
            if not worse.any():
                break
            step = np.where(worse[..., None], step / 2, step)
        return tried, new_loss, chances
