import json
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.envs.registration import registry as known

import gents_gym
from gents_gym import InputError, register_tasks
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.testing import check_vector_env

MODULE = """
import numpy as np
import gents_gym
from gents_gym.randomness import stream

def halved(outcome):
    return outcome / 2

class Coins:
    def __init__(self, n_actions=3, horizon=7, reward_fn=gents_gym.types.identity):
        self.shape, self.reward_fn = (horizon, n_actions), reward_fn

    def sample(self, seed, indices, split="test"):
        rngs = [stream(seed, "task", index, split) for index in indices]
        means = np.stack([np.tile(rng.random(self.shape[1]), (self.shape[0], 1)) for rng in rngs])
        outcomes = np.stack([rng.random(self.shape) for rng in rngs]) < means
        contexts = np.stack([rng.normal(size=(self.shape[0], 2)) for rng in rngs])
        features = np.zeros((len(rngs), self.shape[1], 1))
        return gents_gym.Tasks(features, contexts, outcomes, self.reward_fn(means), reward_fn=self.reward_fn)

    def sample_actions(self, seed, indices, n_rows, split="train"):
        rngs = [stream(seed, "actions", index, split) for index in indices]
        contexts = np.stack([rng.normal(size=(n_rows, 2)) for rng in rngs])
        outcomes = np.stack([rng.random(n_rows) < rng.random() for rng in rngs])
        return gents_gym.ActionRows(np.zeros((len(rngs), 1)), contexts, outcomes, self.reward_fn)

gents_gym.register_tasks("coins/Coins-v0", "coins:Coins", horizon=5)
gents_gym.register_tasks("coins/Halved-v0", Coins, reward_fn="coins:halved")
"""


@pytest.fixture
def coins(tmp_path, monkeypatch):
    (tmp_path / "coins.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for env_id in [env_id for env_id in known if env_id.startswith(("coins/", "test/"))]:
        del known[env_id]
    sys.modules.pop("coins", None)


def test_one_call_makes_single_and_vector_environments_with_regret(coins):
    env = gym.make("coins:coins/Coins-v0", n_actions=4)
    assert env.observation_space["action_features"].shape == (4, 1)
    assert env.reset(seed=0)[0] in env.observation_space
    envs = gym.make_vec("coins/Coins-v0", num_envs=8)
    record = gents_gym.rollout(envs, "linucb", seed=3)
    assert record.actions.shape == (8, 5)
    tasks = envs.unwrapped.tasks
    best = tasks.means.max(axis=2) - np.take_along_axis(tasks.means, record.actions[..., None], 2)[..., 0]
    assert np.allclose(record.regret["best"], best)
    assert record.regret.keys() == {"oracle", "expected", "best"}


def test_registered_environments_keep_the_contract(coins):
    for spec in ("coins:coins/Coins-v0", "coins:coins/Halved-v0(horizon=9)"):
        assert check_vector_env(spec) is None


def test_reward_functions_by_name(coins):
    env = gym.make("coins:coins/Halved-v0")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    assert reward == info["outcome"] / 2
    assert set(env.unwrapped.tasks.rewards.ravel()) == {0, 0.5}


def test_the_spec_is_json_that_makes_the_same_environment_elsewhere(coins):
    made = gym.make("coins:coins/Coins-v0", n_actions=4)
    text = made.spec.to_json()
    assert json.loads(text)["kwargs"] == {"tasks": "coins:Coins", "horizon": 5, "n_actions": 4}
    context = made.reset(seed=2)[0]["context"].tolist()
    for spec in (EnvSpec.from_json(text), pickle.loads(pickle.dumps(made.spec))):
        assert gym.make(spec).reset(seed=2)[0]["context"].tolist() == context
    script = (
        "import sys, json, gymnasium as gym\nfrom gymnasium.envs.registration import EnvSpec\n"
        "print(json.dumps(gym.make(EnvSpec.from_json(sys.argv[1])).reset(seed=2)[0]['context'].tolist()))"
    )
    run = [sys.executable, "-c", script, text]
    done = subprocess.run(run, cwd=coins, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == context


def test_evaluations_play_them_in_worker_processes(coins, tmp_path):
    config = gents_gym.EvaluationConfig(("linucb", "lints(prior=fitted)"), ("coins:coins/Coins-v0",), tasks=6, block=3)
    found = gents_gym.evaluate(config, tmp_path / "out", workers=2)
    assert found.failures == ()
    (records,) = found.records.values()
    envs = gym.make_vec("coins/Coins-v0", num_envs=6)
    assert np.array_equal(records["linucb"].actions, gents_gym.rollout(envs, "linucb").actions)


def test_the_same_twice_is_fine_and_another_under_its_name_is_not(coins):
    register_tasks("test/Twice-v0", "synthetic", horizon=4)
    register_tasks("test/Twice-v0", "synthetic", horizon=4)
    with pytest.raises(
        InputError, match=r"env_id must be new, got 'test/Twice-v0', which is registered with .*'horizon': 4"
    ):
        register_tasks("test/Twice-v0", "synthetic", horizon=5)
    assert known["test/Twice-v0"].kwargs["horizon"] == 4
    with pytest.raises(InputError, match="env_id must be new, got 'gents_gym/Synthetic-v0'"):
        register_tasks("gents_gym/Synthetic-v0", "synthetic", horizon=4)


def test_a_class_of_a_module_is_registered_by_its_name(coins):
    register_tasks("test/Class-v0", Synthetic, horizon=3)
    assert known["test/Class-v0"].kwargs == {"tasks": "gents_gym.tasks.synthetic:Synthetic", "horizon": 3}


class Local(Synthetic):
    pass


Local.__module__ = "__main__"


@pytest.mark.parametrize(
    ("env_id", "tasks", "options", "message"),
    [
        ("Mine-v0", "synthetic", {}, "env_id must have a namespace, a name and a version, .* got 'Mine-v0'"),
        ("me/Mine", "synthetic", {}, "env_id must have a namespace, a name and a version, .* got 'me/Mine'"),
        ("mod:me/Mine-v0", "synthetic", {}, "env_id must have a namespace"),
        ("me/Mi ne-v0", "synthetic", {}, "env_id must have a namespace"),
        (7, "synthetic", {}, "env_id must have a namespace, .* got 7"),
        ("me/Mine-v0", "sinthetic", {}, r"unknown task distribution 'sinthetic'; did you mean 'synthetic'\?"),
        ("me/Mine-v0", "nowhere:Tasks", {}, "cannot import task distribution 'nowhere:Tasks'"),
        ("me/Mine-v0", "os:getcwd", {}, "cannot import task distribution 'os:getcwd'"),
        ("me/Mine-v0", lambda: Synthetic(), {}, "tasks must be importable by name in any process, got <function"),
        ("me/Mine-v0", Local, {}, "tasks must be importable by name in any process, .*: move it to a module"),
        ("me/Mine-v0", "__main__:Local", {}, "tasks must be importable by name in any process, got '__main__:Local'"),
        ("me/Mine-v0", Synthetic(), {}, r"tasks must be importable by name in any process, got Synthetic\("),
        ("me/Mine-v0", "synthetic", {"horizn": 3}, "unknown option of .*: unexpected keyword argument 'horizn'"),
        ("me/Mine-v0", "synthetic", {"horizon": 0}, "horizon must be at least 1, got 0"),
        ("me/Mine-v0", "synthetic", {"reward_fn": np.square}, "option 'reward_fn' must be a plain JSON value"),
        ("me/Mine-v0", "synthetic", {"horizon": np.int64(3)}, "option 'horizon' must be a plain JSON value"),
        ("me/Mine-v0", "synthetic", {"horizon": float("nan")}, "option 'horizon' must be a plain JSON value, got nan"),
        ("me/Mine-v0", "synthetic", {"horizon": (1, 2)}, r"option 'horizon' must be a plain JSON value, got \(1, 2\)"),
        ("me/Mine-v0", "synthetic", {"split": "train"}, "options must be the task distribution's, got 'split'"),
    ],
)
def test_bad_registrations(env_id, tasks, options, message):
    with pytest.raises(InputError, match=message):
        register_tasks(env_id, tasks, **options)
    assert env_id not in known
