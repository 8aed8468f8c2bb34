"""The exact twin: what it knows, what it plays, and that it is marked."""

from dataclasses import replace
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, make_agent, make_tasks, rollout
from gents_gym.agents.ts_gen import TSGen
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.logistic import paper_prior
from gents_gym.types import TaskInfo, Truth

T = 12


def play(env, agent, n=3):
    envs = gym.make_vec(env, num_envs=n, horizon=T, n_actions=4, autoreset_mode="Disabled")
    return rollout(envs, agent)


def test_where_nothing_is_hidden_it_is_ts_gen_with_the_exact_model():
    env = "gents_gym/Synthetic-v0"
    twin = play(env, "exact-twin")
    assert twin.privileged
    np.testing.assert_array_equal(twin.actions, play(env, "ts-gen(model=exact)").actions)
    greedy = play(env, "exact-twin(greedy=True)")
    np.testing.assert_array_equal(greedy.actions, play(env, "greedy(model=exact)").actions)
    assert (greedy.actions != twin.actions).any()


def test_on_news_it_plays_by_the_hidden_features():
    tasks = make_tasks("news", horizon=T, n_actions=4).sample(0, range(3))

    class Knowing:  # the same by hand: φ in the place of the embeddings
        def __init__(self):
            truth = Truth(partial(paper_prior, n_slopes=4), context_map=lambda x: x[..., :4] * np.sign(x[..., 4:]))
            self.inner = TSGen(ExactModel(truth), policy="logistic")
            self.act, self.observe = self.inner.act, self.inner.observe

        def reset(self, info, rngs):
            self.inner.reset(TaskInfo(tasks.hidden_features, 4, 5, T), rngs)

    np.testing.assert_array_equal(
        play("gents_gym/News-v0", "exact-twin").actions, play("gents_gym/News-v0", Knowing()).actions
    )


def test_what_it_needs():
    tasks = make_tasks("news", horizon=T).sample(0, range(2))
    info, rngs = TaskInfo(tasks.action_features, 10, 5, T), [np.random.default_rng(i) for i in range(2)]
    with pytest.raises(InputError, match="exact-twin needs the tasks' hidden features"):
        make_agent("exact-twin").reset(info, rngs)
    with pytest.raises(InputError, match=r"exact-twin needs tasks that carry their truth, .*, got None"):
        make_agent("exact-twin").for_tasks(replace(tasks, truth=None)).reset(info, rngs)
    with pytest.raises(InputError, match="samples must be at least 1, got 0"):
        make_agent("exact-twin(samples=0)")
    with pytest.raises(
        InputError,
        match=r"model 'exact' is p\* of settings that publish it .*exact-twin knows it\)",
    ):
        play("gents_gym/News-v0", "ts-gen(model=exact)")
