"""What Gymnasium's own tests ask of registered and vector environments, for our ids.

They follow its test_envs, test_make_vec, test_sync_vector_env, test_autoreset_mode and test_vector_wrappers. What we do
differently on purpose is listed in docs/environments.md.
"""

import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import VectorizeMode, wrappers
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import Error, ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector

from gents_gym import BanditVectorEnv, registry

B, T, SEED = 3, 5, 123
SEEDS = [SEED + i for i in range(B)]  # what SyncVectorEnv makes of the seed 123
ID = "gents_gym/Synthetic-v0"
every_id = pytest.mark.parametrize("env_id", registry.ENVIRONMENTS)
every_mode = pytest.mark.parametrize("mode", AutoresetMode)


def native(env_id=ID, **config):
    return gym.make_vec(env_id, num_envs=B, horizon=T, **config)


def sync(env_id=ID, vector_kwargs=None, wrappers=()):
    sizes = {"num_envs": B, "horizon": T}
    return gym.make_vec(env_id, vectorization_mode="sync", vector_kwargs=vector_kwargs, wrappers=wrappers, **sizes)


def play(env, steps, seed=None, mask=None):
    """Return all answers; resets by hand, with a mask, where the mode leaves that to the caller."""
    answers = [env.reset(seed=seed)]
    by_hand = env.metadata.get("autoreset_mode") is AutoresetMode.DISABLED
    for t in range(steps):
        if t == 2 and mask is not None:  # slots that end one after the other
            answers.append(env.reset(options={"reset_mask": mask.copy()}))
        answers.append(env.step(np.array([(t + i) % env.single_action_space.n for i in range(B)])))
        if by_hand and (ended := answers[-1][2] | answers[-1][3]).any():
            answers.append(env.reset(options={"reset_mask": ended.copy()}))
    return answers


def assert_same(got, expected):
    for t, (left, right) in enumerate(zip(got, expected, strict=True)):
        assert data_equivalence(left, right, exact=True), f"answer {t}: {left} and {right}"


# Registered environments


@every_id
def test_two_environments_of_one_seed_play_the_same(env_id):
    first, second = gym.make(env_id, horizon=T), gym.make(env_id, horizon=T)
    assert_same([first.reset(seed=SEED)], [second.reset(seed=SEED)])
    first.action_space.seed(SEED)
    for _ in range(4 * T):
        action = first.action_space.sample()
        got = first.step(action)
        assert got[0] in first.observation_space
        assert_same([got], [second.step(action)])
        if got[2]:
            assert_same([first.reset()], [second.reset()])


@every_id
def test_every_render_mode_gives_frames(env_id):
    modes = gym.make(env_id).metadata["render_modes"]
    assert "rgb_array" in modes
    for mode in modes:
        env = gym.make(env_id, horizon=T, render_mode=mode)
        env.reset(seed=0)
        for _ in range(2):
            frame = env.render()
            if mode == "ansi":
                assert isinstance(frame, str)
                assert frame
            else:
                assert frame.ndim == 3
                assert frame.shape[2] == 3
                assert frame.dtype == np.uint8
            env.step(0)
        env.close()


@every_id
def test_wrapped_environments_pickle(env_id):
    env = gym.make(env_id, horizon=T)
    again = pickle.loads(pickle.dumps(env))
    assert_same([env.reset(seed=1), env.step(1)], [again.reset(seed=1), again.step(1)])


@every_id
def test_the_spec_has_no_time_limit_that_horizon_would_not_know_of(env_id):
    env = gym.make(env_id, horizon=T)
    assert env.spec.max_episode_steps is None
    assert not any(isinstance(layer, wrappers.TimeLimit) for layer in layers(env))


def layers(env):
    while env is not env.unwrapped:
        yield env
        env = env.env


def test_a_time_limit_that_is_asked_for_is_there_for_wrappers():
    """As docs/environments.md writes it."""
    env = wrappers.TimeAwareObservation(gym.make(ID, horizon=T, max_episode_steps=T), flatten=False)
    assert env.spec.max_episode_steps == T
    times = [env.reset(seed=0)[0]["time"].item()]
    for t in range(1, T + 1):
        observation, _, terminated, truncated, _ = env.step(0)
        assert observation in env.observation_space
        times.append(observation["time"].item())
        assert terminated == truncated == (t == T)
    assert times == list(range(T + 1))
    shorter = gym.make(ID, horizon=T, max_episode_steps=2)
    shorter.reset(seed=0)
    assert [shorter.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]


@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.FlattenObservation,
        wrappers.Autoreset,
        wrappers.RecordEpisodeStatistics,
        lambda env: wrappers.FrameStackObservation(env, 2),
        lambda env: wrappers.DelayObservation(env, 1),
        lambda env: wrappers.NormalizeObservation(wrappers.FlattenObservation(env)),
        lambda env: wrappers.StickyAction(env, 0.5),
        wrappers.NormalizeReward,
    ],
)
def test_wrappers_of_single_environments_play_whole_episodes(wrap):
    env = wrap(gym.make(ID, horizon=T))
    for episode in range(2):
        env.reset(seed=episode)
        ends = [env.step(t)[2] for t in range(T)]
        assert ends == [False] * (T - 1) + [True]


def test_unknown_keywords_raise_as_pythons_own_do():
    """torchrl's GymEnv asks for a frameskip first, and goes on without it if the error has these words."""
    for make in (gym.make, gym.make_vec):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
            make(ID, frameskip=4)


# make_vec


@every_id
def test_make_vec_makes_the_native_environment(env_id):
    for kwargs in ({}, {"vectorization_mode": "vector_entry_point"}, {"vectorization_mode": VectorizeMode("sync")}):
        envs = gym.make_vec(env_id, **kwargs)
        assert isinstance(envs, SyncVectorEnv if "sync" in str(kwargs) else BanditVectorEnv)
        assert envs.num_envs == 1
        envs.close()
    with pytest.raises(ValueError, match="'invalid'"):
        gym.make_vec(env_id, vectorization_mode="invalid")


def test_async_environments_play_the_same():
    envs = gym.make_vec(ID, num_envs=2, horizon=2, vectorization_mode="async")
    ours = gym.make_vec(ID, num_envs=2, horizon=2)
    try:
        assert isinstance(envs, AsyncVectorEnv)
        assert_same([ours.reset(seed=[7, 8])], [envs.reset(seed=7)])
        for _ in range(4):
            assert_same([ours.step(np.array([1, 2]))], [envs.step(np.array([1, 2]))])
    finally:
        envs.close()


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"num_envs": 3},
        {"num_envs": 2, "copy": False, "autoreset_mode": "SameStep", "split": "train", "horizon": T},
        {"vectorization_mode": "sync", "horizon": T},
        {"vectorization_mode": "vector_entry_point"},
        {"vectorization_mode": "sync", "vector_kwargs": {"copy": False, "autoreset_mode": "SameStep"}},
        {"vectorization_mode": "sync", "wrappers": (wrappers.FlattenObservation,)},
        {"render_mode": "rgb_array"},
    ],
)
def test_the_spec_makes_the_same_vector_environment(kwargs):
    envs = gym.make_vec(ID, **kwargs)
    specs = [envs.spec]
    if "wrappers" not in kwargs:
        specs.append(EnvSpec.from_json(envs.spec.to_json()))
        assert json.loads(envs.spec.to_json())["max_episode_steps"] is None
    for spec in specs:
        again = gym.make_vec(spec)
        assert type(again) is type(envs)
        assert again.spec == envs.spec
        assert again.num_envs == envs.num_envs
        for name in ("observation_space", "single_observation_space", "action_space", "single_action_space"):
            assert getattr(again, name) == getattr(envs, name)
        assert again.metadata == envs.metadata
        assert_same([envs.reset(seed=2)], [again.reset(seed=2)])


def test_wrappers_of_slots_are_for_gymnasiums_own_vectorizers():
    envs = sync(wrappers=[wrappers.FlattenObservation])
    assert all(isinstance(env, wrappers.FlattenObservation) for env in envs.envs)
    with pytest.raises(Error, match="wrappers"):
        native(wrappers=[wrappers.FlattenObservation])
    with pytest.raises(Error, match="vector_kwargs"):
        native(vector_kwargs={"copy": False})


# Native vector environments against SyncVectorEnv of the single ones


@every_id
@every_mode
def test_slots_with_a_list_of_seeds_are_sync_vector_envs_to_the_bit(env_id, mode):
    """Through three episodes whose slots end together, and through three where they do not."""
    ours, theirs = native(env_id, autoreset_mode=mode), sync(env_id, vector_kwargs={"autoreset_mode": mode})
    assert_same(play(ours, 3 * T, SEEDS), play(theirs, 3 * T, SEED))
    mask = np.array([False, True, False])
    assert_same(play(ours, 3 * T, SEEDS, mask), play(theirs, 3 * T, SEEDS, mask))
    some = [None, 9, None]
    assert_same(play(ours, T, some), play(theirs, T, some))


def test_whole_number_seeds_differ_from_sync_vector_envs_on_purpose():
    """Slot i at its k-th reset plays task k·B + i of the one stream; there, task k of the stream seed + i."""
    ours, theirs = native(), sync()
    for k in range(2):
        ours.reset(seed=SEED if k == 0 else None)
        theirs.reset(seed=SEED if k == 0 else None)
        for i in range(B):
            assert ours.tasks[i].hashes == ours.distribution.sample(SEED, [k * B + i]).hashes
            assert theirs.envs[i].unwrapped.tasks.hashes == ours.distribution.sample(SEED + i, [k]).hashes


def test_calls_and_attributes_are_sync_vector_envs():
    ours, theirs = native(render_mode="ansi"), None
    theirs = gym.make_vec(ID, num_envs=B, horizon=T, render_mode="ansi", vectorization_mode="sync")
    ours.reset(seed=SEEDS)
    theirs.reset(seed=SEED)
    assert ours.call("render") == theirs.call("render")
    for name in ("horizon", "split", "render_mode", "action_space", "observation_space"):
        assert ours.get_attr(name) == theirs.get_attr(name)
    assert [t.hashes for t in ours.get_attr("tasks")] == [t.hashes for t in theirs.get_attr("tasks")]
    for envs in (ours, theirs):
        envs.set_attr("label", ["a", "b", "c"])
        assert envs.get_attr("label") == ("a", "b", "c")
        with pytest.raises(ValueError, match=r"[gG]ot"):
            envs.set_attr("label", ["a"])
        with pytest.raises(AttributeError, match="nothing"):
            envs.get_attr("nothing")


@every_mode
@pytest.mark.parametrize("as_text", [False, True])
def test_the_autoreset_mode_is_in_the_metadata(mode, as_text):
    given = mode.value if as_text else mode
    assert native(autoreset_mode=given).metadata["autoreset_mode"] is mode
    assert sync(vector_kwargs={"autoreset_mode": given}).metadata["autoreset_mode"] is mode
    assert BanditVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP  # the class's own stays


@every_id
def test_next_step_is_the_default_as_in_gymnasiums_own(env_id):
    envs = native(env_id)
    assert envs.metadata["autoreset_mode"] is gym.make_vec("CartPole-v1").metadata["autoreset_mode"]
    envs.reset(seed=0)
    ends, rewards, tasks = [], [], []
    for _ in range(T + 2):
        _, reward, terminated, _, info = envs.step(np.ones(B, int))
        ends.append(terminated.all())
        rewards.append(reward)
        tasks.append(info.get("task", np.zeros(0)).tolist())
        assert "final_obs" not in info
    assert ends == [False] * (T - 1) + [True, False, False]
    assert not rewards[T].any()
    assert tasks[T] == [3, 4, 5]


def test_a_slot_that_ended_is_reset_by_hand_if_autoreset_is_disabled():
    envs = native(autoreset_mode="Disabled")
    envs.reset(seed=0)
    for _ in range(T):
        envs.step(np.zeros(B, int))
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(B, int))
    options = {"reset_mask": np.array([True, True, True])}
    envs.reset(options=options)
    assert list(options) == ["reset_mask"]  # the caller's dict stays
    envs.step(np.zeros(B, int))


# Gymnasium's vector wrappers, on the default environment

CONTEXTS = {"filter_keys": ["context"]}
ONES = np.ones(25, np.float32)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda to: lambda env: to.FilterObservation(env, **CONTEXTS),
        lambda to: lambda env: to.FlattenObservation(env),
        lambda to: lambda env: to.ReshapeObservation(to.FlattenObservation(env), (5, 5)),
        lambda to: lambda env: to.RescaleObservation(to.FlattenObservation(env), -ONES, ONES),
        lambda to: lambda env: to.ClipReward(env, -0.5, 0.5),
        lambda to: lambda env: to.TransformReward(env, lambda reward: 2 * reward),
    ],
)
def test_a_vector_wrapper_is_the_single_wrapper_in_every_slot(wrap):
    ours, theirs = wrap(vector)(native()), sync(wrappers=(wrap(wrappers),))
    for name in ("observation_space", "single_observation_space", "action_space", "single_action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert_same(play(ours, 3 * T, SEEDS), play(theirs, 3 * T, SEED))


def test_running_statistics_see_every_step():
    envs = vector.NormalizeReward(vector.NormalizeObservation(vector.FlattenObservation(native())))
    steps = 2 * T + 2
    observations = np.array([answer[0] for answer in play(envs, steps, SEED)])
    assert observations.shape == (steps + 1, B, 25)
    assert envs.env.obs_rms.count == pytest.approx((steps + 1) * B, abs=1)
    with pytest.raises((ValueError, AssertionError)):  # the latter before Gymnasium 1.2
        vector.NormalizeObservation(vector.FilterObservation(native(autoreset_mode="SameStep"), ["context"]))


def test_episode_statistics():
    answers = play(vector.RecordEpisodeStatistics(native()), T, SEED)
    episode = answers[-1][4]["episode"]
    assert np.array_equal(episode["r"], np.sum([answer[1] for answer in answers[1:]], axis=0))
    assert episode["l"].tolist() == [T] * B


def test_infos_as_a_list():
    answers = play(vector.DictInfoToList(native()), T, SEED)
    assert [info["task"] for info in answers[0][1]] == [0, 1, 2]
    assert [info["outcome"] for info in answers[1][4]] == answers[1][1].tolist()


def test_tensors_share_memory_with_observations_without_a_warning():
    """Warnings are errors here, and torch warns of arrays that cannot be written to."""
    envs = native()
    observation, _ = envs.reset(seed=SEED)
    expected = observation["action_features"].copy()
    for array in observation.values():
        torch.from_numpy(array).add_(1)
    assert np.array_equal(observation["action_features"], expected + 1)
    assert np.array_equal(envs.step(np.zeros(B, int))[0]["action_features"], expected)
