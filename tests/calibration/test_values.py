"""Values of fitted policies against a slow version, and their positions where the posterior is nature's own."""

import numpy as np
import pytest
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


def test_a_table_that_is_known_to_its_last_row_has_the_true_value():
    """With one decision left of which all is certain, the completed tables are the true one."""
    nature = Synthetic(n_actions=2, horizon=3, outcomes="gaussian")
    tasks = nature.sample(0, range(3))
    model = ExactModel(nature.truth)
    rngs = [np.random.default_rng(i) for i in range(3)]
    info = inform(tasks, model, nature.truth, "given")
    policy = make_policy("least-squares")
    found = place_values(model, tasks, info, policy, (0, 2), 7, "given", rngs)
    assert found.positions.shape == found.widths.shape == (3, 2)
    assert (found.widths[:, 1] < found.widths[:, 0] * 2).all()
    assert ((found.positions >= 0) & (found.positions < 1)).all()
