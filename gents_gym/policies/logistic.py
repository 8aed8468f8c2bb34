"""The logistic policy class: complete tables in, one ridge-logistic reward model per task and action out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError, check_array, check_integer, check_number
from gents_gym.newton import LogisticProblems
from gents_gym.types import RewardFn, identity

BLOCK_BYTES = 2**26  # of memory for products of features at a time


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
        losing, winning = np.asarray(self.reward_fn(np.array([0.0, 1.0])), np.float64)
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
        check_integer("the number of rows T", n_rows, 1)
        check_integer("the context size D", n_context, 1)
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
        solved = start
        if not one_class.all():
            solved = np.concatenate(list(self._solve(contexts, outcomes, start, ~one_class)))
        return LogisticPolicy(solved, np.where(one_class, rates, np.nan), self.reward_fn)

    def _solve(
        self, contexts: np.ndarray, outcomes: np.ndarray, start: np.ndarray, wanted: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Solve the ``wanted`` (B, A) problems, block by block of tasks: tasks do not depend on each other."""
        size = start.shape[2]
        penalty = np.diag(np.array([0.0] + [1 / self.C] * (size - 1)))  # the intercept is free
        bytes_per_task = 8 * contexts.shape[1] * size * (size + 1) // 2  # of the products of features
        block = max(1, BLOCK_BYTES // bytes_per_task)
        for first in range(0, len(contexts), block):
            here = slice(first, first + block)
            rows = np.concatenate([np.ones_like(contexts[here, :, :1]), contexts[here]], axis=2)  # (b, T, 1+D)
            problems = LogisticProblems(rows, outcomes[here], penalty)
            yield problems.solve(start[here], wanted[here], self.tolerance, self.max_iterations)[0]
