"""Estimates of a policy's value from logged rows: plain functions on arrays, each with what a row adds to its error.

Sizes: n rows, A actions. A row's weight is π(a | x) / p(a | x): the evaluated policy's probability of the logged action
over the logged one. If the policy learns, π is what it is at that row, and may depend on earlier rows; errors are those
of sums of martingale differences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from gents_gym.checks import InputError, check_array

CONFIDENCE = 0.95  # of intervals


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value, and each row's influence on it, (n,): the mean of influences is zero, their spread gives the error."""

    value: float
    influence: np.ndarray

    def __repr__(self) -> str:
        """Return the value and its standard error, without the influences."""
        return f"Estimate({self.value:.4g} ± {self.error:.2g})"

    @property
    def error(self) -> float:
        """The standard error."""
        return float(self.influence.std(ddof=1) / math.sqrt(len(self.influence)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return interval(self.value, self.error, len(self.influence))

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the difference to another estimate from the same rows, whose errors partly cancel."""
        return Estimate(self.value - other.value, self.influence - other.influence)


def interval(value: float, error: float, n: float) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean of ``n`` numbers."""
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, max(n - 1, 1))) * error
    return value - half, value + half


def mean(rewards: np.ndarray) -> Estimate:
    """Return the mean of ``rewards`` (n,): the value of the policy that made the log."""
    rewards = _rows("rewards", rewards)
    return Estimate(float(rewards.mean()), rewards - rewards.mean())


def ips(weights: np.ndarray, rewards: np.ndarray) -> Estimate:
    """Return the inverse propensity score estimate, the mean of weight times reward: unbiased.

    Args:
        weights: (n,).
        rewards: Of the logged actions, (n,).
    """
    weights, rewards = _rows("weights", weights), _rows("rewards", rewards, len(weights))
    return mean(weights * rewards)


def snips(weights: np.ndarray, rewards: np.ndarray) -> Estimate:
    """Return the self-normalised estimate, the weighted mean of rewards: consistent, and less noisy than :func:`ips`.

    With weights of 0 and 1, it is the mean of the rows that replay accepted. Arguments are those of :func:`ips`.
    """
    weights, rewards = _rows("weights", weights), _rows("rewards", rewards, len(weights))
    if not weights.any():
        raise InputError("weights must not all be 0: the policy never plays a logged action")
    value = float(weights @ rewards / weights.sum())
    return Estimate(value, weights * (rewards - value) / weights.mean())


def doubly_robust(weights: np.ndarray, rewards: np.ndarray, logged: np.ndarray, played: np.ndarray) -> Estimate:
    """Return the doubly robust estimate: predictions, corrected by weighted residuals.

    It is unbiased if the propensities are right, whatever is predicted, and if predictions are right, whatever the
    propensities are. A row's prediction must not know the row's outcome.

    Args:
        weights: (n,).
        rewards: Of the logged actions, (n,).
        logged: Predicted rewards of the logged actions, (n,).
        played: Predicted rewards of what the policy plays, averaged over its probabilities, (n,).
    """
    weights = _rows("weights", weights)
    size = len(weights)
    rewards, logged = _rows("rewards", rewards, size), _rows("logged", logged, size)
    return mean(_rows("played", played, size) + weights * (rewards - logged))


def effective_size(weights: np.ndarray) -> float:
    """Return the effective sample size of weights (n,), (Σw)² / Σw²; 0 if all are 0."""
    total = float(np.square(weights).sum())
    return float(np.sum(weights)) ** 2 / total if total > 0 else 0.0


def pool(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Return the mean of estimates from the same rows in several orders, and its standard error.

    The error has two parts. Each row's influence, averaged over the orders, gives that of the rows: orders in which a
    row counts differently average some of it out, and those in which it counts alike do not. A learner also depends on
    the luck of an order, which varies the values by more than the influences explain; that excess is divided by the
    number of orders.
    """
    values = np.array([estimate.value for estimate in estimates])
    influences = np.array([estimate.influence for estimate in estimates])  # (orders, n)
    joint = Estimate(float(values.mean()), influences.mean(axis=0))
    if len(values) == 1:
        return joint.value, joint.error
    explained = np.var(influences, axis=0, ddof=1).mean() / influences.shape[1]  # variance of values between orders
    luck = max(float(values.var(ddof=1)) - explained, 0.0)
    return joint.value, math.sqrt(joint.error**2 + luck / len(values))


def _rows(name: str, values: np.ndarray, size: int = -1) -> np.ndarray:
    found = check_array(name, values, "(n,)", (size,), np.float64)
    if len(found) < 2:
        raise InputError(f"{name} must have at least 2 rows, got {len(found)}")
    return found
