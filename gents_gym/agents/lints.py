"""Linear Thompson sampling: it plays the action that is best under a posterior draw."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from gents_gym.agents.ahead import DEFAULT_VOTES
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.drawn import DrawnBest
from gents_gym.agents.forgetting import make_posterior
from gents_gym.agents.late import OpenDecisions
from gents_gym.agents.linear import (
    ContextFeatures,
    LinearPrior,
    add_intercept,
    check_observed,
    choose_prior,
    fit_prior,
)
from gents_gym.checks import check_choice, check_flag, check_integer, check_number, check_rngs
from gents_gym.types import ActionRows, Feedback, TaskInfo


@dataclass
class LinTS(Resettable):
    """Per-action Bayesian linear regression of rewards on contexts, with a Gaussian prior and Gaussian noise.

    Actions are independent under the posterior, and a decision needs only x·β of a drawn β, so that number is drawn
    directly: N(x·m, xᵀPx). With a ``window`` it is the sliding-window version, for drifting tasks.
    """

    prior: str = "isotropic"  # N(0, I), or "fitted" to historical rows by fit(rows)
    noise: float = 0.25  # noise variance of the isotropic prior; rewards in [0, 1] have at most 1/4
    intercept: bool = False  # the paper's version has no intercept
    votes: int = DEFAULT_VOTES  # draws that the action probabilities are estimated from, the played one included
    window: int | None = None  # only rows of this many latest decisions count; None: all
    fitted: LinearPrior | None = field(default=None, init=False, repr=False)  # the prior that fit(rows) found

    def __post_init__(self) -> None:
        """Check the options."""
        check_flag("intercept", self.intercept)
        check_choice("prior", self.prior, ["isotropic", "fitted"])
        check_number("noise", self.noise, 0, above=True)
        check_integer("votes", self.votes, 2)
        if self.window is not None:
            check_integer("window", self.window, 1)

    def fit(self, rows: ActionRows) -> Self:
        """Fit the prior to historical rows; the isotropic prior needs none."""
        if self.prior == "fitted":
            self.fitted = fit_prior(rows, lambda _, x: add_intercept(x) if self.intercept else x)
        return self

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._info, self._features = info, ContextFeatures(info, self.intercept)
        self._open = OpenDecisions(info)
        prior = choose_prior("lints", self.prior, info.context_dim + self.intercept, self.noise, self.fitted)
        self._posterior = make_posterior(prior, info, window=self.window)
        self._best = DrawnBest(self._predict, check_rngs(rngs, len(info)), info.n_actions, self.votes)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest drawn reward."""
        return self._open.acts(context, self._best.act(context, find_available(available, self._info)))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the vote share of each action over ``votes`` draws, (B, D) to (B, A)."""
        return self._best.probabilities(context, find_available(available, self._info))

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the played actions' posteriors."""
        observed = check_observed(self._info, action, outcome)
        features = self._features(context)
        self._posterior.fade()
        self._posterior.update(features, *observed)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the posteriors of the actions whose outcomes arrived."""
        self._posterior.fade()
        for task, context, action, outcome in self._open.arrive(feedback):
            self._posterior.update(self._features.map(context), action, outcome, task)

    def _predict(self, context: np.ndarray, live: Available | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self._posterior.predict(self._features(context), live)
