import math

import pytest

from gents_gym import InputError, theory


def test_proposition_2_counts_labelings():
    plain = sum(math.comb(500, i) * 9**i for i in range(61))
    assert theory.entropy_bound(500, 10, 60) == pytest.approx(math.log(plain), rel=1e-12)
    assert theory.entropy_bound(500, 10, 60) == pytest.approx(312, abs=1)
    assert theory.entropy_bound(7, 3, 7) == pytest.approx(7 * math.log(3))  # every labeling there is
    assert theory.entropy_bound(7, 3, 50) == theory.entropy_bound(7, 3, 7)
    assert theory.entropy_bound(500, 10, 0) == 0


def test_theorems_by_hand():
    entropy = theory.entropy_bound(500, 10, 60)
    assert theory.perfect_bound(500, 10, entropy) == pytest.approx(1.77, abs=0.01)
    assert theory.perfect_bound(500, 10, 50.0) == pytest.approx(math.sqrt(10 / 1000 * 50))
    assert theory.perfect_bound(500, 10, 50.0, information_ratio=2.0) == pytest.approx(math.sqrt(2 / 500 * 50))
    assert theory.penalty(theory.task_gap(0.001, 500, 10)) == pytest.approx(math.sqrt(10))
    assert theory.model_bound(500, 10, 50.0, 0.08) == pytest.approx(math.sqrt(0.5) + 0.4)
    assert theory.linear_bound(500, 10, 60) == pytest.approx(math.sqrt(60 * 10 / 1000 * math.log(5000)))
    assert theory.linear_bound(500, 10, 4) == pytest.approx(math.sqrt(4 * 4 / 1000 * math.log(5000)))


@pytest.mark.parametrize(
    ("n_actions", "dimension", "level"), [(10, 60, 1.0), (10, 60, 0.1), (2, 1, 1.0), (2, 3, 0.2), (2, 12, 1.0)]
)
def test_where_the_bound_begins_to_bite(n_actions, dimension, level):
    def bound(horizon):
        return theory.perfect_bound(horizon, n_actions, theory.entropy_bound(horizon, n_actions, dimension))

    found = theory.horizon_that_bites(n_actions, dimension, level)
    assert bound(found) < level
    assert found == 1 or bound(found - 1) >= level
    assert all(bound(found * k) < level for k in (2, 3, 10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.entropy_bound(0, 10, 5), "horizon must be at least 1, got 0"),
        (lambda: theory.entropy_bound(10, 1, 5), "n_actions must be at least 2, got 1"),
        (lambda: theory.perfect_bound(10, 3, -1.0), "entropy must be at least 0"),
        (lambda: theory.penalty(-0.1), "gap must be at least 0"),
        (lambda: theory.horizon_that_bites(10, 5, 0.0), "level must be above 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
