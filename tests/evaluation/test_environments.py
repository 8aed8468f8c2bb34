import gymnasium as gym
import pytest

from gents_gym import InputError
from gents_gym.evaluation.environments import env_distribution, find_distribution, get_distribution, make_envs
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic


def test_options_and_split_reach_the_environment():
    envs = make_envs("gents_gym/Synthetic-v0(horizon=7, n_actions=3)", 2, "train")
    envs.reset(seed=4)
    expected = Synthetic(horizon=7, n_actions=3).sample(4, range(2), "train")
    assert envs.unwrapped.tasks.content_hash == expected.content_hash
    assert env_distribution("gents_gym/Synthetic-v0(horizon=7)").sample(0, [0]).horizon == 7
    assert env_distribution("gents_gym/News-v0(horizon=7)") == News(horizon=7)


def test_a_distribution_is_named_by_its_own_id_or_an_environments():
    assert get_distribution("gents_gym/News-v0(horizon=7)") == get_distribution("news(horizon=7)") == News(horizon=7)
    assert get_distribution(News(horizon=7)) == News(horizon=7)
    with pytest.raises(InputError, match="unknown task distribution 'sinthetic'"):
        get_distribution("sinthetic")
    with pytest.raises(InputError, match="env must be one of gents_gym's, with a task distribution, got 'CartPole-v1'"):
        get_distribution("CartPole-v1")


def test_a_distribution_is_had_without_an_environment(monkeypatch):
    monkeypatch.setattr(gym, "make_vec", lambda *_, **__: 1 / 0)
    assert env_distribution("gents_gym/Synthetic-v0(n_actions=3, render_mode=ansi)") == Synthetic(n_actions=3)
    assert find_distribution("CartPole-v1") is None
    with pytest.raises(InputError, match="env must be one of gents_gym's, with a task distribution, got 'CartPole-v1'"):
        env_distribution("CartPole-v1")
    with pytest.raises(InputError, match="env's options must be options of the tasks, got 'split'"):
        env_distribution("gents_gym/Synthetic-v0(split=train)")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("gents_gym/Sinthetic-v0", "env 'gents_gym/Sinthetic-v0' cannot be made: .*Did you mean: `Synthetic`"),
        ("gents_gym/Synthetic-v0(split=train)", "env's options must be options of the tasks, got 'split'"),
        ("gents_gym/Synthetic-v0(num_envs=3)", "env's options must be options of the tasks, got 'num_envs'"),
        ("gents_gym/Synthetic-v0(reward_fn=3)", "reward_fn must map outcomes to rewards, got 3"),
        ("gents_gym/Synthetic-v0(horizon=0)", "horizon must be at least 1, got 0"),
        ("Synthetic-v0", r"env 'Synthetic-v0' cannot be made: .* Did you mean 'gents_gym/Synthetic-v0'\?"),
        ("CartPole-v1", "envs must observe 'context' and 'action_features'"),
        ("nowhere:Env-v0", "env 'nowhere:Env-v0' cannot be made: No module named 'nowhere'"),
    ],
)
def test_bad_environments(env, message):
    with pytest.raises(InputError, match=message):
        make_envs(env, 1)


def test_a_module_that_fails_is_told(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    message = "env 'broken_module:me/Env-v0' cannot be made: ZeroDivisionError: division by zero"
    with pytest.raises(InputError, match=message):
        make_envs("broken_module:me/Env-v0", 1)
