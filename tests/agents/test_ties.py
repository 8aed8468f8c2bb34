import numpy as np
import pytest

import gents_gym
from gents_gym.agents.ties import Chooser
from gents_gym.checks import InputError

ON_SCORES = ("greedy", "epsilon-greedy", "ts-gen", "gen-ucb", "gen-kg", "linucb")


def generators(n, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(n)]


def test_equal_actions_are_picked_equally_often_and_lower_ones_never():
    scores = np.tile([0.2, 0.7, 0.1, 0.7, 0.7], (4000, 1))
    picked = Chooser("random", generators(4000), 5)(scores)
    counts = np.bincount(picked, minlength=5)
    assert counts[[0, 2]].sum() == 0
    np.testing.assert_allclose(counts[[1, 3, 4]], 4000 / 3, atol=4 * np.sqrt(4000 * 2 / 9))
    assert (Chooser("first", generators(4000), 5)(scores) == 1).all()


def test_picks_depend_on_a_tasks_own_generator_and_take_nothing_from_it():
    rngs = generators(6)
    choose, alone = Chooser("random", rngs, 4), Chooser("random", generators(6)[2:3], 4)
    many = np.stack([choose(np.zeros((6, 4))) for _ in range(100)])
    assert (many[:, 2] == np.concatenate([alone(np.zeros((1, 4))) for _ in range(100)])).all()
    assert [rng.random() for rng in rngs] == [rng.random() for rng in generators(6)]


@pytest.mark.parametrize("agent", ON_SCORES)
def test_ties_are_an_option_of_agents_on_scores(agent):
    with pytest.raises(InputError, match="unknown ties 'last'"):
        gents_gym.make_agent(agent, ties="last")
    assert gents_gym.make_agent(agent).ties == "first"
    gents_gym.make_agent(agent, ties="random")


def test_linucb_begins_anywhere_and_greedy_on_a_model_that_prefers_none():
    """Without history all bounds are equal, and so are the predictions of a model that sees no action features."""
    tasks = gents_gym.make_tasks("synthetic").sample(0, range(300))
    blind = gents_gym.load_model("synthetic-filter")
    blind.action_scaling[1] = 0
    for agent, options in (("linucb", {}), ("greedy", {"model": blind})):
        first, random = (gents_gym.make_agent(agent, ties=ties, **options) for ties in ("first", "random"))
        for each in (first, random):
            each.reset(gents_gym.TaskInfo(tasks.action_features, 10, 5, 500), generators(300))
        assert (first.act(tasks.contexts[:, 0]) == 0).all()
        assert (np.bincount(random.act(tasks.contexts[:, 0]), minlength=10) > 10).all()
