"""Uses any scikit-learn estimator as a policy class: one fitted estimator for each task and action."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_array, check_contexts, check_integer, check_reward_fn
from gents_gym.construct import make_object
from gents_gym.policies.table import check_weights
from gents_gym.types import RewardFn, identity


@dataclass(frozen=True, eq=False)
class EstimatorPolicy:
    """Fitted estimators, B × A; a column of equal outcomes has their reward instead."""

    fitted: list[list[Any]]
    context_dim: int  # D
    reward_fn: RewardFn = identity

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        contexts = check_contexts(context, len(self.fitted), self.context_dim, np.float64)  # (B, T, D)
        found = np.empty((*contexts.shape[:2], len(self.fitted[0])))
        for b, task in enumerate(self.fitted):
            for a, fitted in enumerate(task):
                found[b, :, a] = fitted if isinstance(fitted, float) else self._predict(fitted, contexts[b])
        return found[:, 0] if np.ndim(context) == 2 else found

    def _predict(self, fitted: Any, contexts: np.ndarray) -> np.ndarray:
        """Return one action's predicted rewards, (T, D) to (T,)."""
        if hasattr(fitted, "predict_proba"):
            return fitted.predict_proba(contexts) @ self.reward_fn(fitted.classes_)
        return fitted.predict(contexts)


@dataclass(frozen=True, eq=False)
class Estimator:
    """A scikit-learn classifier or regressor, fitted from scratch to each task and action, one at a time.

    Classifiers learn the outcomes and predict Σ_y P(y) R(y); regressors learn R of the outcomes. It works with any
    estimator but is slow; ``logistic`` and ``mlp`` fit all tasks and actions at once.
    """

    estimator: Any  # an unfitted estimator, or "package.module:Class(option=value)"
    reward_fn: RewardFn = identity  # R of the outcomes

    def __post_init__(self) -> None:
        """Check the options."""
        check_reward_fn(self.reward_fn)
        if isinstance(self.estimator, str):
            object.__setattr__(self, "estimator", make_object("estimator", self.estimator, {}, {}))
        if isinstance(self.estimator, type) or not all(hasattr(self.estimator, verb) for verb in ("fit", "predict")):
            raise InputError(f"estimator must be an object with fit and predict, got {self.estimator!r}")

    def fit(
        self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None, weights: np.ndarray | None = None
    ) -> EstimatorPolicy:
        """Fit B·A estimators.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A).
            warm_start: Ignored; every fit is from scratch.
            weights: (B, T, A), or None for ones; a zero drops the row, others are passed as ``sample_weight``.
        """
        contexts = check_array("contexts", contexts, "(B, T, D)", (-1, -1, -1), np.float64)
        n_tasks, n_rows, _ = contexts.shape
        outcomes = check_array("outcomes", outcomes, "(B, T, A)", (n_tasks, n_rows, -1), np.float64)
        check_integer("the number of rows T", n_rows, 1)
        weights = np.ones_like(outcomes) if weights is None else weights
        weights = check_weights(weights, outcomes.shape, np.float64)
        columns = range(outcomes.shape[2])
        fitted = [
            [self._fit_one(contexts[b], outcomes[b, :, a], weights[b, :, a]) for a in columns] for b in range(n_tasks)
        ]
        return EstimatorPolicy(fitted, contexts.shape[2], self.reward_fn)

    def _fit_one(self, contexts: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> Any:
        """Return an estimator fitted to the (T, D) contexts and (T,) outcomes that count, or a constant reward."""
        from sklearn.base import clone, is_classifier
        from sklearn.utils.validation import has_fit_parameter

        counts = weights != 0
        contexts, outcomes, weights = contexts[counts], outcomes[counts], weights[counts]
        if len(outcomes) == 0 or (outcomes == outcomes[0]).all():
            return float(self.reward_fn(outcomes[:1] if len(outcomes) else np.zeros(1))[0])
        options = {}
        if (weights != 1).any():
            if not has_fit_parameter(self.estimator, "sample_weight"):
                raise InputError(
                    f"weights must be 0 or 1 for an estimator without sample_weight, got {weights.max():g}"
                )
            options["sample_weight"] = weights
        if not is_classifier(self.estimator):
            return clone(self.estimator).fit(contexts, self.reward_fn(outcomes), **options)
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(f"estimator must have predict_proba if it is a classifier, got {self.estimator!r}")
        return clone(self.estimator).fit(contexts, outcomes, **options)
