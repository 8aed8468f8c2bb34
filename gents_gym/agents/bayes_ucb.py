"""Bayes-UCB on a sequence model's belief: it plays the action with the highest quantile of its mean reward."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv, ndtri

from gents_gym.agents.ahead import Ahead
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL, BeliefHolder, first_task
from gents_gym.agents.ties import Chooser, check_ties
from gents_gym.checks import InputError, check_array, check_number
from gents_gym.models.load import check_model_name
from gents_gym.types import Feedback, Model, TaskInfo

LEAST_SHARE = 1e-9  # least distance of a mean and a variance from their bounds, as a share of the range


@dataclass
class BayesUCB(Resettable):
    """Plays the action with the highest quantile of its mean reward under the belief.

    The level of the quantile rises with n, the number of decisions left that can use what is learned now:

        q = 1 − 1 / (2 + κ·n)

    κ=0 is the median, which hardly explores. A smaller κ explores less, which is right if contexts vary, since varying
    contexts already explore. The quantile of a posterior as an index is the idea of Bayes-UCB (Kaufmann et al., 2012),
    but there the level rises with the number of decisions made.

    The belief gives the mean and variance of each mean reward. As an approximation, quantiles are those of the Beta
    distribution with these moments between the lowest and the highest reward, or of the normal distribution for
    Gaussian outcomes.
    """

    model: str | Model = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    kappa: float = 0.02  # how fast the quantile rises with the decisions left
    quantile: float | None = None  # a fixed level instead of the schedule
    discount: float | None = None  # n is 1 / (1 − discount); None: n follows the horizon, which must be known
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("kappa", self.kappa, 0)
        for name in ("quantile", "discount"):
            value = getattr(self, name)
            if value is not None and check_number(name, value, 0, above=True) >= 1:
                raise InputError(f"{name} must be below 1, got {value}")
        check_model_name(self.model)
        check_ties(self.ties)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits these tasks; only the first is tried."""
        first, rngs, context = first_task(info)
        trial = replace(self)
        trial.reset(first, rngs)
        trial.scores(context)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        if self.quantile is None and self.discount is None and info.horizon is None:
            raise InputError("discount or quantile must be given if the horizon is not known, got None")
        self._info, self._held = info, BeliefHolder(self.model, info, rngs)
        self._choose = Chooser(self.ties, rngs, info.n_actions)
        self._scores = Ahead(self.scores)
        support = info.likelihood.support
        self._range = None if support is None else np.asarray(info.reward_fn(support), np.float64)
        self._left = info.horizon or 0  # decisions left, the current one included

    def scores(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return quantiles of the mean rewards, (B, D) to (B, A), or for the live actions, (B, n)."""
        mean, variance = self._held.expected(context, live), self._held.variance(context, live)
        if variance is None:
            raise InputError(f"model must give variances of its means for bayes-ucb, got {self.model!r}")
        variance = check_array("the model's variance", variance, "(B, A)", mean.shape, np.float64, per_task=1)
        return quantiles(mean, variance, self._level(), self._range)

    def _level(self) -> float:
        """Return the level of the quantile for this decision."""
        if self.quantile is not None:
            return self.quantile
        left = self._left if self.discount is None else 1 / (1 - self.discount)
        return 1 - 1 / (2 + self.kappa * max(left - 1, 0))

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest quantile."""
        live = find_available(available, self._info)
        return self._held.acts(context, self._choose(self._scores.take(context, live), live))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return probability 1 for the action with the highest quantile, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return self._choose.probabilities(self._scores.look(context, live), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._held.observe(context, action, outcome)
        self._left -= 1

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._held.observe_late(feedback)
        self._left -= 1


def quantiles(mean: np.ndarray, variance: np.ndarray, level: float, rewards: np.ndarray | None) -> np.ndarray:
    """Return quantiles of distributions with these moments, elementwise.

    Args:
        mean: Of any shape.
        variance: Of the same shape.
        level: In (0, 1).
        rewards: All possible rewards, for Beta distributions between the lowest and the highest; None: normal
            distributions.
    """
    if rewards is None:
        return np.asarray(mean + ndtri(level) * np.sqrt(variance))
    low, width = rewards.min(), np.ptp(rewards)
    if width == 0:
        return mean
    share = np.clip((mean - low) / width, LEAST_SHARE, 1 - LEAST_SHARE)
    free = share * (1 - share)  # the variance of a coin flip, which exceeds that of any Beta distribution
    count = free / np.clip(variance / width**2, LEAST_SHARE * free, (1 - LEAST_SHARE) * free) - 1
    return np.asarray(low + width * betaincinv(share * count, (1 - share) * count, level))
