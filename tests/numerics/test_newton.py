"""The general penalised solver against scipy's minimiser and scikit-learn's weights."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from gents_gym.numerics import newton
from gents_gym.numerics.newton import LogisticProblems


def problem(seed=0, rows=40, size=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, rows, size))
    y = (rng.random((2, rows, 2)) < 0.4).astype(float)
    root = rng.normal(size=(2, 2, size, size))
    precision = root @ root.swapaxes(2, 3) + 0.1 * np.eye(size)
    return x, y, precision, rng.normal(size=(2, 2, size)), rng.integers(3, size=y.shape).astype(float)


def test_optimum_and_curvature_with_a_full_penalty_a_center_and_weights():
    x, y, precision, center, weights = problem()
    problems = LogisticProblems(x, y, precision, center, weights)
    found, chances = problems.solve()
    curvature = problems.hessian(chances)
    losses, _ = problems.loss(found)
    for b in range(2):
        for a in range(2):

            def objective(beta, b=b, a=a):
                logits = x[b] @ beta
                fit = weights[b, :, a] @ (np.logaddexp(0, logits) - y[b, :, a] * logits)
                return fit + 0.5 * (beta - center[b, a]) @ precision[b, a] @ (beta - center[b, a])

            slow = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
            assert np.abs(found[b, a] - slow.x).max() < 1e-5
            assert np.isclose(losses[b, a], slow.fun)
            p = expit(x[b] @ found[b, a])
            expected = (x[b] * (weights[b, :, a] * p * (1 - p))[:, None]).T @ x[b] + precision[b, a]
            assert np.allclose(curvature[b, a], expected)


def test_curvature_is_the_same_if_products_of_columns_are_too_many_to_keep(monkeypatch):
    x, y, precision, center, weights = problem()
    chances = np.random.default_rng(0).random(y.shape)
    kept = LogisticProblems(x, y, precision, center, weights).hessian(chances)
    monkeypatch.setattr(newton, "MOST_PAIRS", 10)
    problems = LogisticProblems(x, y, precision, center, weights)
    assert np.allclose(problems.hessian(chances), kept, rtol=1e-12)
    assert problems._pairs is None


def test_weights_are_scikit_learns_sample_weights():
    x, y, _, _, weights = problem(1)
    found, _ = LogisticProblems(x, y, np.eye(3), 0.0, weights).solve()
    model = LogisticRegression(fit_intercept=False, tol=1e-12, max_iter=10000)
    model.fit(x[1], y[1, :, 0], sample_weight=weights[1, :, 0])
    assert np.abs(found[1, 0] - model.coef_[0]).max() < 1e-5


def test_without_rows_the_optimum_is_the_center():
    _, _, precision, center, _ = problem(2)
    found, _ = LogisticProblems(np.zeros((2, 0, 3)), np.zeros((2, 0, 2)), precision, center).solve()
    assert np.allclose(found, center)


def test_unwanted_problems_stay_where_they_are():
    x, y, precision, center, _ = problem(3)
    wanted = np.array([[True, False], [False, True]])
    found, _ = LogisticProblems(x, y, precision, center).solve(center, wanted)
    assert np.array_equal(found[~wanted], center[~wanted])
    assert not np.allclose(found[wanted], center[wanted])
