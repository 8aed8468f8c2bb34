"""LinUCB with disjoint linear models: it plays the action with the highest upper confidence bound."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.agents.ahead import Ahead
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.forgetting import make_posterior
from gents_gym.agents.late import OpenDecisions
from gents_gym.agents.linear import ContextFeatures, LinearPrior, check_observed
from gents_gym.agents.ties import Chooser, check_ties
from gents_gym.checks import InputError, check_flag, check_number
from gents_gym.types import Feedback, TaskInfo


@dataclass
class LinUCB(Resettable):
    """LinUCB-disjoint: ridge regression of rewards on contexts per action, plus α standard deviations.

    With a ``discount`` it is discounted LinUCB, for drifting tasks: a row loses weight with every further decision.
    """

    alpha: float = 0.1  # width of the confidence bound
    intercept: bool = False  # the paper's version has no intercept
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one
    discount: float = 1.0  # what a row's weight is multiplied by at each decision; 1: nothing is forgotten

    def __post_init__(self) -> None:
        """Check the options."""
        check_flag("intercept", self.intercept)
        check_number("alpha", self.alpha, 0)
        if check_number("discount", self.discount, 0, above=True) > 1:
            raise InputError(f"discount must be at most 1, got {self.discount}")
        check_ties(self.ties)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._info, self._features = info, ContextFeatures(info, self.intercept)
        self._open = OpenDecisions(info)
        prior = LinearPrior.isotropic(info.context_dim + self.intercept, noise=1.0)
        self._posterior = make_posterior(prior, info, discount=self.discount)
        self._choose = Chooser(self.ties, rngs, info.n_actions)
        self._scores = Ahead(self.scores)

    def scores(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the upper confidence bounds, (B, D) to (B, A), or for the live actions, (B, n)."""
        mean, deviation = self._posterior.predict(self._features(context), live)
        return mean + self.alpha * deviation

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest bound."""
        live = find_available(available, self._info)
        return self._open.acts(context, self._choose(self._scores.take(context, live), live))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return probability 1 for the action with the highest bound, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return self._choose.probabilities(self._scores.look(context, live), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the played actions' regressions."""
        observed = check_observed(self._info, action, outcome)
        features = self._features(context)
        self._posterior.fade()
        self._posterior.update(features, *observed)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the regressions of the actions whose outcomes arrived."""
        self._posterior.fade()
        for task, context, action, outcome in self._open.arrive(feedback):
            self._posterior.update(self._features.map(context), action, outcome, task)
