"""What every registered environment keeps: a new one is tested by being registered."""

import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from gents_gym import registry
from gents_gym.testing import check_vector_env

B, T = 3, 6
every_id = pytest.mark.parametrize("env_id", registry.ENVIRONMENTS)
other_outcomes = pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
every_mode = pytest.mark.parametrize("mode", AutoresetMode)


def equal(left, right):
    """Whether two nested results are the same to the bit, types and keys included."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray) and left.dtype == object:
        return left.shape == right.shape and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return type(left) is type(right) and left == right


@every_id
def test_every_environment_keeps_the_contract(env_id):
    assert check_vector_env(f"{env_id}(horizon={T})") is None


POOL = 'turnover={"live": 3, "rate": 0.3}'
LATE = [
    POOL,
    f"{POOL}, delay=2",
    "delay=2",
    "batch=4",
    'delay={"geometric": 0.4, "lost": 0.2}, batch=2, outcomes=gaussian',
]


@pytest.mark.parametrize("options", LATE)
def test_late_outcomes_keep_the_contract(options):
    assert check_vector_env(f"gents_gym/Synthetic-v0(horizon={T}, {options})") is None


def test_gymnasium_checker_has_no_remark_on_late_outcomes_and_pools():
    check_env(gym.make("gents_gym/Synthetic-v0", delay={"geometric": 0.4, "lost": 0.2}, batch=2).unwrapped)
    # It samples actions without a mask: all are available here.
    check_env(gym.make("gents_gym/Synthetic-v0", n_actions=40, turnover={"live": 40, "rate": 0.1}).unwrapped)


@other_outcomes
def test_other_outcomes_keep_the_contract(outcomes):
    assert check_vector_env(f"gents_gym/Synthetic-v0(horizon={T}, outcomes={outcomes})") is None


@other_outcomes
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_gymnasium_checker_has_no_remark_on_other_outcomes(outcomes, render_mode):
    check_env(gym.make("gents_gym/Synthetic-v0", outcomes=outcomes, render_mode=render_mode).unwrapped)


@every_id
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_gymnasium_checker_has_no_remark(env_id, render_mode):
    check_env(gym.make(env_id, render_mode=render_mode).unwrapped)


@every_id
def test_stable_baselines3_checker_has_the_one_accepted_remark(env_id):
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        check_env_sb3(gym.make(env_id))
    others = [str(r.message) for r in remarks if "has an unconventional shape" not in str(r.message)]
    assert others == []


@every_id
def test_spec_survives_json_and_pickle(env_id):
    made = gym.make(env_id, split="train", horizon=T)
    for spec in (EnvSpec.from_json(made.spec.to_json()), pickle.loads(pickle.dumps(made.spec))):
        again = gym.make(spec)
        assert equal(made.reset(seed=5), again.reset(seed=5))


@every_id
def test_environments_pickle_in_the_middle_of_an_episode(env_id):
    for env in (gym.make(env_id).unwrapped, gym.make_vec(env_id, num_envs=B)):
        env.reset(seed=1)
        env.action_space.seed(0)
        env.step(env.action_space.sample())
        copy = pickle.loads(pickle.dumps(env))
        action = env.action_space.sample()
        assert equal(env.step(action), copy.step(action))


@every_id
def test_vector_and_single_views_are_the_same_bits(env_id):
    """Slot i of the vector environment at its k-th reset is the single environment on task k·B + i."""
    envs = gym.make_vec(env_id, num_envs=B, horizon=T, autoreset_mode="Disabled")
    singles = [gym.make(env_id, horizon=T).unwrapped for _ in range(B)]
    for k in range(2):
        seed = 11 if k == 0 else None
        observation, info = envs.reset(seed=seed)
        for i, single in enumerate(singles):
            got = single.reset(seed=11, options={"task": k * B + i})
            shown = {name: info[name][i] for name in info if not name.startswith("_")}
            shown["task"] = int(shown["task"])
            assert equal(({n: a[i] for n, a in observation.items()}, shown), got)
        for t in range(T):
            actions = (np.arange(B) + t) % envs.single_action_space.n
            observation, reward, terminated, truncated, info = envs.step(actions)
            for i, single in enumerate(singles):
                theirs = {n: a[i] for n, a in observation.items()}
                expected = (
                    theirs,
                    float(reward[i]),
                    bool(terminated[i]),
                    False,
                    {"outcome": float(info["outcome"][i])},
                )
                assert equal(expected, single.step(actions[i]))
        assert terminated.all()
        assert not truncated.any()


@every_id
@every_mode
def test_autoreset_is_gymnasiums_own_to_the_bit(env_id, mode):
    """One slot of ours against Gymnasium's SyncVectorEnv of the single environment, through three episodes."""
    ours = gym.make_vec(env_id, num_envs=1, horizon=T, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: gym.make(env_id, horizon=T)], autoreset_mode=mode)
    assert equal(ours.reset(seed=3), theirs.reset(seed=3))
    over = False
    for t in range(3 * T):
        if over and mode is AutoresetMode.DISABLED:
            options = {"reset_mask": np.array([True])}
            assert equal(ours.reset(options=dict(options)), theirs.reset(options=dict(options)))
        action = np.array([t % ours.single_action_space.n])
        got, expected = ours.step(action), theirs.step(action)
        assert equal(got, expected)
        over = bool(got[2][0])


@every_id
def test_single_observations_are_fresh_arrays(env_id):
    env = gym.make(env_id).unwrapped
    first, _ = env.reset(seed=0)
    second = env.step(0)[0]
    assert not np.shares_memory(first["action_features"], second["action_features"])
    second["action_features"][:] = 9
    second["context"][:] = 9
    assert not (env.step(0)[0]["action_features"] == 9).any()


@every_id
def test_docstring_has_gymnasiums_headings(env_id):
    text = gym.make(env_id).unwrapped.__doc__
    headings = [line.strip()[3:] for line in text.splitlines() if line.strip().startswith("## ")]
    assert headings == [
        "Description",
        "Action Space",
        "Observation Space",
        "Rewards",
        "Starting State",
        "Episode End",
        "Arguments",
        "Vectorized environment",
        "Version History",
    ]
