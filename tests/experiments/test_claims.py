"""Claims: contrasts, slopes and verdicts by hand."""

import numpy as np
import pytest
from scipy import stats

from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.claims import Claim, before, falls, judge
from gents_gym.training.losses import Losses

ZEROS = np.zeros((6, 1))
RNG = np.random.default_rng(0)


def record(values, reward=0.0):
    """A record of one decision: expected regret as given, realised regret one more."""
    values = np.asarray(values, float)[:, None]
    return Rollout(ZEROS.astype(int), ZEROS + reward, {"oracle": values + 1, "expected": values, "best": values})


def test_a_contrast_is_the_paired_t_interval_of_both_regrets():
    one, other = RNG.normal(size=(2, 6))
    claim = before("A is better.", "Results", "a", "b")
    realised, true = judge(claim, {"a": record(one), "b": record(other - 9)}, None)
    low, high = stats.ttest_rel(one, other - 9).confidence_interval()
    assert (true.mean, true.low, true.high) == pytest.approx(((one - other).mean() + 9, low, high))
    assert realised.mean == pytest.approx(true.mean)
    assert realised.verdict == true.verdict == "the other way round"
    assert judge(claim, {"a": record(one - 9), "b": record(other)}, None)[0].verdict == "shown"
    assert judge(claim, {"a": record(one), "b": record(one)}, None)[0].verdict == "not shown"


def test_more_reward_is_less_regret():
    claim = before("A earns more.", "Results", "a", "b", "reward")
    noise = RNG.normal(size=6) / 10
    found = judge(claim, {"a": record(noise, 5.0), "b": record(noise + 2, 3.0)}, None)
    assert [(round(each.mean, 9), each.verdict) for each in found] == [(2, "shown"), (2, "shown")]


def test_a_weighted_sum_need_not_be_a_difference():
    values = RNG.uniform(1, 2, 6)
    double = Claim("Less than twice.", "", "a less twice b", {"a": 1.0, "b": -2.0})
    _, true = judge(double, {"a": record(values), "b": record(values)}, None)
    assert (true.mean, true.verdict) == (pytest.approx(-values.mean()), "shown")
    assert judge(double, {"a": record(3 * values), "b": record(values)}, None)[1].verdict == "the other way round"
    assert double.source == "Not in the paper"


@pytest.mark.parametrize(("shift", "verdict"), [(5, "more"), (-5, "less"), (0, "no difference shown")])
def test_a_difference_without_a_direction(shift, verdict):
    claim = Claim("They differ.", "", "a less b", {"a": 1.0, "b": -1.0}, sign=0)
    noise = np.array([1, -1, 1, -1, 1, -1])
    assert judge(claim, {"a": record(noise + shift), "b": record(0 * noise)}, None)[1].verdict == verdict


def test_a_trend_is_the_least_squares_slope_of_each_task():
    sizes, values = [10, 100, 10_000], RNG.normal(size=(3, 6))
    claim = falls("More data, less regret.", "Loss", dict(zip("abc", sizes, strict=True)), 10, "ten times", "regret")
    _, found = judge(claim, {name: record(row) for name, row in zip("abc", values, strict=True)}, None)
    slopes = np.polyfit(np.log10(sizes), values, 1)[0]
    assert found.mean == pytest.approx(slopes.mean())
    assert found.low == pytest.approx(stats.ttest_1samp(slopes, 0).confidence_interval().low)


def test_losses_are_per_step_and_paired_by_action():
    sums = {"a": RNG.uniform(size=(50, 2)).cumsum(axis=1), "b": RNG.uniform(size=(50, 2)).cumsum(axis=1) + 9}
    losses = Losses((1, 4), sums)
    (found,) = judge(before("A predicts better.", "Loss", "a", "b", "loss"), {}, losses)
    assert found.mean == pytest.approx((sums["a"] - sums["b"])[:, 1].mean() / 4)
    assert found.verdict == "shown"
    assert losses.by_step("a").mean(axis=0) == pytest.approx(
        [sums["a"][:, 0].mean(), (sums["a"][:, 1] - sums["a"][:, 0]).mean() / 3]
    )
