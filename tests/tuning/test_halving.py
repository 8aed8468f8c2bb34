import numpy as np
import pytest

from gents_gym.tuning.halving import best, judge, plan_rungs


@pytest.mark.parametrize(
    ("n_candidates", "tasks", "block", "plan"),
    [
        (13, 200, 25, [(13, 25), (7, 50), (4, 100), (2, 200)]),
        (8, 200, 25, [(8, 50), (4, 100), (2, 200)]),
        (3, 10, 4, [(3, 8), (2, 10)]),
        (8, 60, 25, [(8, 25), (4, 50), (2, 60)]),
        (2, 10, 10, [(2, 10)]),
        (1, 10, 5, [(1, 10)]),
        (64, 10, 10, [(64, 10), (32, 10), (16, 10), (8, 10), (4, 10), (2, 10)]),
    ],
)
def test_each_rung_has_half_the_candidates_and_twice_the_tasks(n_candidates, tasks, block, plan):
    assert plan_rungs(n_candidates, tasks, block) == plan


def test_risk_weighs_the_mean_against_the_quantile():
    steady, wild = np.full(100, 3.0), np.where(np.arange(100) < 90, 0.0, 20.0)
    for risk, chosen in ((0.0, "wild"), (0.5, "steady"), (1.0, "steady")):
        found = judge({"steady": steady, "wild": wild}, risk, 0.95)
        assert best(found, 1) == [chosen]
        assert found["wild"]["score"] == pytest.approx((1 - risk) * 2 + risk * 20)


def test_differences_are_paired():
    hard = np.random.default_rng(0).normal(50, 20, 40)
    found = judge({"one": hard, "other": hard + 1}, 0, 0.95)
    assert (found["other"]["behind"], found["one"]["behind"]) == (pytest.approx(1), 0)
    assert found["other"]["behind_se"] < 1e-9
    assert found["other"]["se"] == pytest.approx(hard.std(ddof=1) / np.sqrt(40))


def test_of_equals_the_first_is_the_best():
    same = {"score": 1.0}
    assert best({"b": same, "a": same, "c": {"score": 0.0}}, 2) == ["c", "b"]
