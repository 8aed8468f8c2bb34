"""Checks and selects the part of tasks and rows that a model may know, before anything is measured."""

from typing import Any

import numpy as np

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.follow import rows_needed
from gents_gym.checks import InputError
from gents_gym.construct import get_policy
from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.exact import ExactModel
from gents_gym.models.load import begin_belief
from gents_gym.types import (
    ActionRows,
    FeaturePolicyClass,
    Model,
    PolicyClass,
    PublishesTruth,
    TaskDistribution,
    TaskInfo,
    Tasks,
    Truth,
)


def inform(data: Tasks | ActionRows, model: Any, truth: Truth | None, contexts: str | None) -> TaskInfo:
    """Return what ``model`` may know of tasks, or of single actions, each as its own task.

    Args:
        data: Tasks or rows of actions.
        model: A model or its name; the exact one receives the features that p* depends on.
        truth: p*, if it is known.
        contexts: Where imagined contexts come from; with "given" the model knows the contexts.
    """
    is_exact, hidden = model == "exact" or isinstance(model, ExactModel), data.hidden_features
    features = hidden if is_exact and hidden is not None else data.action_features
    is_alone = isinstance(data, ActionRows)
    features = features[:, None] if is_alone else features  # (B, A, F)
    return TaskInfo(
        action_features=features,
        n_actions=features.shape[1],
        context_dim=data.contexts.shape[2],
        horizon=data.contexts.shape[1],
        reward_fn=data.reward_fn,
        texts=None if isinstance(data, ActionRows) or data.texts is None else data.texts.tolist(),
        space=None if is_exact else data.space,
        likelihood=data.likelihood,
        truth=truth if is_exact or hidden is None else None,
        known_contexts=data.contexts if contexts == "given" else None,
    )


def known_truth(distribution: TaskDistribution, config: CalibrationConfig) -> Truth | None:
    """Return p*, or None if it is not known; raise if simulation-based calibration needs it."""
    if isinstance(distribution, PublishesTruth):
        return distribution.truth
    if config.sbc == "yes":
        rule = "sbc (simulation-based calibration) needs a setting that publishes its p*"
        raise InputError(f"{rule}, got {type(distribution).__name__}: use auto or no")
    return None


def choose_class(tasks: Tasks, policy: str | None) -> PolicyClass:
    """Return the policy class that is fitted to tables: the named one, or the default."""
    policy = policy or ("logistic" if tasks.likelihood == BERNOULLI else "least-squares")
    made = get_policy("policy", policy, tasks.reward_fn, tasks.likelihood)
    if isinstance(made, FeaturePolicyClass):
        raise InputError(f"policy must be fitted to contexts, which all tables have, got {policy!r}")
    return made


def check_calibration(model: Any, distribution: TaskDistribution, config: CalibrationConfig) -> Model:
    """Return the model that ``model`` is or names; raise unless it can be measured in this setting."""
    truth = known_truth(distribution, config)
    tasks = distribution.sample(config.seed, [0], "test")
    n_rows = rows_needed(config.steps_below(tasks.horizon), config)
    choose_class(tasks, config.policy)

    def begin(data: Tasks | ActionRows) -> Model:
        found, belief = begin_belief(model, inform(data, model, truth, config.contexts), [np.random.default_rng(0)])
        belief.complete(data.contexts[:, 0], 1, 1, config.contexts)
        return found

    begin(tasks)
    try:
        return begin(distribution.sample_actions(config.seed, [0], n_rows, "test"))
    except InputError as error:
        read = f"calibration reads {n_rows} rows of an action: the last of steps, and rows or group"
        raise InputError(f"{error} ({read})") from error
