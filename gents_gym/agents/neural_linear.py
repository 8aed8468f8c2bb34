"""Neural-linear Thompson sampling: linear Thompson sampling on a model's features of actions and contexts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from gents_gym.agents.ahead import DEFAULT_VOTES
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.drawn import DrawnBest
from gents_gym.agents.late import OpenDecisions
from gents_gym.agents.linear import FeatureMap, LinearPosterior, LinearPrior, check_observed, choose_prior, fit_prior
from gents_gym.agents.on_model import first_task
from gents_gym.checks import InputError, check_array, check_choice, check_integer, check_number, check_rngs
from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.load import begin_belief, check_model_name, model_folders
from gents_gym.types import ActionRows, Feedback, TaskInfo

RIDGE = 0.1  # ridge penalty of the historical regressions
DEFAULTS = ("paper", "filter")  # the default model, for binary outcomes and for others
FLOOR = 1e-4  # added to the fitted variances, because there may be fewer actions than coefficients


@dataclass
class NeuralLinearTS(Resettable):
    """Per-action Bayesian linear regression of rewards on p_θ's features at (Z, X) with an empty history.

    The model's weights stay fixed; what is learned online is linear in its features. As in LinTS, only x·β is drawn:
    N(x·m, xᵀPx).
    """

    model: Any = None  # a preset, a model's id or folder, or a model with features of (Z, X); None: see DEFAULTS
    prior: str = "isotropic"  # N(0, I), or "fitted" to historical rows by fit(rows)
    noise: float = 0.25  # noise variance of the isotropic prior; rewards in [0, 1] have at most 1/4
    votes: int = DEFAULT_VOTES  # draws that the action probabilities are estimated from, the played one included
    fitted: LinearPrior | None = field(default=None, init=False, repr=False)  # the prior that fit(rows) found

    def __post_init__(self) -> None:
        """Check the options."""
        for model in DEFAULTS if self.model is None else (self.model,):
            check_model_name(model)
        check_choice("prior", self.prior, ["isotropic", "fitted"])
        check_number("noise", self.noise, 0, above=True)
        check_integer("votes", self.votes, 2)

    @property
    def weight_files(self) -> list[Path]:
        """The weight files of the default model; those of a named model are found by its name."""
        folders = [folder for name in DEFAULTS if self.model is None for folder in model_folders(name)]
        return [folder / name for folder in folders for name in ("config.json", "model.safetensors")]

    def model_for(self, info: TaskInfo) -> Any:
        """Return the model that plays these tasks, or what names it."""
        default = DEFAULTS[0] if info.likelihood == BERNOULLI else DEFAULTS[1]
        return default if self.model is None else self.model

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model has features for these tasks; only the first is tried."""
        first, _, context = first_task(info)
        self._model_features(first)(first.action_features, context[:, None])

    def fit(self, rows: ActionRows) -> Self:
        """Fit the prior to historical rows; the isotropic prior needs none."""
        if self.prior == "fitted":
            sizes = (1, rows.contexts.shape[-1], 1)
            info = TaskInfo(rows.action_features[None, :1], *sizes, likelihood=rows.likelihood, space=rows.space)
            self.fitted = fit_prior(rows, self._model_features(info), ridge=RIDGE, floor=FLOOR)
        return self

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._info, self._open = info, OpenDecisions(info)
        check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        self._features = self._model_features(info)
        size = self._features(info.action_features[:1, 0], np.zeros((1, info.context_dim))).shape[1]
        prior = choose_prior("neural-linear-ts", self.prior, size, self.noise, self.fitted)
        self._posterior = LinearPosterior(prior, info)
        self._best = DrawnBest(self._predict, check_rngs(rngs, len(info)), info.n_actions, self.votes)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest drawn reward."""
        return self._open.acts(context, self._best.act(context, find_available(available, self._info)))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the vote share of each action over ``votes`` draws, (B, D) to (B, A)."""
        return self._best.probabilities(context, find_available(available, self._info))

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the played actions' posteriors."""
        context = self._check(context)
        action, outcome = check_observed(self._info, action, outcome)
        self._learn(np.arange(len(action)), context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the posteriors of the actions whose outcomes arrived."""
        for arrived in self._open.arrive(feedback):
            self._learn(*arrived)

    def _learn(self, task: np.ndarray, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        played = self._info.action_features[task, action]  # (n, F)
        self._posterior.update(self._features(played, context), action, outcome, task)

    def _predict(self, context: np.ndarray, live: Available | None = None) -> tuple[np.ndarray, np.ndarray]:
        z = self._info.action_features
        z = z if live is None else z[np.arange(len(z))[:, None], live.actions]  # (B, n, F)
        return self._posterior.predict(self._features(z, self._check(context)[:, None]), live)

    def _model_features(self, info: TaskInfo) -> FeatureMap:
        """Return the model's features as a function of arrays, (..., F) and (..., D) to (..., K) in float64."""
        first, rngs, _ = first_task(info)
        # Raises if the model does not fit the tasks.
        model, _ = begin_belief(self.model_for(info), first, rngs)

        def features(action_features: np.ndarray, contexts: np.ndarray) -> np.ndarray:
            found = model.action_context_features(action_features, contexts)
            if found is None:
                raise InputError(f"model must have action_context_features for neural-linear-ts, got {self.model!r}")
            return check_array("the model's features", found, "(..., K)", found.shape, np.float64, per_task=1)

        return features

    def _check(self, context: np.ndarray) -> np.ndarray:
        return check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim))
