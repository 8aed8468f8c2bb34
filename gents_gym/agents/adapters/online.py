"""Turns scikit-learn estimators with ``partial_fit`` into agents, with one estimator per action."""

from functools import partial
from typing import Any

import numpy as np

from gents_gym.agents.per_task import PerTask, playable
from gents_gym.checks import InputError, check_number
from gents_gym.construct import make_object
from gents_gym.types import TaskInfo

ESTIMATOR = "sklearn.linear_model:SGDClassifier(loss=log_loss)"


def online(estimator: Any = ESTIMATOR, epsilon: float = 0.1) -> PerTask:
    """Return an agent that learns the rewards of each action from contexts with a separate estimator.

    It plays every action once, in random order. Then it plays the action with the highest prediction, or with
    probability ``epsilon`` a random one. A classifier learns labels 0 and 1; a reward between them is the probability
    of label 1.

    Args:
        estimator: An unfitted classifier (``partial_fit``, ``predict_proba``) or regressor (``partial_fit``,
            ``predict``) on scikit-learn's ``BaseEstimator``, or "package.module:Class(option=value)".
        epsilon: The share of random actions.
    """
    from sklearn.base import BaseEstimator, is_classifier

    made = make_object("estimator", estimator, {}, {}) if isinstance(estimator, str) else estimator
    if not isinstance(made, BaseEstimator):
        raise InputError(f"estimator must be an instance of scikit-learn's BaseEstimator, got {made!r}")
    predicts = "predict_proba" if is_classifier(made) else "predict"
    if not (hasattr(made, "partial_fit") and hasattr(made, predicts)):
        raise InputError(f"estimator must be an object with partial_fit and {predicts}, got {made!r}")
    if check_number("epsilon", epsilon, 0) > 1:
        raise InputError(f"epsilon must be at most 1, got {epsilon}")
    return PerTask(partial(_Task, made, predicts, epsilon), packages=("scikit-learn",))


class _Task:
    """Plays one task."""

    def __init__(self, estimator: Any, predicts: str, epsilon: float) -> None:
        self._estimator, self._predicts, self._epsilon = estimator, predicts, epsilon

    def reset(self, info: TaskInfo, rng: np.random.Generator) -> None:
        from sklearn.base import clone

        self._rng = rng
        self._learners = [clone(self._estimator) for _ in range(info.n_actions)]
        if "random_state" in self._estimator.get_params():
            for learner in self._learners:
                learner.set_params(random_state=int(rng.integers(2**31)))
        self._untried = rng.permutation(info.n_actions).tolist()
        self._fitted: set[int] = set()

    def act(self, observation: dict[str, np.ndarray]) -> int:
        there = playable(observation, len(self._learners))
        if untried := [action for action in self._untried if action in there]:
            self._untried.remove(untried[-1])
            return int(untried[-1])
        known = [action for action in there if action in self._fitted]  # outcomes of others may be late
        if self._rng.random() < self._epsilon or not known:
            return int(there[self._rng.integers(len(there))])
        return known[int(np.argmax([self._predict(self._learners[i], observation["context"][None]) for i in known]))]

    def _predict(self, learner: Any, context: np.ndarray) -> float:
        labels = self._predicts == "predict_proba"
        predicted = float(learner.predict_proba(context)[0, 1] if labels else learner.predict(context)[0])
        if np.isnan(predicted):  # argmax would take NaN for the highest
            raise InputError(f"estimator must predict a number, got nan of {learner!r}")
        return predicted

    def observe(self, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        self._fitted.add(action)
        context = observation["context"][None]
        if self._predicts == "predict_proba":
            if not 0 <= reward <= 1:
                raise InputError(f"rewards must lie in [0, 1] for a classifier (a regressor takes any), got {reward:g}")
            label = int(self._rng.random() < reward)  # exactly the reward if that is 0 or 1
            self._learners[action].partial_fit(context, [label], classes=[0, 1])
        else:
            self._learners[action].partial_fit(context, [reward])

    def observe_late(self, decision: int, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        self.observe(observation, action, reward)
