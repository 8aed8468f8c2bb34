"""The logistic policy class: complete tables in, one ridge-logistic reward model per task and action out."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError, check_array, check_integer, check_number
from gents_gym.newton import LogisticProblems
from gents_gym.policies.kernel import fit_logistic
from gents_gym.types import RewardFn, expected_reward, identity


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
        return expected_reward(self.reward_fn, self.probability(context))


@dataclass(frozen=True)
class Logistic:
    """scikit-learn's default ``LogisticRegression`` for each task and action, all solved at once.

    Minimises |w|²/(2C) + Σ log-loss over the slopes w and a free intercept, by Newton's method. Binary outcomes;
    contexts alone are features.
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
        self,
        contexts: np.ndarray,
        outcomes: np.ndarray,
        warm_start: LogisticPolicy | None = None,
        weights: np.ndarray | None = None,
    ) -> LogisticPolicy:
        """Fit B·A models.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A), each 0 or 1.
            warm_start: An earlier solution to start from; it changes the time, not the optimum.
            weights: (B, T, A), or None for ones; a zero takes the row out.
        """
        contexts = check_array("contexts", contexts, "(B, T, D)", (-1, -1, -1), np.float64)
        n_tasks, n_rows, n_context = contexts.shape
        outcomes = check_array("outcomes", outcomes, "(B, T, A)", (n_tasks, n_rows, -1))
        check_integer("the number of rows T", n_rows, 1)
        check_integer("the context size D", n_context, 1)
        if not ((outcomes == 0) | (outcomes == 1)).all():
            bad = outcomes[(outcomes != 0) & (outcomes != 1)][0]
            raise InputError(f"outcomes must be 0 or 1 for the logistic policy class, got {bad:g}")
        if weights is not None:
            weights = check_array("weights", weights, "(B, T, A)", outcomes.shape)
        shape = (n_tasks, outcomes.shape[2], n_context + 1)
        start = np.zeros(shape)
        if warm_start is not None:
            start = check_array("warm_start", warm_start.coefficients, "(B, A, 1+D)", shape, np.float64).copy()
        rates = _rates(outcomes, weights)  # (B, A)
        one_class = (rates == 0) | (rates == 1)
        start[one_class] = 0
        solved = self._solve(contexts, outcomes, weights, start, ~one_class)
        return LogisticPolicy(solved, np.where(one_class, rates, np.nan), self.reward_fn)

    def _solve(
        self,
        contexts: np.ndarray,
        outcomes: np.ndarray,
        weights: np.ndarray | None,
        start: np.ndarray,
        wanted: np.ndarray,
    ) -> np.ndarray:
        """Solve the ``wanted`` (B, A) problems by the kernel, and what it does not solve with a line search."""
        rows = np.concatenate([np.ones_like(contexts[:, :, :1]), contexts], axis=2)  # (B, T, K)
        no_weights = np.zeros((0, 0, 0), np.float32)
        x, y, w = (
            np.ascontiguousarray(part.swapaxes(1, 2))
            for part in (rows, outcomes, no_weights if weights is None else weights)
        )
        solved = start.copy()
        penalty = 1 / self.C
        left = wanted & ~fit_logistic(x, y, w, penalty, wanted, solved, self.tolerance, self.max_iterations)
        precision = np.diag(np.array([0.0] + [penalty] * (start.shape[2] - 1)))  # the intercept is free
        for b in np.flatnonzero(left.any(axis=1)):  # rare: extreme data
            here = slice(b, b + 1)
            some = None if weights is None else weights[here]
            problems = LogisticProblems(rows[here], outcomes[here].astype(np.float64), precision, weights=some)
            again = problems.solve(start[here], left[here], self.tolerance, self.max_iterations)[0]
            solved[here] = np.where(left[here, :, None], again, solved[here])
        return solved


def _rates(outcomes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the rates of ones, (B, A); 0 where no row counts."""
    if weights is None:
        return outcomes.mean(axis=1)
    counts = weights.sum(axis=1)
    return (outcomes * weights).sum(axis=1) / np.maximum(counts, 1e-30)
