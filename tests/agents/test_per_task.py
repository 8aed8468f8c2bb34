import re
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.per_task import PerTask
from gents_gym.bench.suite import LeanLinUCB
from gents_gym.checks import TaskError
from gents_gym.tasks.synthetic import Synthetic


class SingleLinUCB:
    """A third party's agent for one task, with all three verbs."""

    def reset(self, info, rng):
        self.inverse = [np.eye(info.context_dim) for _ in range(info.n_actions)]
        self.theta = [np.zeros(info.context_dim) for _ in range(info.n_actions)]

    def act(self, observation):
        x = observation["context"].astype(float)
        pairs = zip(self.theta, self.inverse, strict=True)
        return int(np.argmax([theta @ x + 0.1 * np.sqrt(x @ inverse @ x) for theta, inverse in pairs]))

    def observe(self, observation, action, reward):
        x = observation["context"].astype(float)
        direction = self.inverse[action] @ x
        gain = direction / (1 + x @ direction)
        self.theta[action] = self.theta[action] + gain * (reward - x @ self.theta[action])
        self.inverse[action] = self.inverse[action] - np.outer(gain, direction)


def envs(**config):
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=4, horizon=60, autoreset_mode="Disabled", **config)


def test_a_single_task_linucb_plays_like_ours():
    assert np.array_equal(rollout(envs(), PerTask(SingleLinUCB)).actions, rollout(envs(), make_agent("linucb")).actions)


def test_each_task_has_an_object_with_its_own_observation_and_generator():
    seen = []

    class Recorder:
        def reset(self, info, rng):
            self.first = rng.random()
            self.features = info.action_features[0]

        def act(self, observation):
            assert np.array_equal(observation["action_features"], self.features)
            seen.append((self.first, *observation["context"]))
            return 0

    record = rollout(envs(), PerTask(Recorder), max_steps=2)
    assert record.actions.shape == (4, 2)
    assert len({row[0] for row in seen}) == 4
    tasks = Synthetic(horizon=60).sample(0, range(4))
    expected = tasks.contexts[:, :2].swapaxes(0, 1).reshape(8, 5)
    assert np.array_equal(np.array([row[1:] for row in seen], np.float32), expected)


def test_act_alone_is_enough_and_the_class_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "their_module.py").write_text("class Always:\n    def act(self, observation):\n        return 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    record = rollout(envs(), make_agent("per-task(agent=their_module:Always)"))
    assert (record.actions == 3).all()


def test_objects_are_told_rewards():
    told = []

    class Listener:
        def act(self, observation):
            return 0

        def observe(self, observation, action, reward):
            told.append(reward)

    agent = PerTask(Listener)
    agent.reset(TaskInfo(np.zeros((2, 3, 1)), 3, 4, reward_fn=lambda y: 1 - y / 4), [np.random.default_rng(0)] * 2)
    agent.observe(np.zeros((2, 4)), np.zeros(2, int), np.array([0.0, 1.0]))
    assert told == [1.0, 0.75]


def test_bad_agents_and_actions():
    with pytest.raises(InputError, match="agent must be a class, a function or"):
        PerTask(3)

    class Wild:
        def act(self, observation):
            return 10

    with pytest.raises(InputError, match=r"action must lie in \[0, 10\), got 10"):
        rollout(envs(), PerTask(Wild))
    with pytest.raises(InputError, match="cannot import agent 'nowhere:Agent'"):
        PerTask("nowhere:Agent")
    with pytest.raises(InputError, match="cannot import agent 'os:getcwd': it must be in a module outside"):
        PerTask("os:getcwd")
    with pytest.raises(InputError, match="unknown agent 'linucb'; known: none"):
        PerTask("linucb")


@pytest.mark.parametrize("answer", [None, 1.0, True, [1], "1"])
def test_an_action_that_is_no_number_is_told_with_its_task(answer):
    answers = iter([0, 0, answer, 0])
    agent = PerTask(lambda: SimpleNamespace(act=lambda observation: next(answers)))
    agent.reset(TaskInfo(np.zeros((4, 3, 1)), 3, 2), [np.random.default_rng(i) for i in range(4)])
    with pytest.raises(TaskError, match=re.escape(f"action must be a whole number, got {answer!r}")) as caught:
        agent.act(np.zeros((4, 2)))
    assert caught.value.position == 2


def test_the_benchmarks_yardstick_plays_linucb():
    tasks = Synthetic(horizon=60).sample(0, range(4))
    found = rollout(envs(), make_agent("linucb")).actions
    for i in range(4):
        lean = LeanLinUCB(10, 5).play(tasks.contexts[i].astype(float), tasks.rewards[i].astype(float))
        assert found[i].tolist() == lean
