import numpy as np
import pytest

from gents_gym.evaluation.grid import Cell
from gents_gym.evaluation.progress import PHASES, Costs, Progress


def cell(agent, first=0, stop=10, weights=None):
    return Cell("env", agent, first, stop, weights, {})


def test_agents_weigh_what_they_cost():
    grid = [cell(agent, first, first + 10) for agent in ("cheap", "dear") for first in (0, 10)]
    costs = Costs(grid)
    assert costs.now("starting").share == 0
    costs.add(grid[0], 1.0)
    assert costs.now("playing").share == pytest.approx(1 / 4)  # nothing is known of the other one
    costs.add(grid[2], 9.0)
    assert costs.now("playing").share == pytest.approx(10 / 20)
    costs.add(grid[1], np.nan)  # one that failed, or whose time was lost
    assert costs.now("playing").share == pytest.approx(11 / 20)
    costs.add(grid[3], 9.0)
    assert costs.now("writing") == Progress("writing", 4, 4, 1.0)


def test_models_are_dear_until_they_are_timed():
    grid = [cell("linucb"), cell("ts-gen", weights="abc")]
    costs = Costs(grid)
    costs.add(grid[0], 1.0)
    assert costs.now("playing").share < 0.05


def test_words():
    assert str(Progress("playing", 3, 9, 0.25)) == "playing: 25 % (3 of 9 blocks of tasks)"
    assert str(Progress("starting")) == PHASES["starting"]
