"""Adapts a per-action model with three methods to the full model protocol."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.likelihoods import BERNOULLI, Likelihood
from gents_gym.models.belief import ActionBelief, ask_optional
from gents_gym.types import ActionModel, TaskInfo


@dataclass(frozen=True)
class PerAction:
    """A model made from ``start``, ``predict`` and ``append`` of an inner model.

    The inner model may also have a ``likelihood`` (without it, outcomes are binary), a ``bank`` of contexts (n, D)
    (without it, imagined contexts are the task's own), and the methods ``context_features`` and
    ``action_context_features`` of :class:`gents_gym.types.Model`.
    """

    model: ActionModel

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        return getattr(self.model, "likelihood", BERNOULLI)

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> ActionBelief:
        """Return the belief of B new tasks."""
        bank = getattr(self.model, "bank", None)
        return ActionBelief(self.model, info, rngs, None if bank is None else np.asarray(bank), 0.0, self.likelihood)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the inner model's features of contexts, (..., D) to (..., K); None if it has none."""
        return ask_optional(self.model, "context_features", contexts)

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> np.ndarray | None:
        """Return the inner model's features, (..., F) and (..., D) to (..., K); None if it has none."""
        return ask_optional(self.model, "action_context_features", action_features, contexts)
