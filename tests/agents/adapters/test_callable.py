import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, make_agent, rollout
from gents_gym.tasks.synthetic import Synthetic

THEIRS = (
    "def choose(observation):\n    return int((observation['action_features'] @ observation['context'][:2]).argmax())"
)


def test_a_function_plays_every_task_by_its_observation(tmp_path, monkeypatch):
    (tmp_path / "their_function.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(tmp_path)
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=4, horizon=20)
    record = rollout(envs, make_agent("callable(function=their_function:choose)"))
    tasks = Synthetic(horizon=20).sample(0, range(4))
    assert np.array_equal(
        record.actions, (tasks.contexts[..., :2] @ tasks.action_features.swapaxes(1, 2)).argmax(axis=2)
    )


def test_bad_functions():
    with pytest.raises(InputError, match="function must be a function of the observation, or its name, got 3"):
        make_agent("callable", function=3)
    with pytest.raises(InputError, match="cannot import function 'nowhere:f'"):
        make_agent("callable(function=nowhere:f)")
    with pytest.raises(InputError, match="unknown function 'f'"):
        make_agent("callable(function=f)")
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=2)
    with pytest.raises(InputError, match=r"action must lie in \[0, 10\), got 11"):
        rollout(envs, make_agent("callable", function=lambda observation: 11))
