import numpy as np
import pytest

from gents_gym.construct import make_tasks
from gents_gym.live.study import run_study, summarise


@pytest.fixture(scope="module")
def tasks():
    return make_tasks("synthetic", horizon=12, n_actions=3).sample(0, range(2), "validation")


def test_regret_is_that_of_whole_streams_and_a_window_that_holds_all_rows_changes_nothing(tasks):
    short, long, longest = run_study("ts-gen(m=4)", [2, 12, 10_000], tasks)
    np.testing.assert_array_equal(long, longest)
    assert (short != long).any()
    assert (long >= 0).all()
    assert long.max() <= (tasks.means.max(axis=2) - tasks.means.min(axis=2)).sum(axis=1).max()


def test_windows_change_nothing_for_an_agent_that_fits_no_rows(tasks):
    small, large = run_study("greedy", [2, 10_000], tasks)
    np.testing.assert_array_equal(small, large)


def test_the_table_has_paired_differences():
    found = summarise([10, 20], np.array([[3.0, 5.0], [1.0, 2.0]]))
    assert "| 10 | 4.0 | +2.5 ± 0.5 |" in found
    assert "| 20 | 1.5 |  |" in found
