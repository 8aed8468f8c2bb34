"""Fits a ridge-logistic reward model for each task and action."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gents_gym.checks import check_array, check_integer, check_number, check_reward_fn
from gents_gym.likelihoods import Bernoulli
from gents_gym.numerics.newton import LogisticProblems
from gents_gym.policies.binary import BinaryPolicy, BinaryTable
from gents_gym.policies.logistic_kernel import fit_logistic
from gents_gym.policies.table import predict_linear
from gents_gym.types import RewardFn, identity


@dataclass(frozen=True, eq=False)
class LogisticPolicy(BinaryPolicy):
    """Fitted coefficients, intercept first, (B, A, 1+D)."""

    coefficients: np.ndarray

    def logits(self, contexts: np.ndarray) -> np.ndarray:
        """Return the log odds, (B, T, D) to (B, T, A), or (B, D) to (B, 1, A)."""
        return predict_linear(self.coefficients, contexts)


@dataclass(frozen=True)
class Logistic:
    """scikit-learn's default ``LogisticRegression`` for each task and action, all solved at once.

    Minimises |w|²/(2C) + Σ log-loss over the slopes w and a free intercept, by Newton's method. It takes binary
    outcomes; only contexts are features.
    """

    likelihoods: ClassVar[tuple[type, ...]] = (Bernoulli,)

    C: float = 1.0  # inverse penalty, named as in scikit-learn
    tolerance: float = 1e-8  # the largest gradient entry at the solution
    max_iterations: int = 100  # Newton steps; only extreme data needs this many
    reward_fn: RewardFn = identity  # R of the outcomes 0 and 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_reward_fn(self.reward_fn)
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
            warm_start: An earlier solution to start from if it is close; it affects the time, not the optimum.
            weights: (B, T, A), or None for ones; a zero drops the row.
        """
        table = BinaryTable(contexts, outcomes, weights)
        n_tasks, _, n_context = table.contexts.shape
        shape = (n_tasks, table.outcomes.shape[2], n_context + 1)
        start = None
        if warm_start is not None:
            start = check_array("warm_start", warm_start.coefficients, "(B, A, 1+D)", shape, np.float64)
        coefficients, constant = self._solve(table, shape, start)
        return LogisticPolicy(coefficients, constant=constant, reward_fn=self.reward_fn)

    def _solve(self, table: BinaryTable, shape: Any, start: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and constants; a line search solves what the kernel does not."""
        solution, constant = np.zeros(shape) if start is None else start.copy(), np.full(shape[:2], np.nan)
        weights = np.zeros((0, 0, 0), np.float32) if table.weights is None else table.weights
        contexts, outcomes, weights = (_plain(part) for part in (table.contexts, table.outcomes, weights))
        rule = (self.tolerance, self.max_iterations, start is not None)
        solved = fit_logistic(contexts, outcomes, weights, 1 / self.C, solution, constant, *rule)
        if not solved.all():
            self._search(table, np.zeros(shape) if start is None else start, solution, solved)
        return solution, constant

    def _search(self, table: BinaryTable, start: np.ndarray, solution: np.ndarray, solved: np.ndarray) -> None:
        """Solve in place, with a line search, what the kernel did not; only extreme data needs this."""
        precision = np.diag(np.array([0.0] + [1 / self.C] * (start.shape[2] - 1)))  # the intercept is free
        for b in np.flatnonzero(~solved.all(axis=1)):
            here, left = slice(b, b + 1), ~solved[b : b + 1]
            rows = np.pad(table.contexts[here].astype(np.float64), ((0, 0), (0, 0), (1, 0)), constant_values=1)
            some = None if table.weights is None else table.weights[here]
            problems = LogisticProblems(rows, table.outcomes[here].astype(np.float64), precision, weights=some)
            again = problems.solve(start[here], left, self.tolerance, self.max_iterations)[0]
            solution[here] = np.where(left[..., None], again, solution[here])


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array of the kind that the kernel is compiled for: writable, any layout."""
    return array if array.flags.writeable else array.copy()
