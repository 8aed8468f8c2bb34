"""Linear Thompson sampling: contexts in, the action that is best under a posterior draw out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from gents_gym.agents.base import Resettable
from gents_gym.agents.linear import (
    ContextFeatures,
    LinearPosterior,
    LinearPrior,
    add_intercept,
    check_observed,
    choose_prior,
    fit_prior,
)
from gents_gym.checks import check_choice, check_flag, check_number, check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import ActionRows, TaskInfo


@dataclass
class LinTS(Resettable):
    """Per-action Bayesian linear regression of rewards on contexts, with a Gaussian prior and Gaussian noise.

    Actions are independent under the posterior, and a decision needs no more of a drawn β than x·β, so the
    draw is of that number: N(x·m, xᵀPx).
    """

    prior: str = "isotropic"  # N(0, I), or "fitted" to historical rows by fit(rows)
    noise: float = 0.25  # noise variance of the isotropic prior; 1/4 is the most that rewards in [0, 1] can have
    intercept: bool = False  # the paper's version has none
    fitted: LinearPrior | None = field(default=None, init=False, repr=False)  # what fit(rows) found

    def __post_init__(self) -> None:
        """Check the options."""
        check_flag("intercept", self.intercept)
        check_choice("prior", self.prior, ["isotropic", "fitted"])
        check_number("noise", self.noise, 0, above=True)

    def fit(self, rows: ActionRows) -> Self:
        """Fit the prior to historical rows; the isotropic prior needs none."""
        if self.prior == "fitted":
            self.fitted = fit_prior(rows, lambda _, x: add_intercept(x) if self.intercept else x)
        return self

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        self._info, self._features = info, ContextFeatures(info, self.intercept)
        prior = choose_prior("lints", self.prior, info.context_dim + self.intercept, self.noise, self.fitted)
        self._posterior = LinearPosterior(prior, info)
        self._normal = Draws(check_rngs(rngs, len(info)), "standard_normal", info.n_actions)

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest drawn reward."""
        mean, deviation = self._posterior.predict(self._features(context))
        return (mean + deviation * self._normal.next()).argmax(axis=1)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the played actions' posteriors."""
        self._posterior.update(self._features(context), *check_observed(self._info, action, outcome))
