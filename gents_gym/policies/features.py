"""Fits policies to the model's own context features φ̂(X) instead of X."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gents_gym.checks import check_choice
from gents_gym.construct import make_policy
from gents_gym.types import Policy, PolicyClass, RewardFn, identity


@dataclass(frozen=True)
class OnFeatures:
    """Another policy class, fitted to the context features that a model's predictions are linear in.

    An agent on a model provides those features. An oracle cannot use this class, because regret is measured on
    contexts.
    """

    base: str = "logistic"  # logistic or least-squares
    reward_fn: RewardFn = identity  # R of the outcomes
    inner: PolicyClass = field(init=False, repr=False)  # the class that is fitted
    reads_features: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the class that is fitted."""
        check_choice("base of features:", self.base.partition("(")[0], ["logistic", "least-squares"])
        object.__setattr__(self, "inner", make_policy(self.base, reward_fn=self.reward_fn))

    def fit(
        self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None, weights: np.ndarray | None = None
    ) -> Policy:
        """Fit one policy per task to features (B, T, K) and outcomes (B, T, A)."""
        return self.inner.fit(contexts, outcomes, warm_start, weights)  # type: ignore[call-arg]
