"""Bayesian linear regression for every task and action at once: rewards in, posterior means and variances out."""

from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_actions, check_array, check_integer
from gents_gym.types import ActionRows, TaskInfo


LEAST_NOISE = 1e-6  # a fitted noise variance of 0, from constant outcomes, would divide by zero


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """β ~ N(mean, covariance), reward = x·β + N(0, noise)."""

    mean: np.ndarray  # (K,)
    covariance: np.ndarray  # (K, K)
    noise: float  # variance

    @classmethod
    def isotropic(cls, size: int, noise: float) -> "LinearPrior":
        """Return N(0, I) for ``size`` features."""
        return cls(np.zeros(size), np.eye(size), noise)


def add_intercept(context: np.ndarray) -> np.ndarray:
    """Return the context with a leading 1, (..., D) to (..., 1+D)."""
    return np.concatenate([np.ones_like(context[..., :1]), context], axis=-1)


def fit_prior(rows: ActionRows, intercept: bool) -> LinearPrior:
    """Fit the prior to historical rows: the spread of per-action least-squares coefficients.

    Coefficients come from the first 80 % of every action's rows, the noise from the residuals of the last 20 %.
    """
    n_actions, n_rows, size = rows.contexts.shape
    size += intercept
    n_fit = int(0.8 * n_rows)
    check_integer("the number of actions in rows", n_actions, 2)
    if n_fit < size or n_fit == n_rows:
        raise InputError(f"rows must have at least {-(-size * 5 // 4)} rows per action to fit {size} coefficients, got {n_rows}")
    coefficients = np.empty((n_actions, size))
    residuals = np.empty((n_actions, n_rows - n_fit))
    for block in np.array_split(np.arange(n_actions), -(-n_actions // 500)):  # blocks bound the float64 copies
        x = rows.contexts[block].astype(np.float64)  # (n, R, D)
        x = add_intercept(x) if intercept else x
        y = np.asarray(rows.reward_fn(rows.outcomes[block]), np.float64)  # (n, R)
        # The minimum-norm solution, so that rows that do not span all directions are no obstacle.
        solved = np.linalg.pinv(x[:, :n_fit]) @ y[:, :n_fit, None]  # (n, K, 1)
        coefficients[block] = solved[..., 0]
        residuals[block] = (y[..., None] - x @ solved)[:, n_fit:, 0]
    covariance = np.cov(coefficients, rowvar=False).reshape(size, size)
    return LinearPrior(coefficients.mean(axis=0), covariance, max(float(residuals.var(ddof=1)), LEAST_NOISE))


class LinearPosterior:
    """The posteriors N(m, P) of B·A coefficient vectors, carried by rank-one updates.

    Sums run over each task's own numbers in a fixed order, so a task's result is the same bits in any batch.
    """

    def __init__(self, prior: LinearPrior, info: TaskInfo, intercept: bool) -> None:
        """Start all B·A posteriors at the prior; K = D features, and one more with an intercept."""
        size = info.context_dim + intercept
        if len(prior.mean) != size:
            raise InputError(f"the prior must have {size} coefficients for these contexts, got {len(prior.mean)}")
        self._info = info
        self._intercept = intercept
        self._noise = prior.noise
        self._tasks = np.arange(len(info))
        self._mean = np.tile(prior.mean, (len(info), info.n_actions, 1))  # (B, A, K)
        self._covariance = np.tile(prior.covariance, (len(info), info.n_actions, 1, 1))  # (B, A, K, K)
        self._flat = self._covariance.reshape(len(info), info.n_actions, size * size)  # a view of the same numbers

    def predict(self, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of x·β for every action, (B, D) to (B, A) each."""
        x = self._features(context)  # (B, K)
        squares = (x[:, :, None] * x[:, None]).reshape(len(x), -1)  # (B, K²)
        mean = np.einsum("bak,bk->ba", self._mean, x)
        variance = np.einsum("bak,bk->ba", self._flat, squares)  # xᵀPx
        return mean, np.sqrt(np.maximum(variance, 0, out=variance))

    def update(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Condition the played actions' posteriors on their rewards, (B, D), (B,) and (B,)."""
        x = self._features(context)  # (B, K)
        action = check_actions(action, len(self._info), self._info.n_actions)
        outcome = check_array("outcome", outcome, "(B,)", (len(self._info),), np.float64)
        played = self._covariance[self._tasks, action]  # (B, K, K)
        mean = self._mean[self._tasks, action]  # (B, K)
        direction = np.einsum("bij,bj->bi", played, x)  # Px, (B, K)
        spread = self._noise + np.einsum("bi,bi->b", direction, x)  # (B,)
        error = self._info.reward_fn(outcome) - np.einsum("bi,bi->b", mean, x)  # (B,)
        self._mean[self._tasks, action] = mean + direction * (error / spread)[:, None]
        # The product of the direction with itself is symmetric to the bit, and so stays the covariance.
        self._covariance[self._tasks, action] = played - direction[:, :, None] * direction[:, None] / spread[:, None, None]

    def _features(self, context: np.ndarray) -> np.ndarray:
        shape = (len(self._info), self._info.context_dim)
        context = check_array("context", context, "(B, D)", shape, np.float64)
        return add_intercept(context) if self._intercept else np.ascontiguousarray(context)
