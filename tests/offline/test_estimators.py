"""Estimators against closed forms and against expectations that are summed over all logs."""

import itertools

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.offline.estimators import doubly_robust, effective_size, interval, ips, mean, pool, snips

P = np.array([0.5, 0.3, 0.2])  # logged
PI = np.array([0.1, 0.2, 0.7])  # evaluated
CHANCE = np.array([0.2, 0.5, 0.9])  # P(reward = 1) of each action


def all_logs(n_rows=2):
    """Yield every log of so many rows with its probability: actions and rewards, (n,) each."""
    rows = list(itertools.product(range(3), (0.0, 1.0)))
    for log in itertools.product(rows, repeat=n_rows):
        actions, rewards = (np.array(part) for part in zip(*log, strict=True))
        chances = P[actions] * np.where(rewards == 1, CHANCE[actions], 1 - CHANCE[actions])
        yield actions, rewards, chances.prod()


@pytest.mark.parametrize("right", ["propensities", "predictions"])
def test_expected_values_are_the_policy_s(right):
    """IPS with right propensities, doubly robust if either is right, summed over all logs of two rows."""
    true = PI @ CHANCE
    assumed = P if right == "propensities" else np.array([0.2, 0.2, 0.6])
    predicted = np.array([0.9, 0.1, 0.3]) if right == "propensities" else CHANCE
    found = {"ips": 0.0, "doubly robust": 0.0}
    for actions, rewards, chance in all_logs():
        weights = PI[actions] / assumed[actions]
        found["ips"] += chance * ips(weights, rewards).value
        found["doubly robust"] += (
            chance * doubly_robust(weights, rewards, predicted[actions], np.full(2, PI @ predicted)).value
        )
    assert found["doubly robust"] == pytest.approx(true)
    assert (found["ips"] == pytest.approx(true)) == (right == "propensities")


def test_values_and_errors_by_hand():
    weights, rewards = np.array([2.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
    assert ips(weights, rewards).value == pytest.approx(2 / 3)
    assert ips(weights, rewards).error == pytest.approx(np.std([2, 0, 0], ddof=1) / np.sqrt(3))
    normed = snips(weights, rewards)
    assert normed.value == pytest.approx(2 / 3)
    assert normed.error == pytest.approx(np.std(weights * (rewards - 2 / 3), ddof=1) / np.sqrt(3))
    assert snips(np.array([1, 0, 1]), np.array([4.0, 9.0, 2.0])).value == 3
    assert effective_size(weights) == pytest.approx(9 / 5)
    assert effective_size(np.zeros(3)) == 0
    assert interval(1.0, 0.5, 11) == pytest.approx((1 - 2.228139 * 0.5, 1 + 2.228139 * 0.5))


def test_the_lift_of_the_logged_policy_over_itself_is_zero_without_error():
    rewards = np.random.default_rng(0).normal(size=50)
    lift = ips(np.ones(50), rewards).minus(mean(rewards))
    assert (lift.value, lift.error) == pytest.approx((0, 0))


def test_errors_are_those_of_many_logs():
    """The mean estimated error against the spread of estimates over 800 logs of 200 rows."""
    rng = np.random.default_rng(0)
    found = {"ips": [], "snips": [], "doubly robust": []}
    predicted = np.array([0.3, 0.4, 0.8])
    for _ in range(800):
        actions = rng.choice(3, p=P, size=200)
        rewards, weights = (rng.random(200) < CHANCE[actions]).astype(float), PI[actions] / P[actions]
        found["ips"].append(ips(weights, rewards))
        found["snips"].append(snips(weights, rewards))
        found["doubly robust"].append(doubly_robust(weights, rewards, predicted[actions], np.full(200, PI @ predicted)))
    for estimates in found.values():
        spread = np.std([one.value for one in estimates])
        assert np.mean([one.error for one in estimates]) == pytest.approx(spread, rel=0.1)
        covered = np.mean([low <= PI @ CHANCE <= high for low, high in (one.interval for one in estimates)])
        assert 0.92 < covered < 0.98


def test_orders_that_agree_do_not_narrow_the_error_and_their_spread_widens_it():
    rewards = np.random.default_rng(0).normal(size=50)
    one = mean(rewards)
    assert pool([one, one, one]) == pytest.approx((one.value, one.error))
    far = mean(rewards + 10)  # the same influences, so the values differ by luck alone
    assert pool([one, far]) == pytest.approx((one.value + 5, np.sqrt(one.error**2 + 50 / 2)))


def test_the_error_of_several_orders_is_that_of_many_logs():
    """In each order other rows count, and each has luck of its own; rows of 400 logs, 3 orders."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        rewards = rng.normal(size=200)
        counted = rng.random((3, 200)) < 0.3
        found.append(pool([snips(row.astype(float), rewards + rng.normal(0, 0.1)) for row in counted]))
    values, errors = np.array(found).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(values.std(), rel=0.12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: snips(np.zeros(3), np.ones(3)), "weights must not all be 0"),
        (lambda: ips(np.ones(3), np.ones(2)), r"rewards must have shape \(n,\)=\(3,\), got \(2,\)"),
        (lambda: mean(np.ones(1)), "rewards must have at least 2 rows, got 1"),
    ],
)
def test_bad_arrays(call, message):
    with pytest.raises(InputError, match=message):
        call()
