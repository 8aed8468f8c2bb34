"""The wheel bandit against a slow version, and its oracle."""

import numpy as np
import pytest
from scipy import stats

from gents_gym import InputError
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.tasks.wheel import Wheel


def slow_means(x, delta):
    """The five means in one context, one rule after the other."""
    means = [1.2, 1.0, 1.0, 1.0, 1.0]
    if x[0] ** 2 + x[1] ** 2 >= delta**2:
        if x[0] > 0:
            means[1 if x[1] > 0 else 2] = 50.0
        else:
            means[3 if x[1] > 0 else 4] = 50.0
    return means


def test_means_follow_the_rules():
    tasks = Wheel(delta=0.7, horizon=200).sample(0, range(2))
    slow = [[slow_means(x, 0.7) for x in task] for task in tasks.contexts.astype(float)]
    assert np.allclose(tasks.means, slow)
    residuals = tasks.outcomes - tasks.means
    assert abs(residuals.std() - 0.01) < 0.001
    assert np.array_equal(tasks.action_features[0], np.eye(5))
    for action in range(1, 5):  # each has its quarter
        assert (tasks.means[..., action] == 50).mean() == pytest.approx((1 - 0.7**2) / 4, abs=0.06)


def test_contexts_are_uniform_in_the_unit_disc():
    x = Wheel(horizon=4000).sample(1, [0]).contexts[0].astype(float)
    assert stats.kstest((x**2).sum(axis=1), "uniform").pvalue > 1e-3
    assert stats.kstest(np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-3


def test_the_oracle_finds_the_best_action():
    tasks = Wheel(delta=0.9, horizon=500).sample(0, [0])
    best = oracle_actions(tasks)
    assert np.array_equal(best, tasks.means.argmax(axis=2))
    assert regret(tasks, best, best)["best"].sum() == 0


def test_single_actions_are_any_of_the_five():
    rows, wheel = Wheel(delta=0.5).sample_actions(0, range(40), 50), Wheel(delta=0.5)
    picked = rows.action_features.argmax(axis=1)
    assert set(picked) == set(range(5))
    means = np.take_along_axis(wheel.means(rows.contexts), picked[:, None, None], axis=2)[..., 0]
    assert np.abs(rows.outcomes - means).max() < 0.06


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.0}, "delta must be below 1, got 1"),
        ({"delta": 0}, "delta must be above 0, got 0"),
        ({"sigma": 0}, "sigma must be above 0, got 0"),
        ({"mu3": float("nan")}, "mu3 must be finite"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Wheel(**options)
