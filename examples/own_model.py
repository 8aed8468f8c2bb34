"""Bring a model of your own: three methods, `start`, `predict` and `append`, that any agent on a model plays with."""

import argparse
import functools

import gymnasium as gym
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import gents_gym


class BetaBernoulli:
    """Looks at an action's outcomes alone: a Beta prior, and counts of ones and zeros."""

    def __init__(self, ones=1.0, zeros=1.0):
        self.prior = np.array([ones, zeros])

    def start(self, action_features):  # N actions with empty histories, (N, F); the state is (N, 2)
        return np.tile(self.prior, (len(action_features), 1))

    def predict(self, state, context):  # P(Y=1), (N,)
        return state[:, 0] / state.sum(axis=1)

    def append(self, state, context, outcome, where=None):  # a new state: the one that is given stays as it is
        counts = np.stack([outcome, 1 - outcome], axis=1)
        return state + (counts if where is None else counts * where[:, None])


@functools.cache
def fit_classifier(tasks, n_actions, n_rows=200, histories=20):
    """Fit P(Y=1 | Z, X, count, mean) to historical rows, each action with histories of several lengths."""
    rows = gents_gym.make_tasks(tasks).sample_actions(0, range(n_actions), n_rows)
    at = np.random.default_rng(0).integers(n_rows, size=(n_actions, histories))  # the row to predict
    action = np.arange(n_actions)[:, None]
    before = np.cumsum(rows.outcomes, axis=1)[action, at] - rows.outcomes[action, at]  # ones among earlier rows
    features = np.repeat(rows.action_features, histories, axis=0)
    contexts = rows.contexts[action, at].reshape(len(features), -1)
    inputs = summarise(np.column_stack([features, at.ravel(), before.ravel()]), contexts)
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=1000))
    return model.fit(inputs, rows.outcomes[action, at].ravel()), rows.contexts[:, 0]


def summarise(state, context):
    """Return the classifier's inputs (N, F+D+2) for states (Z, count, sum) and contexts (N, D)."""
    features, count, total = state[:, :-2], state[:, -2], state[:, -1]
    mean = (total + 1) / (count + 2)
    return np.column_stack([features, context, np.log1p(count), mean])


class Classifier:
    """A scikit-learn classifier of (Z, X, count and mean of the action's outcomes so far)."""

    def __init__(self, tasks="synthetic", n_actions=1000):
        self.classifier, self.bank = fit_classifier(tasks, n_actions)  # imagined contexts are drawn from the bank

    def start(self, action_features):  # the state is (Z, count, sum of outcomes), (N, F+2)
        return np.column_stack([action_features, np.zeros((len(action_features), 2))])

    def predict(self, state, context):
        return self.classifier.predict_proba(summarise(state, context))[:, 1]

    def append(self, state, context, outcome, where=None):
        where = np.ones(len(state)) if where is None else where
        state = state.copy()
        state[:, -2] += where
        state[:, -1] += where * outcome
        return state


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--horizon", type=int, default=200)
    arguments = parser.parse_args()

    models = {"BetaBernoulli": BetaBernoulli(), "Classifier": Classifier(), "filter": "filter"}
    for model in models.values():
        gents_gym.testing.check_model(model)  # says in plain words what is wrong, if something is

    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
    print(f"{'model':<16}{'ts-gen(m=16)':>20}{'greedy':>20}    expected regret, mean ± s.e.")
    for name, model in models.items():
        agents = gents_gym.make_agent("ts-gen(m=16)", model=model), gents_gym.make_agent("greedy", model=model)
        found = [gents_gym.rollout(envs, agent, seed=0).summary()["expected"] for agent in agents]
        print(f"{name:<16}" + "".join(f"{each['mean']:>13.1f} ± {each['se']:<4.1f}" for each in found))
