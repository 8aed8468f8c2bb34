"""Tests Student proposals against quadrature: marginal likelihoods, and the ends of chains."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import kstest, norm

from gents_gym.numerics.multinomial import MultinomialProblems
from gents_gym.numerics.student import FREEDOM, Student, draw_numbers, last_state


def one_parameter(seed, rows=12):
    """A problem with an intercept alone: prior mean and variance, outcomes."""
    rng = np.random.default_rng(seed)
    return rng.normal(), 0.3 + 2 * rng.random(), rng.integers(2, size=rows).astype(float)


def density(mean, variance, y):
    """The unnormalised posterior density of an intercept."""
    return lambda b: norm.pdf(b, mean, variance**0.5) * expit(b) ** y.sum() * expit(-b) ** (1 - y).sum()


def intercepts(mean, variance, y, n=1):
    """The posterior of an intercept, n times."""
    prior = np.full((n, 1), mean), np.full((n, 1), variance)
    return MultinomialProblems(np.ones((n * len(y), 1)), np.tile(y, n), np.full(n, len(y)), *prior)


@pytest.mark.parametrize("seed", range(6))
def test_marginal_likelihood_is_quadratures(seed):
    mean, variance, y = one_parameter(seed, rows=3 + 5 * seed)
    problems = intercepts(mean, variance, y)
    found = Student.fit(problems)
    _, weights = found.propose(problems, *draw_numbers(np.random.default_rng(0), (20_000, 1, 1)))
    estimate = np.exp(weights[:, 0] + found.log_constant(np.array([variance])))
    exact, _ = quad(density(mean, variance, y), -30, 30, points=[0, mean], limit=200)
    assert abs(estimate.mean() / exact - 1) < 4 * estimate.std() / np.sqrt(20_000) / exact + 1e-9
    assert estimate.std() / exact < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_chains_end_in_the_distribution_of_quadrature(seed):
    mean, variance, y = one_parameter(seed)
    grid = np.linspace(mean - 12, mean + 12, 4001)
    cdf = np.cumsum(density(mean, variance, y)(grid))
    n, n_steps = 4000, 16
    problems, rng = intercepts(mean, variance, y, n), np.random.default_rng(seed)
    proposals, weights = Student.fit(problems).propose(problems, *draw_numbers(rng, (n_steps, n, 1)))
    draws = last_state(proposals, weights, np.log(rng.random((n_steps, n))))[:, 0]
    assert kstest(draws, lambda b: np.interp(b, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_weights_and_proposals_do_not_depend_on_how_many_are_asked_for():
    mean, variance, y = one_parameter(0, rows=400)
    problems = intercepts(mean, variance, y, 20)  # so large that proposals are evaluated one by one
    student, numbers = Student.fit(problems), draw_numbers(np.random.default_rng(0), (7, 20, 1))
    proposals, weights = student.propose(problems, *numbers)
    for i in range(7):
        proposal, weight = student.propose(problems, *(part[i : i + 1] for part in numbers))
        assert np.allclose(proposal[0], proposals[i], rtol=1e-12)
        assert np.allclose(weight[0], weights[i], rtol=1e-12)


def test_proposals_are_student_around_the_mode():
    mean, variance, _ = one_parameter(0)
    problems = intercepts(mean, variance, np.zeros(0))
    proposals, _ = Student.fit(problems).propose(problems, *draw_numbers(np.random.default_rng(0), (4000, 1, 1)))
    assert kstest((proposals[:, 0, 0] - mean) / variance**0.5, "t", (FREEDOM,)).pvalue > 1e-3
