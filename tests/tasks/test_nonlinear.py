"""The nonlinear setting: its tables follow its formulas, and its published p* is that of its tables."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from gents_gym import make_tasks
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.nonlinear import bend, nonlinear_features, nonlinear_prior


def test_features_are_entries_products_and_bends():
    x = np.array([1.0, -2.0, 3.0])
    wanted = [1, -2, 3, -2, 3, -6, *bend(x)]
    np.testing.assert_allclose(nonlinear_features(x), wanted)
    normal = np.random.default_rng(0).standard_normal((200_000, 3))
    found = nonlinear_features(normal)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(found.var(axis=0), 1, atol=0.05)


def test_the_prior_is_that_of_the_drawn_coefficients():
    """Gaussian outcomes of many rows of one action give its coefficients back, and these have the prior's moments."""
    rows = make_tasks("nonlinear", context_dim=2, outcomes="gaussian").sample_actions(0, range(600), 400)
    design = np.concatenate([np.ones((600, 400, 1)), nonlinear_features(rows.contexts)], axis=2)
    found = np.linalg.solve(design.swapaxes(1, 2) @ design, design.swapaxes(1, 2) @ rows.outcomes[..., None])[..., 0]
    mean, variance = nonlinear_prior(rows.action_features, 2)
    z = (found - mean) / np.sqrt(variance)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.15)
    np.testing.assert_allclose(z.var(axis=0), 1, atol=0.2)


def test_the_reference_loss_is_that_of_a_plain_average_over_the_prior():
    tasks = make_tasks("nonlinear", context_dim=2)
    rows = tasks.sample_actions(0, range(5), 6)
    found = ExactModel(tasks.truth).log_marginal(
        rows.action_features, rows.contexts, rows.outcomes, np.random.default_rng(0)
    )
    mean, variance = nonlinear_prior(rows.action_features, 2)
    draws = mean[:, None] + np.sqrt(variance)[:, None] * np.random.default_rng(1).standard_normal((5, 100_000, 6))
    predictors = draws[..., :1] + draws[..., 1:] @ nonlinear_features(rows.contexts).swapaxes(1, 2)  # (5, n, 6)
    likelihood = np.where(rows.outcomes[:, None] == 1, expit(predictors), expit(-predictors))
    wanted = logsumexp(np.log(likelihood).sum(axis=2), axis=1) - np.log(100_000)
    np.testing.assert_allclose(found, wanted, atol=0.03)


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian", "categorical"])
def test_tasks_have_true_means_and_an_oracle(outcomes):
    distribution = make_tasks("nonlinear", n_actions=3, horizon=400, outcomes=outcomes)
    tasks = distribution.sample(0, range(20))
    assert (tasks.context_dim, tasks.oracle) == (4, "mlp" if outcomes == "bernoulli" else "least-squares")
    assert abs((tasks.rewards - tasks.means).mean()) < 0.02
    assert pickle.loads(pickle.dumps(distribution)) == distribution
    assert distribution.sample(0, [7]).content_hash == tasks[[7]].content_hash
