"""Tests priors and coefficients fitted to rows of many actions against the true ones."""

import numpy as np
import pytest
from scipy.special import softmax

from gents_gym import Bernoulli, Categorical, Gaussian
from gents_gym.training.hierarchy import fit_hierarchy, targets

SPREAD = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, 0.0], [0.0, 0.0, 0.1]])
MAPS = np.array([[1.0, 0.5, 0.0], [0.7, 0.0, -1.0]])  # of (1, Z)


def linear_rows(n=800, length=40, noise=0.4, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    own = np.column_stack([np.ones(n), z]) @ MAPS + rng.multivariate_normal(np.zeros(3), SPREAD, size=n)
    x = np.concatenate([np.ones((n, length, 1)), rng.normal(size=(n, length, 2))], axis=2)
    y = (x @ own[..., None])[..., 0] + np.sqrt(noise) * rng.normal(size=(n, length))
    return z, x, y, own


def test_a_linear_hierarchy_is_found():
    z, x, y, own = linear_rows()
    found = fit_hierarchy(Gaussian(), z, x, y, np.ones_like(y), 12)
    assert found.maps == pytest.approx(MAPS, abs=0.1)
    assert found.covariance == pytest.approx(SPREAD, abs=0.07)
    assert found.noise == pytest.approx(0.4, rel=0.03)
    assert np.abs(found.modes - own).mean() < 0.12
    assert found.information[0] == pytest.approx(np.full(y.shape, 1 / found.noise))


def test_linear_modes_are_posterior_means():
    """Of the last round's prior, by the normal equations; rows of weight 0 count for nothing."""
    z, x, y, _ = linear_rows(60, 15)
    weights = (np.arange(15) < np.random.default_rng(0).integers(2, 15, size=60)[:, None]).astype(float)
    before = fit_hierarchy(Gaussian(), z, x, y, weights, 30)
    found = fit_hierarchy(Gaussian(), z, x, y * weights, weights, 31)  # as good as settled
    for i in range(60):
        kept = x[i][weights[i] > 0]
        precision = np.linalg.inv(before.covariance)
        prior = np.array([1, *z[i]]) @ before.maps
        left = kept.T @ kept / before.noise + precision
        wanted = np.linalg.solve(left, kept.T @ y[i][weights[i] > 0] / before.noise + precision @ prior)
        assert found.modes[i] == pytest.approx(wanted, abs=5e-3)


@pytest.mark.parametrize("length", [1, 3])
def test_few_rows_give_a_sound_prior(length):
    z, x, y, _ = linear_rows(500, length)
    found = fit_hierarchy(Gaussian(), z, x, y, np.ones_like(y), 12)
    assert np.linalg.eigvalsh(found.covariance).min() > 0
    assert 0 < found.noise < 2


def test_constant_outcomes_leave_no_noise():
    z, x, y, _ = linear_rows(50, 10)
    found = fit_hierarchy(Gaussian(), z, x, np.full_like(y, 5), np.ones_like(y), 12)
    assert found.noise < 1e-3
    assert found.modes == pytest.approx(np.tile([5.0, 0, 0], (50, 1)), abs=0.05)


def test_categories_are_compared_with_the_first_one_each():
    y, w = np.array([[0, 1, 2, 1]]), np.array([[1.0, 1.0, 1.0, 0.0]])
    first, second = targets(Categorical(3), y, w)
    assert first.outcomes.tolist() == [[0, 1, 0, 1]]
    assert first.weights.tolist() == [[1, 1, 0, 0]]
    assert second.outcomes.tolist() == [[0, 0, 1, 0]]
    assert second.weights.tolist() == [[1, 0, 1, 0]]
    assert len(targets(Bernoulli(), y, w)) == len(targets(Gaussian(), y, w)) == 1


def test_a_categorical_hierarchy_is_found():
    """Two predictors that share most of their variance."""
    rng = np.random.default_rng(0)
    n, length = 600, 200
    z = rng.normal(size=(n, 1))
    shared = rng.normal(size=(n, 1, 2)) * 0.8
    own = np.stack([z + 0.5, -z], axis=1) * [[[1.0, 0.0]]] + shared + 0.3 * rng.normal(size=(n, 2, 2))
    x = np.concatenate([np.ones((n, length, 1)), rng.normal(size=(n, length, 1))], axis=2)
    chances = softmax(np.concatenate([np.zeros((n, length, 1)), x @ own.swapaxes(1, 2)], axis=2), axis=2)
    y = (rng.random((n, length, 1)) >= np.cumsum(chances, axis=2)[..., :2]).sum(axis=2).astype(float)
    found = fit_hierarchy(Categorical(3), z, x, y, np.ones_like(y), 12)
    assert found.maps == pytest.approx(np.array([[0.5, 0, 0, 0], [1, 0, -1, 0]]), abs=0.15)
    wanted = np.kron(np.full((2, 2), 0.64) + 0.09 * np.eye(2), np.eye(2))
    assert found.covariance == pytest.approx(
        wanted, abs=0.25
    )  # modes are drawn to the prior, and so are their products
    assert np.linalg.eigvalsh(found.covariance).min() > 0
    assert found.errors.shape == found.information.shape == (2, n, length)
