"""Positions among draws: uniform if truth and draws are exchangeable, and tests and intervals that are right then."""

import numpy as np
import pytest
from scipy import stats

from gents_gym.calibration.positions import Placed, coverage, joint_p, place, uniform_p


def test_a_position_is_the_rank_with_ties_broken_at_random():
    draws = np.array([[1.0, 2, 2, 3], [1, 2, 2, 3], [5, 6, 7, 8], [0, 0, 0, 0]])
    found = place(np.array([2.0, 2.5, 9, 0]), draws, np.array([0.0, 0.5, 0.5, 0.999]))
    assert found.positions == pytest.approx([1 / 5, 3.5 / 5, 4.5 / 5, 0.999])
    assert found.widths[2] == pytest.approx(np.diff(np.quantile([5, 6, 7, 8], [0.1, 0.9]))[0])


@pytest.mark.parametrize("draws", [1, 4, 19])
def test_positions_of_exchangeable_whole_numbers_are_uniform(draws):
    """However few the draws, and however many ties."""
    rng = np.random.default_rng(3)
    rates = rng.gamma(2, size=(20_000, 1))
    both = rng.poisson(rates, size=(20_000, 1 + draws))
    found = place(both[:, 0], both[:, 1:], rng.random(20_000)).positions
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert uniform_p(found) > 0.01
    assert coverage(found, 0.8)[0] == pytest.approx(0.8, abs=0.01)


def test_coverage_of_a_posterior_that_is_too_narrow_is_as_calculated():
    """A standard normal truth, and draws with half the variance: an interval covers P(|Z| ≤ z/√2)."""
    rng = np.random.default_rng(1)
    truth, draws = rng.normal(size=5000), rng.normal(size=(5000, 199)) * np.sqrt(0.5)
    found = place(truth, draws, rng.random(5000)).positions
    for level in (0.5, 0.8, 0.95):
        share, low, high = coverage(found, level)
        expected = 2 * stats.norm.cdf(stats.norm.ppf(0.5 + level / 2) * np.sqrt(0.5)) - 1
        assert share == pytest.approx(expected, abs=0.02)
        assert low < share < high < level
    assert uniform_p(found) < 1e-6


def test_the_test_is_scipys_chi_square():
    rng = np.random.default_rng(2)
    found = rng.random(333)
    counts = np.histogram(found, 20, (0, 1))[0]
    assert uniform_p(found) == pytest.approx(stats.chisquare(counts).pvalue)
    few = found[:12]  # in two bins
    assert uniform_p(few) == pytest.approx(stats.chisquare(np.histogram(few, 2, (0, 1))[0]).pvalue)


def test_several_tests_are_one():
    assert joint_p(np.array([[0.01, 0.5], [0.2, 0.9]])) == pytest.approx(0.04)
    assert joint_p(np.array([0.6, 0.9])) == 1


def test_blocks_are_put_together():
    one, other = (Placed(np.full(2, value), np.full(2, 10 * value)) for value in (1.0, 2.0))
    assert Placed.stack([one, other]).positions.tolist() == [[1, 2], [1, 2]]
    assert Placed.join([one, other]).widths.tolist() == [10, 10, 20, 20]
