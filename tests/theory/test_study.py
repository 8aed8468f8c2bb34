"""Tests the bounds and measured regret, and that models fit."""

import math

import pytest

from gents_gym import InputError
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.theory.histories import play, random_regret
from gents_gym.theory.study import bound_point, find_models, resize


def test_a_point_has_the_bounds_of_the_formulas():
    point = bound_point(500, 10, 60)
    assert point.entropy == pytest.approx(312, abs=1)
    assert point.perfect == pytest.approx(1.77, abs=0.01)
    assert point.linear == pytest.approx(math.sqrt(60 * 10 / 1000 * math.log(5000)))
    assert point.regret is None
    tasks = Synthetic(n_actions=2, horizon=20, context_dim=2).sample(0, range(4))
    point = bound_point(20, 2, 3, tasks)
    assert point.regret.mean == pytest.approx(play(tasks).mean())
    assert point.random == random_regret(tasks)
    assert point.regret.mean < point.perfect < 1
    assert point.bites <= 20 < point.bites_random


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound_point(60, 10, 60), "horizon must be above the dimension d=60, .* got 60"),
        (lambda: find_models(["news-filter"], Synthetic(horizon=5).sample(0, [0])), "model must be trained on tasks"),
        (lambda: find_models(["exact"], Synthetic(horizon=5).sample(0, [0])), "models must be trained models.*'exact'"),
        (lambda: resize(object(), 5, 2), "env must have the options horizon and n_actions"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_sizes_are_changed_alone():
    changed = resize(Synthetic(context_dim=3), 7, 4)
    assert changed == Synthetic(context_dim=3, horizon=7, n_actions=4)
    assert list(find_models(["filter"], Synthetic(horizon=5).sample(0, [0]))) == ["filter"]
