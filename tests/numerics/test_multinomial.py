"""The ragged multinomial problems against scikit-learn, scipy's minimiser and the dense logistic ones."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.linear_model import LogisticRegression

from gents_gym.numerics.multinomial import MultinomialProblems, softmax_with_zero
from gents_gym.numerics.newton import LogisticProblems

COUNTS = np.array([[0, 40], [7, 25]])


def problem(n_categories, seed=0, size=3):
    """Rows, outcomes, prior means and variances of COUNTS' four problems."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(COUNTS.sum(), size)), rng.integers(n_categories, size=COUNTS.sum())
    shape = (*COUNTS.shape, (n_categories - 1) * size)
    return x, y, rng.normal(size=shape), 0.2 + 2 * rng.random(shape)


def slices():
    """Each problem's index and its rows."""
    ends = np.cumsum(COUNTS.ravel())
    for at, end, count in zip(np.ndindex(COUNTS.shape), ends, COUNTS.ravel(), strict=True):
        yield at, slice(end - count, end)


def slow_objective(x, y, center, variance):
    """The objective of one problem, row by row."""

    def objective(beta):
        total = 0.5 * ((beta - center) ** 2 / variance).sum()
        for row, outcome in zip(x, y, strict=True):
            logits = np.append(0, beta.reshape(-1, len(row)) @ row)
            total += np.log(np.exp(logits).sum()) - logits[outcome]
        return total

    return objective


@pytest.mark.parametrize("n_categories", [2, 3, 4])
def test_optimum_and_curvature_are_scipys(n_categories):
    x, y, center, variance = problem(n_categories)
    problems = MultinomialProblems(x, y, COUNTS, center, variance)
    found, chances = problems.solve()
    losses, hessians = problems.loss(found)[0], problems.hessian(chances)
    for at, rows in slices():
        objective = slow_objective(x[rows], y[rows], center[at], variance[at])
        slow = minimize(objective, np.zeros(len(center[at])), method="BFGS", options={"gtol": 1e-6})
        assert np.abs(found[at] - slow.x).max() < 1e-4
        assert losses[at] == pytest.approx(slow.fun, abs=1e-6)
        curvature = approx_fprime(found[at], lambda b, f=objective: approx_fprime(b, f, 1e-5), 1e-5)
        assert np.allclose(hessians[at], curvature, atol=2e-3 * np.abs(curvature).max())


def test_without_a_penalty_it_is_scikit_learns_multinomial_regression():
    rng = np.random.default_rng(1)
    x, counts = rng.normal(size=(400, 3)), np.array([[150, 250]])
    logits = np.stack([np.zeros(400), x @ [1, -0.5, 0.2], x @ [0.3, 0.4, -1]])
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=0)
    found, chances = MultinomialProblems(x, y, counts, np.zeros((1, 2, 6)), np.full((1, 2, 6), 1e12)).solve()
    for a, rows in ((0, slice(150)), (1, slice(150, 400))):
        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(x[rows], y[rows])
        assert np.abs(found[0, a].reshape(2, 3) - (model.coef_[1:] - model.coef_[0])).max() < 1e-4
        assert np.abs(chances[:, rows].T - model.predict_proba(x[rows])[:, 1:]).max() < 1e-5


def test_two_categories_are_the_dense_logistic_problems():
    x, y, center, variance = problem(2)
    weights = np.zeros((2, len(x), 2))
    for (b, a), rows in slices():
        weights[b, rows, a] = 1
    outcomes = np.broadcast_to(y[:, None].astype(float), weights.shape)
    dense = LogisticProblems(np.stack([x, x]), outcomes, np.eye(3) / variance[..., None], center, weights)
    ragged = MultinomialProblems(x, y, COUNTS, center, variance)
    (ours, p), (theirs, q) = ragged.solve(), dense.solve()
    assert np.allclose(ours, theirs, atol=1e-9)
    assert np.allclose(ragged.hessian(p), dense.hessian(q), atol=1e-8)
    assert np.allclose(ragged.loss(center)[0], dense.loss(center)[0])


def test_many_points_at_once_are_each_on_its_own():
    x, y, center, variance = problem(3)
    problems = MultinomialProblems(x, y, COUNTS, center, variance)
    points = np.random.default_rng(2).normal(size=(5, *center.shape))
    losses, chances = problems.loss(points)
    for i, point in enumerate(points):
        assert np.allclose(losses[i], problems.loss(point)[0], rtol=1e-12)
        assert np.allclose(chances[:, i], problems.loss(point)[1], rtol=1e-12)


def test_without_rows_the_optimum_is_the_center():
    center, variance = np.random.default_rng(3).normal(size=(2, 3, 6)), np.full((2, 3, 6), 0.5)
    nothing = np.zeros((0, 3)), np.zeros(0), np.zeros((2, 3), int)
    problems = MultinomialProblems(*nothing, center, variance)
    found, chances = problems.solve()
    assert np.array_equal(found, center)
    assert np.allclose(problems.hessian(chances), 2 * np.eye(6))


def test_huge_logits_are_no_overflow():
    chances, log_total = softmax_with_zero(np.array([[1000.0, -1000.0, 800.0], [999.0, -2000.0, -5.0]]))
    assert np.allclose(chances[:, 1:], [[1, 0], [0, 1], [0, 0]])
    assert np.allclose(chances[:, 0], [0, 1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    assert np.allclose(log_total, [1000 + np.log1p(np.exp(-1)), 0, 800])
