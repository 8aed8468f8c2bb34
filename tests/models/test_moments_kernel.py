import numpy as np
import pytest

from gents_gym.models.moments_kernel import LEAST_SPREAD, lower_roots, predictor_moments


@pytest.mark.parametrize("q", [1, 3])
def test_moments_are_those_of_linear_predictors(q):
    rng = np.random.default_rng(0)
    n_tasks, n_contexts, n_actions, size = 2, 3, 4, 5
    rows = rng.normal(size=(n_tasks, n_contexts, size)).astype(np.float32)
    mean = rng.normal(size=(n_tasks * n_actions, q * size)).astype(np.float32)
    root = rng.normal(size=(n_tasks * n_actions, q * size, q * size)).astype(np.float32)
    covariance = root @ root.swapaxes(1, 2)
    centre, spread = predictor_moments(rows, mean, covariance)
    for b in range(n_tasks):
        for c in range(n_contexts):
            row = np.kron(np.eye(q), rows[b, c].astype(np.float64))  # (Q, Q·K)
            for a in range(n_actions):
                own = b * n_actions + a
                assert centre[b, c, a] == pytest.approx(row @ mean[own], rel=1e-5)
                assert spread[b, c, a] == pytest.approx(row @ covariance[own] @ row.T, rel=1e-5, abs=1e-4)


def test_roots_are_choleskys_and_bear_rounding():
    root = np.random.default_rng(0).normal(size=(6, 3, 3))
    assert lower_roots(root @ root.swapaxes(1, 2)) == pytest.approx(np.linalg.cholesky(root @ root.swapaxes(1, 2)))
    indefinite = np.array([[[1.0, 1.0], [1.0, 1.0 - 1e-9]]])
    assert lower_roots(indefinite)[0] == pytest.approx(np.array([[1, 0], [1, np.sqrt(LEAST_SPREAD)]]))
