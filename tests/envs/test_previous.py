import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gents_gym import InputError, PreviousStep, VectorPreviousStep

ID = "gents_gym/Synthetic-v0"
NEW = ("previous_action", "previous_reward")


def test_single_form_shows_what_was_played_and_earned():
    env = PreviousStep(gym.make(ID, horizon=4))
    observation, _ = env.reset(seed=0)
    assert not observation["previous_action"].any()
    assert observation["previous_reward"] == 0
    for action in (3, 0, 9, 3):
        observation, reward, _, _, _ = env.step(action)
        assert observation in env.observation_space
        assert observation["previous_action"].tolist() == np.eye(10)[action].tolist()
        assert observation["previous_reward"] == [reward]
    assert not env.reset()[0]["previous_action"].any()


def test_single_form_passes_the_checker_and_its_spec_serialises():
    spec = PreviousStep(gym.make(ID, horizon=4)).spec
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert "previous_action" in again.observation_space.spaces
    with pytest.warns(UserWarning, match="different from the unwrapped version"):
        check_env(again)


def test_time_is_the_logarithm_of_the_decisions():
    env = PreviousStep(gym.make(ID, horizon=4), time=True)
    shown = [env.reset(seed=0)[0]["time"], *(env.step(0)[0]["time"] for _ in range(4)), env.reset()[0]["time"]]
    assert np.allclose(np.concatenate(shown), [0, np.log(2), np.log(3), np.log(4), np.log(5), 0])
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).reset()[0]["time"] == 0
    with pytest.raises(InputError, match="time must be True or False, got 3"):
        PreviousStep(gym.make(ID), time=3)


@pytest.mark.parametrize("time", [False, True])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_form_is_the_single_form_side_by_side(mode, time):
    """Against Gymnasium's SyncVectorEnv of the wrapped single environment, through several episodes."""
    ours = VectorPreviousStep(gym.make_vec(ID, num_envs=1, horizon=4, autoreset_mode=mode), time=time)
    theirs = SyncVectorEnv([lambda: PreviousStep(gym.make(ID, horizon=4), time=time)], autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    got, expected = ours.reset(seed=2)[0], theirs.reset(seed=2)[0]
    for t in range(14):
        for key in got:
            assert np.array_equal(got[key], expected[key])
        assert got in ours.observation_space
        action = np.array([t % 10])
        got, _, terminated, _, info = ours.step(action)
        expected, _, _, _, their_info = theirs.step(action)
        if mode is AutoresetMode.SAME_STEP and terminated[0]:
            mine, last = info["final_obs"][0], their_info["final_obs"][0]
            assert mine.keys() == last.keys()
            assert all(np.array_equal(mine[key], last[key]) for key in mine)
        if mode is AutoresetMode.DISABLED and terminated[0]:
            got, expected = ours.reset()[0], theirs.reset()[0]


def test_vector_form_with_a_mask():
    envs = VectorPreviousStep(gym.make_vec(ID, num_envs=2, autoreset_mode="Disabled"), time=True)
    envs.reset(seed=0)
    envs.step(np.array([1, 2]))
    observation, _ = envs.reset(options={"reset_mask": np.array([True, False])})
    assert not observation["previous_action"][0].any()
    assert np.allclose(observation["time"], [[0], [np.log(2)]])
    assert observation["previous_action"][1].argmax() == 2


def test_other_spaces_are_refused():
    with pytest.raises(InputError, match="env must have a Dict observation and a Discrete action space"):
        PreviousStep(gym.make("CartPole-v1"))
    with pytest.raises(InputError, match="env must have a Dict observation"):
        VectorPreviousStep(gym.make_vec("CartPole-v1", num_envs=2))
    env = gym.make("gents_gym/Synthetic-v0")
    env.action_space = gym.spaces.Discrete(10, start=1)
    with pytest.raises(InputError, match=r"that starts at 0, got .* Discrete\(10, start=1\)"):
        PreviousStep(env)
