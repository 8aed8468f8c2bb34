"""Bayesian linear regression of rewards for every task and action at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.available import Available
from gents_gym.checks import InputError, check_actions, check_array, check_integer
from gents_gym.types import ActionRows, TaskInfo

FeatureMap = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (..., F) and (..., D) to (..., K)
LEAST_NOISE = 1e-6  # a fitted noise variance of 0, from constant outcomes, would cause a division by zero


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


def choose_prior(agent: str, kind: str, size: int, noise: float, fitted: LinearPrior | None) -> LinearPrior:
    """Return N(0, I) for ``size`` features, or the fitted prior; raise if that is missing or of another size."""
    if kind == "isotropic":
        return LinearPrior.isotropic(size, noise)
    if fitted is None:
        raise InputError(f"{agent}(prior='fitted') has no prior yet: call fit(rows) with historical rows first")
    if len(fitted.mean) != size:
        raise InputError(f"the prior must have {size} coefficients for these features, got {len(fitted.mean)}")
    return fitted


def add_intercept(context: np.ndarray) -> np.ndarray:
    """Return the context with a leading 1, (..., D) to (..., 1+D)."""
    return np.concatenate([np.ones_like(context[..., :1]), context], axis=-1)


class ContextFeatures:
    """Contexts as features, (B, D) to (B, K), with K = D, or D + 1 with an intercept.

    Contexts that an agent acted on are not checked again when it observes their outcomes.
    """

    def __init__(self, info: TaskInfo, intercept: bool) -> None:
        """Prepare for the contexts of B tasks."""
        self._intercept, self._shape = intercept, (len(info), info.context_dim)
        self._context = self._features = np.full(self._shape, np.nan)  # the latest

    def __call__(self, context: np.ndarray) -> np.ndarray:
        """Return the features in double precision."""
        if not np.array_equal(context, self._context):
            self._context = check_array("context", context, "(B, D)", self._shape, np.float64).copy()
            self._features = self.map(self._context)
        return self._features

    def map(self, contexts: np.ndarray) -> np.ndarray:
        """Return the features of any contexts in double precision, (n, D) to (n, K)."""
        contexts = contexts.astype(np.float64, copy=False)
        return add_intercept(contexts) if self._intercept else contexts


def check_observed(info: TaskInfo, action: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Check that actions and outcomes, (B,) each, are valid for these tasks; return them."""
    action = check_actions(action, len(info), info.n_actions)
    return action, check_array("outcome", outcome, "(B,)", (len(info),), np.float64)


def fit_prior(rows: ActionRows, features: FeatureMap, ridge: float = 0.0, floor: float = 0.0) -> LinearPrior:
    """Fit the prior to historical rows: the spread of per-action regression coefficients.

    Coefficients come from the first 80 % of every action's rows, the noise from the residuals of the last 20 %.

    Args:
        rows: Historical rows of N actions.
        features: Features of action features (n, 1, F) and contexts (n, R, D), as (n, R, K).
        ridge: Penalty on the squared coefficients; 0: least squares.
        floor: A number added to the variance of every coefficient.
    """
    n_actions, n_rows, _ = rows.contexts.shape
    size = features(rows.action_features[:1, None], rows.contexts[:1, :1]).shape[2]
    n_fit = int(0.8 * n_rows)
    needed = 1 if ridge else size
    check_integer("the number of actions in rows", n_actions, 2)
    if n_fit < needed or n_fit == n_rows:
        least = -(-needed * 5 // 4)
        raise InputError(f"rows must have at least {least} rows per action to fit {size} coefficients, got {n_rows}")
    coefficients = np.empty((n_actions, size))
    residuals = np.empty((n_actions, n_rows - n_fit))
    for block in np.array_split(np.arange(n_actions), -(-n_actions // 50)):  # blocks save memory
        x = features(rows.action_features[block, None], rows.contexts[block]).astype(np.float64)  # (n, R, K)
        y = np.asarray(rows.reward_fn(rows.outcomes[block]), np.float64)[..., None]  # (n, R, 1)
        solved = _regress(x[:, :n_fit], y[:, :n_fit], ridge)  # (n, K, 1)
        coefficients[block] = solved[..., 0]
        residuals[block] = (y - x @ solved)[:, n_fit:, 0]
    covariance = np.cov(coefficients, rowvar=False).reshape(size, size) + floor * np.eye(size)
    return LinearPrior(coefficients.mean(axis=0), covariance, max(float(residuals.var(ddof=1)), LEAST_NOISE))


def _regress(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Return n regressions' coefficients, (n, R, K) and (n, R, 1) to (n, K, 1)."""
    if ridge:
        turned = x.transpose(0, 2, 1)
        return np.linalg.solve(turned @ x + ridge * np.eye(x.shape[2]), turned @ y)
    # The minimum-norm solution also works if the rows do not span all directions.
    return np.linalg.pinv(x) @ y


class LinearPosterior:
    """The posteriors N(m, P) of B·A coefficient vectors, kept up to date by rank-one updates.

    Sums run over each task's own numbers in a fixed order, so a task's result is bitwise the same in any batch.
    """

    def __init__(self, prior: LinearPrior, info: TaskInfo) -> None:
        """Start all B·A posteriors at the prior."""
        size = len(prior.mean)
        self._info = info
        self._noise = prior.noise
        self._tasks = np.arange(len(info))
        self._mean = np.tile(prior.mean, (len(info), info.n_actions, 1))  # (B, A, K)
        self._covariance = np.tile(prior.covariance, (len(info), info.n_actions, 1, 1))  # (B, A, K, K)
        self._flat = self._covariance.reshape(len(info), info.n_actions, size * size)  # a view of the same numbers

    def predict(self, features: np.ndarray, live: Available | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of x·β for every action, (B, A) each, or for the live ones, (B, n).

        Args:
            features: x, the same for all actions of a task, (B, K), or each action's own, (B, A, K) or (B, n, K).
            live: The requested actions; None: all.
        """
        x = np.ascontiguousarray(features)
        at: Any = ... if live is None else (self._tasks[:, None], live.actions)
        if x.ndim == 2:
            mean = np.einsum("bak,bk->ba", self._mean[at], x)
            squares = (x[:, :, None] * x[:, None]).reshape(len(x), -1)  # (B, K²)
            variance = np.einsum("bak,bk->ba", self._flat[at], squares)  # xᵀPx
        else:
            mean = np.einsum("bak,bak->ba", self._mean[at], x)
            # Px; B·A·K² squares would double the memory
            direction = np.einsum("baij,baj->bai", self._covariance[at], x)
            variance = np.einsum("bak,bak->ba", direction, x)
        return mean, np.sqrt(np.maximum(variance, 0, out=variance))

    def fade(self) -> None:
        """Advance by one decision: nothing is forgotten."""

    def update(
        self, features: np.ndarray, action: np.ndarray, outcome: np.ndarray, task: np.ndarray | None = None
    ) -> None:
        """Condition the played actions' posteriors on R of their outcomes.

        Args:
            features: Features of the played actions, (B, K).
            action: (B,).
            outcome: (B,).
            task: Their tasks, each at most once; None: all B tasks, in order.
        """
        x = np.ascontiguousarray(features)
        at = (self._tasks if task is None else task), action
        played = self._covariance[at]  # (B, K, K)
        mean = self._mean[at]  # (B, K)
        direction = np.einsum("bij,bj->bi", played, x)  # Px, (B, K)
        spread = self._noise + np.einsum("bi,bi->b", direction, x)  # (B,)
        error = self._info.reward_fn(outcome) - np.einsum("bi,bi->b", mean, x)  # (B,)
        self._mean[at] = mean + direction * (error / spread)[:, None]
        # The outer product of the direction with itself is exactly symmetric, so the covariance stays symmetric.
        drop = direction[:, :, None] * direction[:, None]  # (B, K, K)
        drop /= spread[:, None, None]
        self._covariance[at] = np.subtract(played, drop, out=drop)
