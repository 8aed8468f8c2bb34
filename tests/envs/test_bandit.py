import functools
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from gents_gym import BanditEnv, BanditVectorEnv, InputError, Tasks
from gents_gym.checks import InputTypeError
from gents_gym.tasks.synthetic import Synthetic

SMALL = Synthetic(n_actions=4, horizon=5, context_dim=3)


def make(num_envs=3, **kwargs):
    return BanditVectorEnv(SMALL, num_envs, **kwargs)


def test_rewards_are_the_tables_cells():
    envs, tasks = make(autoreset_mode="Disabled"), SMALL.sample(9, range(3))
    observation, _ = envs.reset(seed=9)
    for t in range(5):
        assert np.array_equal(observation["context"], tasks.contexts[:, t])
        actions = np.array([t % 4, 3, 0])
        observation, reward, terminated, _, info = envs.step(actions)
        assert np.array_equal(reward, tasks.outcomes[np.arange(3), t, actions])
        assert np.array_equal(info["outcome"], reward)
        assert terminated.all() == (t == 4)


def test_reward_is_r_of_the_outcome_and_r_is_a_plain_argument():
    env = gym.make("gents_gym/Synthetic-v0", horizon=50, reward_fn="numpy:square")
    env.reset(seed=0)
    assert env.unwrapped.tasks.reward_fn is np.square
    halved = BanditEnv(Synthetic(horizon=50, reward_fn=lambda y: 1 - y / 2))
    halved.reset(seed=0)
    for _ in range(10):
        _, reward, _, _, info = halved.step(1)
        assert reward == 1 - info["outcome"] / 2


def test_any_integer_type_is_an_action():
    for kind in (np.uint8, np.uint64, np.int32):
        env, envs = BanditEnv(SMALL), make()
        env.reset(seed=0)
        envs.reset(seed=0)
        assert env.step(kind(1))[1] == envs.step(np.ones(3, kind))[1][0]


def test_resets_walk_through_the_stream_and_a_seed_starts_it_anew():
    envs = make()
    numbers = [envs.reset(seed=seed)[1]["task"].tolist() for seed in (4, None, None, 4)]
    assert numbers == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 1, 2]]
    assert envs.tasks.content_hash == SMALL.sample(4, range(3)).content_hash


def test_unseeded_environments_differ_and_obey_a_generator_that_is_set():
    hashes = set()
    for _ in range(2):
        env = BanditEnv(SMALL)
        env.reset()
        hashes.add(env.tasks.content_hash)
    assert len(hashes) == 2
    found = []
    for _ in range(2):
        env = BanditEnv(SMALL)
        env.np_random = np.random.default_rng(5)
        env.reset()
        found.append(env.tasks.content_hash)
    assert found[0] == found[1]


def test_a_given_task_or_number_is_played_and_does_not_advance_the_stream():
    envs, given = make(), SMALL.sample(77, range(3), "train")
    envs.reset(seed=1)
    _, info = envs.reset(options={"task": given})
    assert info["task"].tolist() == [-1, -1, -1]
    assert envs.tasks is given
    _, info = envs.reset(options={"task": [8, 8, 2]})
    assert info["task"].tolist() == [8, 8, 2]
    assert envs.tasks.content_hash == SMALL.sample(1, [8, 8, 2]).content_hash
    assert envs.reset()[1]["task"].tolist() == [3, 4, 5]
    single = BanditEnv(SMALL)
    assert single.reset(seed=1, options={"task": 8})[1] == {"task": 8}
    assert single.tasks.hashes == SMALL.sample(1, [8]).hashes
    single.reset(options={"task": given[2]})
    assert single.tasks.hashes == given[2].hashes


def test_a_mask_resets_some_slots_only():
    envs = make(autoreset_mode="Disabled")
    envs.reset(seed=0)
    envs.step(np.array([0, 1, 2]))
    before = envs.tasks
    observation, info = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert info["task"].tolist() == [0, 4, 0]
    assert info["_task"].tolist() == [False, True, False]
    assert envs.tasks[[0, 2]].hashes == before[[0, 2]].hashes
    assert envs.tasks[1].hashes == SMALL.sample(0, [4]).hashes
    assert np.array_equal(observation["context"], envs.tasks.contexts[[0, 1, 2], [1, 0, 1]])
    for _ in range(4):
        _, _, terminated, _, _ = envs.step(np.zeros(3, int))
    assert terminated.tolist() == [True, False, True]
    with pytest.raises(ResetNeeded, match=r"ended after 5 decisions in slots \[0, 2\]: reset"):
        envs.step(np.zeros(3, int))


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_slots_out_of_step_reset_one_by_one(mode):
    envs = make(autoreset_mode=mode)
    envs.reset(seed=0)
    envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([True, False, False])})  # slot 0: task 3, one step behind
    ends = []
    for _ in range(14):
        ends.append(envs.step(np.ones(3, int))[2].tolist())
    period = 5 if mode == "SameStep" else 6
    assert [t for t, e in enumerate(ends) if e[0]] == [t for t in range(14) if t % period == 4]
    assert [t for t, e in enumerate(ends) if e[1]] == [t for t in range(14) if t % period == 3]


def test_same_step_keeps_the_last_outcome_of_the_ended_slots():
    envs = make(autoreset_mode="SameStep")
    envs.reset(seed=0)
    envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    old = envs.tasks
    for _ in range(3):
        envs.step(np.ones(3, int))
    _, reward, terminated, _, info = envs.step(np.ones(3, int))
    assert terminated.tolist() == [False, True, True]
    assert info["_outcome"].tolist() == [True, False, False]
    assert info["final_info"]["_outcome"].tolist() == [False, True, True]
    assert np.array_equal(info["final_info"]["outcome"][1:], old.outcomes[1:, 4, 1])
    assert np.array_equal(reward, old.outcomes[np.arange(3), [3, 4, 4], 1])
    assert info["_task"].tolist() == [False, True, True]
    assert info["final_obs"][0] is None
    assert not info["final_obs"][1]["context"].any()


def test_stepping_out_of_turn():
    for env, action in ((BanditEnv(SMALL), 0), (make(), np.zeros(3, int))):
        with pytest.raises(ResetNeeded, match="reset must be called before step"):
            env.step(action)
        with pytest.raises(ResetNeeded, match="no tasks before the first reset"):
            _ = env.tasks
    env = BanditEnv(SMALL)
    env.reset(seed=0)
    for _ in range(5):
        env.step(0)
    with pytest.raises(ResetNeeded, match="ended after 5 decisions"):
        env.step(0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (4, r"action must lie in \[0, 4\), got 4"),
        (-1, r"action must lie in \[0, 4\), got -1"),
        (1.0, "action must be a whole number, got dtype float64"),
        ([1], r"action must be a single number, got shape \(1,\)"),
        ("left", "action must be a whole number, got dtype <U4"),
        (None, "action must be a whole number, got dtype object"),
    ],
)
def test_bad_single_actions(action, message):
    env = BanditEnv(SMALL)
    env.reset(seed=0)
    with pytest.raises(InputError, match=message):
        env.step(action)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0, 1], r"action must have shape \(B,\)=\(3,\), got \(2,\)"),
        (1, r"action must have shape \(B,\)=\(3,\), got \(\)"),
        ([0, 1, 7], r"action must lie in \[0, 4\), got 7"),
        ([0.0, 1.0, 2.0], "action must be a whole number, got dtype float64"),
    ],
)
def test_bad_vector_actions(action, message):
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(InputError, match=message):
        envs.step(np.array(action))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"split": "tests"}, r"unknown split 'tests'; did you mean 'test'\?"),
        ({"render_mode": "human"}, "unknown render_mode 'human'; known: ansi, rgb_array"),
        ({"autoreset_mode": "samestep"}, r"unknown autoreset_mode 'samestep'; did you mean 'SameStep'\?"),
        ({"horizon": 3}, "tasks must be an id if arguments are given"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_actions": 1}, "n_actions must be at least 2, got 1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizn": 5}, r"unexpected keyword argument 'horizn'; did you mean 'horizon'\?"),
    ],
)
def test_bad_arguments_of_gym_make(arguments, message):
    with pytest.raises(InputError, match=message):
        gym.make("gents_gym/Synthetic-v0", **arguments)
    with pytest.raises(InputError, match=message):
        gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, **arguments)


def test_tasks_must_be_a_distribution():
    with pytest.raises(InputError, match="tasks must be a task distribution or its id, got 3"):
        gym.make("gents_gym/Synthetic-v0", tasks=3)
    with pytest.raises(InputError, match="cannot import task distribution 'os:getcwd'"):
        gym.make("gents_gym/Synthetic-v0", tasks="os:getcwd")
    nothing = SimpleNamespace(sample=lambda seed, indices, split: None, sample_actions=print)
    with pytest.raises(InputError, match="sample of a task distribution must return Tasks, got None"):
        BanditVectorEnv(nothing, 2)


def test_vector_arguments_on_the_single_environment():
    message = r"autoreset_mode is an argument of gym\.make_vec, .* write vector_kwargs=\{'autoreset_mode': \.\.\.\}"
    for make in (gym.make, functools.partial(gym.make_vec, vectorization_mode="sync")):
        with pytest.raises(InputError, match=message):
            make("gents_gym/Synthetic-v0", autoreset_mode="Disabled")
    with pytest.raises(InputError, match=r"num_envs is an argument of gym\.make_vec, not of gym\.make "):
        gym.make("gents_gym/Synthetic-v0", num_envs=3)
    with pytest.raises(InputError, match=r"max_episode_steps is an argument of gym\.make; horizon is the length"):
        gym.make_vec("gents_gym/Synthetic-v0", max_episode_steps=3)


def wrong_tasks(**changes):
    good = SMALL.sample(0, range(3))
    arrays = {name: getattr(good, name) for name in ("action_features", "contexts", "outcomes", "means")}
    return Tasks(**{**arrays, **changes})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": SMALL.sample(0, range(2))}, r"options\['task'\].action_features must have shape \(3, 4, 2\)"),
        (
            {"task": wrong_tasks(contexts=np.zeros((3, 5, 2)))},
            r"options\['task'\].contexts must have shape \(3, 5, 3\), got \(3, 5, 2\)",
        ),
        (
            {"task": Synthetic(n_actions=4, horizon=6, context_dim=3).sample(0, range(3))},
            r"options\['task'\].contexts must have shape \(3, 5, 3\), got \(3, 6, 3\)",
        ),
        ({"task": wrong_tasks(contexts=np.full((3, 5, 3), 1e7))}, r"contexts must lie within ±1e\+06, got 1e\+07"),
        (
            {"task": wrong_tasks(reward_fn=np.square)},
            r"reward_fn must be the environment's, .*identity.*, got .*square",
        ),
        ({"task": [0, 1]}, r"options\['task'\] must be a Tasks batch or 3 task numbers of at least 0"),
        ({"task": [0, 1, -1]}, r"options\['task'\] must be a Tasks batch or 3 task numbers"),
        ({"task": 2}, r"options\['task'\] must be a Tasks batch or 3 task numbers"),
        ({"task": [[0], [1, 2]]}, r"options\['task'\] must be a Tasks batch"),
        (
            {"task": wrong_tasks(outcomes=np.full((3, 5, 4), 1e7))},
            r"options\['task'\].likelihood must be the environment's, bernoulli, got gaussian; Tasks\(likelihood",
        ),
        ({"task": "first"}, r"options\['task'\] must be a Tasks batch"),
        ({"tsak": 1}, r"unknown option of reset: 'tsak'; did you mean 'task'\?"),
        ({"reset_mask": [True]}, r"reset_mask must be booleans of shape \(B,\)=\(3,\)"),
        ({"reset_mask": np.zeros(3, bool)}, "with one or more True"),
        (3, "options must be a dict, got 3"),
    ],
)
def test_bad_options(options, message):
    envs = make()
    envs.reset(seed=0)
    before = envs.tasks
    with pytest.raises(InputError, match=message):
        envs.reset(seed=5, options=options)
    assert envs.tasks is before
    assert envs.reset()[1]["task"].tolist() == [3, 4, 5]
    assert envs.tasks.content_hash == SMALL.sample(0, [3, 4, 5]).content_hash


def test_bad_seeds():
    for seed in (-1, 0.5, "x"):
        with pytest.raises((InputError, gym.error.Error)):
            make().reset(seed=seed)
    envs = make()
    envs.reset(seed=0)
    for seed, message in (
        ([1, 2], "seed must be a whole number or a list of B=3 of them, got 2"),
        ({1, 2, 3}, r"seed must be a whole number or a list of B=3 of them, got \{1, 2, 3\}"),
        ([1, 2, 0.5], "seed must be a whole number, got 0.5"),
        ([1, 2, -1], "seed must be at least 0, got -1"),
    ):
        with pytest.raises(InputError, match=message):
            envs.reset(seed=seed)
    assert envs.reset()[1]["task"].tolist() == [3, 4, 5]  # nothing has changed


def streams(envs):
    """Return the seed and the number of each slot's task, found by drawing again."""
    known = {SMALL.sample(seed, [i]).hashes[0]: (seed, i) for seed in range(4) for i in range(9)}
    return [known[found] for found in envs.tasks.hashes]


def test_a_list_of_seeds_has_a_stream_for_each_slot():
    envs = make(autoreset_mode="SameStep")
    assert envs.reset(seed=[3, 1, 3])[1]["task"].tolist() == [0, 0, 0]
    assert streams(envs) == [(3, 0), (1, 0), (3, 0)]
    for _ in range(5):
        envs.step(np.zeros(3, int))
    assert streams(envs) == [(3, 1), (1, 1), (3, 1)]
    envs.reset(seed=[None, 2, None])  # the others go on
    assert streams(envs) == [(3, 2), (2, 0), (3, 2)]
    envs.reset(seed=[0, 0, 0], options={"reset_mask": np.array([True, False, False])})  # the others stay as they are
    assert streams(envs) == [(0, 0), (2, 0), (3, 2)]
    envs.reset(options={"task": [5, 6, 7]})
    assert streams(envs) == [(0, 5), (2, 6), (3, 7)]
    envs.reset(seed=1)  # one stream for all again
    assert streams(envs) == [(1, 0), (1, 1), (1, 2)]


def test_an_unseeded_slot_of_a_list_has_a_stream_of_its_own():
    envs = make()
    envs.reset(seed=[1, None, None])
    assert len(set(envs.tasks.hashes)) == 3
    assert envs.tasks[0].hashes == SMALL.sample(1, [0]).hashes


def test_observations_are_copies_unless_they_are_asked_not_to_be():
    envs, plain = make(), make(copy=False)
    observation, _ = envs.reset(seed=0)
    shared, _ = plain.reset(seed=0)
    for array in observation.values():
        array += 1  # nobody's state
    assert not shared["action_features"].flags.writeable
    assert shared["action_features"] is plain.step(np.zeros(3, int))[0]["action_features"]
    after = envs.step(np.zeros(3, int))[0]
    assert np.array_equal(after["action_features"], shared["action_features"])
    assert np.array_equal(after["context"], envs.tasks.contexts[:, 1])
    with pytest.raises(InputError, match="copy must be True or False, got 1"):
        make(copy=1)


def test_attributes_and_calls_by_slot():
    envs = make(render_mode="ansi", split="train")
    envs.reset(seed=0)
    assert envs.call("render") == envs.render()
    assert [task.hashes for task in envs.get_attr("tasks")] == [SMALL.sample(0, [i], "train").hashes for i in range(3)]
    assert envs.get_attr("horizon") == (5, 5, 5)
    assert envs.get_attr("split") == ("train",) * 3
    assert envs.get_attr("action_space") == (envs.single_action_space,) * 3
    envs.set_attr("label", [1, 2, 3])
    assert envs.get_attr("label") == (1, 2, 3)
    envs.set_attr("label", "all")
    assert envs.call("label") == ("all",) * 3
    with pytest.raises(AttributeError, match="slots have no attribute 'nothing'; known: action_space"):
        envs.get_attr("nothing")
    with pytest.raises(InputError, match="slots are played together, so call step of the vector environment"):
        envs.call("step", 1)
    with pytest.raises(InputError, match="horizon cannot be set for a slot"):
        envs.set_attr("horizon", 3)
    with pytest.raises(InputError, match="values must be one or a list of B=3, got 2"):
        envs.set_attr("label", [1, 2])


@pytest.mark.parametrize("make_env", [gym.make, gym.make_vec])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (3, "options must be a dict, got 3"),
        (["task"], "options must be a dict, got "),
        ({"indices": 5}, "unknown option of reset: 'indices'; known: reset_mask, task"),
    ],
)
def test_options_of_a_wrong_type_are_type_errors(make_env, options, message):
    env = make_env("gents_gym/Synthetic-v0", horizon=3)
    with pytest.raises(InputTypeError, match=message):
        env.unwrapped.reset(options=options)
