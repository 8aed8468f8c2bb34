"""Tests values of fitted policies against a slow version, and their positions if the posterior is exact."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from gents_gym import ExactModel, make_policy
from gents_gym.calibration.given import inform
from gents_gym.calibration.values import place_values, policy_values
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import half


def test_a_value_is_the_mean_reward_of_the_policy_fitted_to_the_table():
    tasks = Synthetic(n_actions=3, horizon=40).sample(0, range(4))
    found = policy_values(make_policy("logistic"), tasks.contexts, tasks.outcomes, half)
    for contexts, outcomes, value in zip(tasks.contexts, tasks.outcomes, found, strict=True):
        fits = [LogisticRegression(tol=1e-8).fit(contexts, column) for column in outcomes.T]
        played = np.argmax([fit.predict_proba(contexts)[:, 1] for fit in fits], axis=0)
        assert value == pytest.approx(np.mean([outcomes[t, a] / 2 for t, a in enumerate(played)]))


@pytest.mark.parametrize("shift", [0, 1])
def test_the_true_value_is_like_those_of_completed_tables_if_the_model_is_right(shift):
    """And above them if the model's prior means are too low."""
    nature = Synthetic(n_actions=2, horizon=8, outcomes="gaussian")

    def prior(features):
        mean, variance = nature.truth.prior(features)
        return mean - shift, variance

    tasks, model = nature.sample(0, range(400)), ExactModel(replace(nature.truth, prior=prior))
    info, rngs = inform(tasks, model, nature.truth, None), [np.random.default_rng(i) for i in range(400)]
    found = place_values(model, tasks, info, make_policy("least-squares"), (0, 5), 9, None, rngs)
    assert found.positions.shape == found.widths.shape == (400, 2)
    assert (found.widths[:, 1] < found.widths[:, 0]).mean() > 0.8  # there is less to impute
    if shift == 0:
        assert min(stats.kstest(positions, "uniform").pvalue for positions in found.positions.T) > 0.01
    else:
        assert found.positions[:, 0].mean() > 0.6
