"""Reliability against scikit-learn's calibration curve, and errors against their expectation."""

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve

from gents_gym import Bernoulli, Categorical, Gaussian
from gents_gym.calibration.reliability import bin_events, bin_levels, measure_reliability, wilson


def test_bins_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    probabilities = np.concatenate([rng.beta(0.3, 1, 500), [0, 1]])  # the ends too
    happened = rng.random(502) < probabilities
    found = measure_reliability(Bernoulli(), probabilities, happened.astype(np.float32))
    observed, predicted = calibration_curve(happened, probabilities, n_bins=10)
    assert found.observed == pytest.approx(observed)
    assert found.predicted == pytest.approx(predicted)
    assert found.counts.sum() == 502
    assert found.error == pytest.approx((found.counts * np.abs(observed - predicted)).sum() / 502)
    for hits, count, low, high in zip(found.observed * found.counts, found.counts, found.low, found.high, strict=True):
        interval = stats.binomtest(round(hits), int(count)).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize("kind", ["events", "levels"])
def test_the_error_by_chance_is_that_of_a_calibrated_model(kind):
    rng, found = np.random.default_rng(1), []
    for _ in range(200):
        probabilities = rng.random(400)
        happened = rng.random(400) < probabilities
        found.append(bin_events(probabilities, happened) if kind == "events" else bin_levels(probabilities))
    errors, chances = ([getattr(one, name) for one in found] for name in ("error", "chance"))
    assert np.mean(errors) == pytest.approx(np.mean(chances), rel=0.1)


def test_a_model_that_is_too_sure_has_the_error_that_it_should():
    rng = np.random.default_rng(2)
    happened = rng.random(20_000) < 0.7
    found = bin_events(np.full(20_000, 0.95), happened)
    assert found.error == pytest.approx(0.25, abs=0.02)
    assert found.high < 0.95


def test_gaussian_outcomes_lie_below_quantiles_as_often_as_predicted():
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=4000), rng.gamma(2, size=4000)
    outcomes = mean + np.sqrt(variance) * rng.normal(size=4000)
    right = measure_reliability(Gaussian(), np.stack([mean, variance], 1), outcomes)
    assert right.predicted == pytest.approx(np.arange(1, 10) / 10)
    assert right.error < 3 * right.chance
    sure = measure_reliability(Gaussian(), np.stack([mean, variance / 2], 1), outcomes)
    expected = stats.norm.cdf(stats.norm.ppf(right.predicted) * np.sqrt(0.5))
    assert sure.observed == pytest.approx(expected, abs=0.03)
    assert sure.error > 5 * sure.chance


def test_categories_are_events_of_their_own():
    rng = np.random.default_rng(4)
    parameters = rng.dirichlet(np.ones(3), size=50)
    outcomes = rng.integers(3, size=50).astype(np.float32)
    found = measure_reliability(Categorical(3), parameters, outcomes)
    one = bin_events(parameters.T.ravel(), np.concatenate([outcomes == c for c in range(3)]))
    assert found.counts.sum() == 150
    assert (found.error, found.chance) == pytest.approx((one.error, one.chance))


def test_shares_of_nothing_and_of_all_have_intervals():
    low, high = wilson(np.array([0, 20]), np.array([20, 20]))
    assert low == pytest.approx([0, 0.8389], abs=1e-3)
    assert high == pytest.approx([0.1611, 1], abs=1e-3)
