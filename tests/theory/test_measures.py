"""What is measured, on records whose law is known."""

import numpy as np
import pytest

from gents_gym.tasks.synthetic import Synthetic
from gents_gym.theory.histories import Histories
from gents_gym.theory.measures import divergences, gap_growth, information, matching, over_task, policy_entropy
from gents_gym.training.losses import Losses

S, B, M, A = 2, 400, 100, 3


@pytest.fixture(scope="module")
def record():
    """Actions with laws of their own by history; models that play all equally often, or the likeliest alone."""
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(A), (S, B))  # (S, B, A)

    def pick(size):
        return (rng.random((S, B, size, 1)) > laws.cumsum(axis=2)[:, :, None]).sum(axis=3)

    sure = np.repeat(laws.argmax(axis=2)[..., None], M, axis=2)
    plays = {"exact": pick(2 * M), "flat": rng.integers(A, size=(S, B, M)), "sure": sure}
    outcomes = (rng.random((S, B, 2 * M, A)) < 0.5).astype(np.float32)
    return Histories((1, 9), pick(1)[..., 0], np.zeros((B, 9)), plays, outcomes), laws


@pytest.mark.parametrize(("name", "holds"), [("exact", True), ("sure", False)])
def test_matching_holds_for_p_star_alone(record, name, holds):
    bins = matching(record[0], name, A)
    assert sum(one.count for one in bins) == S * B * A
    scores = [(one.observed.mean - one.predicted) / (one.observed.error + 0.02) for one in bins if one.count > 50]
    assert (np.max(np.abs(scores)) < 4) == holds


def test_the_floor_is_below_the_divergence_of_another_law(record):
    found, laws = record
    kl, variation = (np.array(values) for values in zip(*divergences(found, A)["flat"], strict=True))
    floor, _ = zip(*divergences(found, A)["exact"], strict=True)
    assert max(one.mean for one in floor) < (A - 1) / M * 1.5  # 2 (A-1)/(2M) of two sets of M draws
    true = np.abs(laws - 1 / 3).sum(axis=2).mean(axis=1) / 2
    assert variation[:, 0] == pytest.approx(true, abs=0.03)
    expected = (laws * np.log(3 * laws)).sum(axis=2).mean(axis=1)
    assert kl[:, 0] == pytest.approx(expected, abs=0.05)


def test_outcomes_that_depend_on_nothing_tell_nothing(record):
    found = information(record[0], 9)
    assert all(abs(one.mean) < 5 * one.error for one in (*found.regret, *found.gain))
    assert found.total.mean == pytest.approx(9 * over_task((1, 9), [one.mean for one in found.gain], 9))


def test_straight_lines_between_steps():
    assert over_task((1, 3), [0.0, 2.0], 3) == pytest.approx(1.0)
    assert over_task((1, 2), [0.0, 2.0], 4) == pytest.approx((0 + 2 + 2 + 2) / 4)


def test_a_tasks_gap_is_that_of_all_actions():
    sums = {"m": np.array([[1.0, 4.0], [3.0, 8.0]]), "exact": np.array([[1.0, 3.0], [1.0, 5.0]])}
    first, last = gap_growth(Losses((1, 5), sums), "m", 10)
    assert first == (10.0, 10.0)
    assert last == (20.0, 10.0)


def test_entropy_lies_between_its_bounds():
    """With one context the entropy is that of a single label, which all estimates are near."""
    one = policy_entropy(Synthetic(n_actions=2, horizon=1, context_dim=2).sample(0, range(20)), 400)
    assert one.plug_in == pytest.approx(one.single, abs=0.01)
    assert one.plug_in < one.code.mean + 3 * one.code.error
    many = policy_entropy(Synthetic(n_actions=2, horizon=40, context_dim=2).sample(0, range(3)), 200)
    assert many.plug_in < many.code.mean < many.single
