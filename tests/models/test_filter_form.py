import numpy as np
import pytest

from gents_gym.models.filter_form import normal_rule, spread_nodes


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_rules_are_of_standard_normals(size):
    nodes, weights = normal_rule(size)
    assert nodes.shape == (len(weights), size)
    assert weights.sum() == pytest.approx(1)
    exactly = {"abs": 1e-9} if size <= 2 else {"abs": 0.05}
    assert weights @ nodes == pytest.approx(np.zeros(size), **exactly)
    assert (nodes.T * weights) @ nodes == pytest.approx(np.eye(size), **exactly)
    wave = weights @ np.cos(nodes.sum(axis=1) / np.sqrt(size))  # E cos z of one standard normal
    assert wave == pytest.approx(np.exp(-1 / 2), abs=1e-6 if size <= 2 else 0.05)


def test_nodes_are_spread_to_given_moments():
    mean, covariance = (
        np.array([[1.0, -2.0], [0.0, 3.0]]),
        np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.5], [0.5, 0.3]]]),
    )
    nodes, weights = normal_rule(2)
    found = spread_nodes(mean, covariance, nodes)  # (2, n, 2)
    assert weights @ found == pytest.approx(mean)
    for own, centre, spread in zip(found, mean, covariance, strict=True):
        assert np.cov(own.T, aweights=weights, ddof=0) == pytest.approx(spread)
        assert np.average(own, axis=0, weights=weights) == pytest.approx(centre)
