"""The measures that lead and the marks of quantiles; poor yardsticks are tested in tests/report/test_analysis.py."""

import numpy as np
import pytest

from gents_gym import Rollout
from gents_gym.evaluation.measures import bad_tail, main_measure, tail_note


def record(*regrets, shift=0.0):
    steps = np.arange(4.0)[:, None] + shift
    return Rollout(np.zeros((4, 1), int), -steps, dict.fromkeys(regrets, steps))


def test_expected_regret_leads_unless_the_oracle_is_beaten():
    assert main_measure({"a": record("oracle", "expected", "best")}) == "expected"
    assert main_measure({"a": record("oracle")}) == "oracle"
    assert main_measure({"a": record()}) == "reward"
    assert main_measure({"a": record("oracle", "expected", "best", shift=-9.0)}) == "best"


@pytest.mark.parametrize(
    ("measure", "n_tasks", "heads", "note"),
    [
        ("best", 50, {"q90": "90 %", "q99": "99 %†"}, "† of 50 tasks, the 99 % quantile is nearly the maximum"),
        ("best", 100, {"q90": "90 %", "q99": "99 %"}, ""),
        ("best", 9, {"q90": "90 %†", "q99": "99 %†"}, "† of 9 tasks, the 90 % and 99 % quantile is nearly the maximum"),
        ("reward", 50, {"q10": "10 %", "q01": "1 %†"}, "† of 50 tasks, the 1 % quantile is nearly the minimum"),
    ],
)
def test_quantiles_that_are_nearly_the_extreme_are_marked(measure, n_tasks, heads, note):
    assert bad_tail(measure, n_tasks) == heads
    assert tail_note(measure, n_tasks) == note
