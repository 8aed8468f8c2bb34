"""Predicts single actions through the public interface, with one belief for each reward whose mean is needed."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gents_gym.checks import check_array
from gents_gym.likelihoods import Bernoulli, Gaussian, Likelihood
from gents_gym.models.load import begin_belief
from gents_gym.types import Feedback, RewardFn, TaskInfo, identity

TINY = 1e-12  # the smallest variance


def _is(category: float, outcomes: np.ndarray) -> np.ndarray:
    return np.asarray(outcomes == category, np.float64)


def moments(likelihood: Likelihood) -> tuple[RewardFn, ...]:
    """Return rewards whose means determine the parameters of a predicted distribution."""
    if isinstance(likelihood, Bernoulli):
        return (identity,)
    if isinstance(likelihood, Gaussian):
        return identity, np.square
    return tuple(partial(_is, category) for category in likelihood.support)


class Predictor:
    """A model's predictions of N actions, each the only one of its task, given the rows appended so far."""

    def __init__(self, model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories.

        Args:
            model: A model or its name.
            info: What is known of N tasks with one action each.
            rngs: One generator per task.
        """
        self._likelihood, self._tasks, self._time = info.likelihood, np.arange(len(info)), 0
        # The same random numbers for each reward, so that estimated probabilities belong to one distribution.
        self._beliefs = [
            begin_belief(model, replace(info, reward_fn=reward), copy.deepcopy(rngs))[1]
            for reward in moments(info.likelihood)
        ]

    def predict(self, contexts: np.ndarray) -> np.ndarray:
        """Return the likelihood's parameters in contexts, (N, C, D) to (N, C, ...)."""
        shape = (*contexts.shape[:2], 1)
        means = [
            check_array("what the model expects", belief.expected(contexts), "(N, C, 1)", shape, np.float64)[..., 0]
            for belief in self._beliefs
        ]
        if isinstance(self._likelihood, Bernoulli):
            return np.clip(means[0], 0, 1)
        if isinstance(self._likelihood, Gaussian):
            return np.stack([means[0], np.maximum(means[1] - means[0] ** 2, TINY)], axis=-1)
        found = np.clip(np.stack(means, axis=-1), 0, 1)
        return found / found.sum(axis=-1, keepdims=True)

    def append(self, context: np.ndarray, outcome: np.ndarray) -> None:
        """Observe a row of every action, (N, D) and (N,)."""
        feedback = Feedback(self._tasks, np.full_like(self._tasks, self._time), outcome.copy())  # rows are read-only
        for belief in self._beliefs:
            belief.decide(context, np.zeros_like(self._tasks))
            belief.observe(feedback)
        self._time += 1

    def impute(self, context: np.ndarray, rows: int, draws: int, contexts: str | None) -> np.ndarray:
        """Return outcomes of further rows, the first in the given contexts (N, D), drawn M times, (N, M, rows).

        They come from a copy of the belief, so predictions do not depend on them.
        """
        tables = self._beliefs[0].fork(self._tasks).complete(context, rows, draws, contexts)
        return tables.outcomes[:, :, tables.current :, 0]
