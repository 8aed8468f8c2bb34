import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import gents_gym
from gents_gym import LateOutcomes, VectorLateOutcomes
from gents_gym.envs.feedback import read_feedback
from gents_gym.testing import check_vector_env

ID, T = "gents_gym/Synthetic-v0", 6
DELAY = {"geometric": 0.4, "lost": 0.2}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_wrapped_environment_keeps_the_contract(mode):
    def make(num_envs):
        return VectorLateOutcomes(gym.make_vec(ID, num_envs=num_envs, horizon=T, autoreset_mode=mode), DELAY, 2)

    assert check_vector_env(make) is None


def test_the_wrapper_delays_as_our_own_delay_does():
    """The first episode of a seed has the delays of the same stream."""
    ours = gym.make_vec(ID, num_envs=3, horizon=T, delay=DELAY, split="test")
    wrapped = VectorLateOutcomes(gym.make_vec(ID, num_envs=3, horizon=T), DELAY)
    ours.reset(seed=5)
    wrapped.reset(seed=5)
    for t in range(T):
        one, two = (envs.step(np.array([t, 1, 2])) for envs in (ours, wrapped))
        assert np.array_equal(one[1], two[1])
        left, right = (read_feedback(answer[4], np.ones(3, bool)) for answer in (one, two))
        assert sorted(zip(left.task, left.decision, strict=True)) == sorted(
            zip(right.task, right.decision, strict=True)
        )


def test_without_a_delay_nothing_changes():
    plain, wrapped = gym.make(ID, horizon=T), LateOutcomes(gym.make(ID, horizon=T))
    for env in (plain, wrapped):
        env.reset(seed=0)
    one, two = plain.step(1), wrapped.step(1)
    assert one[1:] == two[1:]
    envs = VectorLateOutcomes(gym.make_vec(ID, num_envs=2))
    envs.reset(seed=0)
    assert "outcome" in envs.step(np.zeros(2, int))[4]
    assert "late_outcomes" not in envs.metadata


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episodes_of_foreign_environments_end_at_any_time(mode):
    """CartPole's rewards are its outcomes; everything arrives by the end of an episode, and is paid once."""
    envs = VectorLateOutcomes(
        gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}), 7
    )
    envs.reset(seed=0)
    envs.action_space.seed(0)
    length, paid, began, ends = np.zeros(3, int), np.zeros(3), np.zeros(3, bool), 0
    for _ in range(60):
        _, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        told = np.bincount(read_feedback(info, np.ones(3, bool)).task, minlength=3)
        assert np.array_equal(told, reward)
        length, paid, ended = length + ~began, paid + reward, terminated | truncated
        assert (paid[ended] == length[ended]).all()
        assert (paid[~ended] == np.maximum(length - 7, 0)[~ended]).all()
        length[ended], paid[ended], ends = 0, 0, ends + ended.sum()
        began = ended & (mode is AutoresetMode.NEXT_STEP)
    assert ends > 2


def test_single_environments_are_delayed_too():
    env = LateOutcomes(gym.make("CartPole-v1"), delay=2)
    env.reset(seed=0)
    told = [env.step(1)[4]["feedback"]["decision"] for _ in range(5)]
    assert told == [[], [], [0], [1], [2]]


def test_gymnasium_gathers_wrapped_single_environments():
    envs = gym.make_vec(
        ID, num_envs=2, horizon=T, vectorization_mode="sync", wrappers=[lambda env: LateOutcomes(env, 2)]
    )
    record = gents_gym.rollout(envs, "linucb")
    assert record.rewards.shape == (2, T)
    assert not record.rewards[:, :2].any()


def test_a_spec_remembers_the_wrapper():
    env = LateOutcomes(gym.make(ID, horizon=T), delay=DELAY, batch=2)
    again = gym.make(env.spec)
    for one in (env, again):
        one.reset(seed=3)
    assert [env.step(t)[1] for t in range(T)] == [again.step(t)[1] for t in range(T)]
