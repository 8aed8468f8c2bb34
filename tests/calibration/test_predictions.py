"""Predictions through the seam are the model's own, whatever an outcome is."""

import numpy as np
import pytest
import torch

from gents_gym import ExactModel, load_model
from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.follow import follow
from gents_gym.calibration.given import inform
from gents_gym.calibration.predictions import Predictor
from gents_gym.tasks.synthetic import Synthetic

NAMES = {
    "bernoulli": "synthetic-filter",
    "gaussian": "synthetic-filter-gaussian",
    "categorical": "synthetic-filter-categorical",
}


def draw(outcomes, n_actions, n_rows, seed=0):
    nature = Synthetic(outcomes=outcomes)
    return nature, nature.sample_actions(seed, range(n_actions), n_rows, "test")


def generators(count, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(count)]


@pytest.mark.parametrize("outcomes", NAMES)
def test_parameters_from_mean_rewards_are_those_of_the_model(outcomes):
    _, rows = draw(outcomes, 4, 6)
    model = load_model(NAMES[outcomes])
    predictor = Predictor(model, inform(rows, model, None, None), generators(4))
    state = model.start(torch.tensor(rows.action_features))
    for t in range(6):
        with torch.no_grad():
            expected = model.predict(state, torch.tensor(rows.contexts[:, t])).double().numpy()
        found = predictor.predict(rows.contexts[:, t : t + 1])[:, 0]
        assert found == pytest.approx(expected, abs=1e-4)
        predictor.impute(rows.contexts[:, t], 3, 2, None)  # changes nothing
        predictor.append(rows.contexts[:, t], rows.outcomes[:, t])
        with torch.no_grad():
            state = model.append(state, torch.tensor(rows.contexts[:, t]), torch.tensor(rows.outcomes[:, t]))


def test_estimated_probabilities_of_categories_belong_to_one_distribution():
    """Those of p* are over weighted proposals, the same ones for every category."""
    nature, rows = draw("categorical", 3, 4)
    model = ExactModel(nature.truth, n_weighted=8)
    predictor = Predictor(model, inform(rows, model, nature.truth, None), generators(3))
    for t in range(3):
        sums = sum(belief.expected(rows.contexts[:, t]) for belief in predictor._beliefs)
        assert sums == pytest.approx(np.ones((3, 1)))
        predictor.impute(rows.contexts[:, t], 2, 2, None)
        predictor.append(rows.contexts[:, t], rows.outcomes[:, t])


def test_losses_of_groups_are_those_of_bayesian_linear_regression():
    """In closed form: the joint loss from the marginal likelihood, the other from each row's own."""
    nature, rows = draw("gaussian", 5, 12)
    model, config = ExactModel(nature.truth), CalibrationConfig(rows=3, group=4, draws=2)
    found = follow(model, rows, inform(rows, model, nature.truth, None), (0, 3), config, generators(5))
    prior_mean, prior_variance = nature.truth.prior(rows.action_features)
    for i in range(5):
        x, y = np.pad(rows.contexts[i], ((0, 0), (1, 0)), constant_values=1.0), rows.outcomes[i].astype(np.float64)
        covariance = x @ np.diag(prior_variance[i]) @ x.T + np.eye(12)
        centre = x @ prior_mean[i]
        for at, step in enumerate((0, 3)):
            given, group = slice(0, step), slice(step, step + 4)
            gain = covariance[group, given] @ np.linalg.inv(covariance[given, given])
            mean = centre[group] + gain @ (y[given] - centre[given])
            joint = covariance[group, group] - gain @ covariance[given, group]
            expected = np.stack([mean, np.diag(joint)], axis=1)
            assert found.at_once[i, at] == pytest.approx(expected, abs=1e-4)
            residual = y[group] - mean
            density = -0.5 * (np.linalg.slogdet(2 * np.pi * joint)[1] + residual @ np.linalg.solve(joint, residual))
            assert model.likelihood.log_prob(found.one_step, found.outcomes)[i, at].sum() == pytest.approx(
                density, abs=1e-3
            )
    assert np.array_equal(found.outcomes[:, 1], rows.outcomes[:, 3:7])
