"""The policy class that an agent fits to completed tables, on contexts or on the model's features of contexts."""

import inspect
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gents_gym.checks import InputError, TaskError, check_array
from gents_gym.construct import get_policy, make_policy
from gents_gym.likelihoods import Bernoulli, Likelihood
from gents_gym.types import Completion, FeaturePolicyClass, Model, Policy, PolicyClass, RewardFn, TaskInfo


@dataclass(frozen=True, eq=False)
class FittedPolicy:
    """Policies fitted to completed tables, and their scores in the current contexts."""

    policy: Policy  # of B·M tables
    scores: np.ndarray  # (B, M, A)


@dataclass(frozen=True, eq=False)
class ChosenPolicy:
    """A policy class, and which inputs of a completed table it is fitted to."""

    name: str  # for records
    policy_class: Any
    on_features: bool

    @cached_property
    def _takes_weights(self) -> bool:
        return "weights" in inspect.signature(self.policy_class.fit).parameters

    def check_weights(self) -> None:
        """Raise unless the class can be fitted to tables in which some cells do not count."""
        if not self._takes_weights:
            raise InputError(f"policy must accept weights in fit to use m imputed rows, got {self.name}")

    def fit(self, tables: Completion, last: FittedPolicy | None) -> FittedPolicy:
        """Fit one policy to each of the B·M tables."""
        read = tables.features if self.on_features else tables.contexts  # (B, M, T', K)
        assert read is not None
        n_tasks, draws = read.shape[:2]
        x, outcomes = (part.reshape(-1, *part.shape[2:]) for part in (read, tables.outcomes))
        options = {} if tables.weights is None else {"weights": tables.weights.reshape(outcomes.shape)}
        shape = (len(outcomes), outcomes.shape[2])
        try:
            policy = self.policy_class.fit(x, outcomes, warm_start=last and last.policy, **options)
            scores = policy.scores(x[:, tables.current])
            scores = check_array("the policy's scores", scores, "(B·M, A)", shape, np.float64, per_task=1)
        except TaskError as error:
            error.position //= draws  # the class counts B·M tables, the error must name one of B tasks
            raise
        return FittedPolicy(policy, scores.reshape(n_tasks, draws, -1))


def check_policy(policy: Any) -> None:
    """Raise unless ``policy`` is a policy class, the name of one, or None."""
    if isinstance(policy, str):
        make_policy(policy)
    elif policy is not None and (isinstance(policy, type) or not hasattr(policy, "fit")):
        raise InputError(f"policy must be a policy class with fit, or its id, got {policy!r}")


def choose_policy(policy: str | PolicyClass | None, model: Model, info: TaskInfo) -> ChosenPolicy:
    """Return the policy class to fit: the named one, or the default.

    The default is logistic for outcomes 0 and 1 and least squares for others. If the model learned features that its
    predictions are linear in, the default is fitted to these features.
    """
    has_features = model.context_features(np.zeros((1, info.context_dim), np.float32)) is not None
    if policy is None:
        base = "logistic" if isinstance(info.likelihood, Bernoulli) else "least-squares"
        make = _kept if isinstance(info.reward_fn, Hashable) else _make
        return make(f"features(base={base})" if has_features else base, info.reward_fn, info.likelihood)
    chosen = _make(policy, info.reward_fn, info.likelihood)
    if chosen.on_features and not has_features:
        raise InputError(f"policy must read contexts for a model without context features, got {policy!r}")
    return chosen


def _make(policy: str | PolicyClass, reward_fn: RewardFn, likelihood: Likelihood) -> ChosenPolicy:
    made = get_policy("policy", policy, reward_fn, likelihood)
    return ChosenPolicy(policy if isinstance(policy, str) else repr(policy), made, isinstance(made, FeaturePolicyClass))


_kept = lru_cache(_make)  # the default classes keep no state between fits, and live agents are reset for each decision
