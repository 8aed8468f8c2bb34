import numpy as np
import pytest

from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.ranks import Rank, average_ranks


def record(rewards):
    rewards = np.array(rewards, float)[:, None]  # (tasks, 1)
    return Rollout(np.zeros(rewards.shape, int), rewards)


def test_ranks_are_averaged_over_all_tasks_of_all_environments():
    records = {
        "one": {"a": record([3, 3]), "b": record([2, 3]), "c": record([1, 0])},
        "two": {"a": record([0]), "b": record([1]), "c": record([5])},
    }
    found = average_ranks(records)
    assert {agent: rank.mean for agent, rank in found.items()} == pytest.approx(
        {"b": (2 + 1.5 + 2) / 3, "a": (1 + 1.5 + 3) / 3, "c": (3 + 3 + 1) / 3}
    )
    assert list(found)[-1] == "c"
    assert all(rank.low <= rank.mean <= rank.high for rank in found.values())


def test_intervals_are_as_wide_as_the_mean_is_unsure():
    rng = np.random.default_rng(0)
    n = 400
    wins = rng.random(n) < 0.7
    found = average_ranks({"one": {"a": record(wins), "b": record(~wins)}})
    error = np.sqrt(wins.mean() * (1 - wins.mean()) / n)  # of a rank that is 1 or 2
    assert found["a"].high - found["a"].low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert found["a"].mean == pytest.approx(2 - wins.mean())


def test_differences_are_paired():
    rng = np.random.default_rng(1)
    luck = rng.integers(0, 2, 200) * 10.0  # decides whether both are before or behind the third
    wins = rng.random(200) < 0.7
    records = {"one": {"a": record(luck + wins), "b": record(luck + ~wins), "c": record(np.full(200, 5.0))}}
    found, apart = average_ranks(records, against="b"), average_ranks(records)
    assert list(found) == list(apart)
    assert found["b"] == Rank(0, 0, 0)
    assert found["a"].mean == pytest.approx(1 - 2 * wins.mean())  # -1 if a wins, +1 if it loses
    error = 2 * np.sqrt(wins.mean() * (1 - wins.mean()) / 200)
    assert found["a"].high - found["a"].low == pytest.approx(2 * 1.96 * error, rel=0.1)
