import sys

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.evaluation.grid import weights_hash

pytest.importorskip("mabwiser")


def envs(num_envs=4, horizon=60, **config):
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=num_envs, horizon=horizon, **config)


@pytest.mark.parametrize("intercept", [False, True])
def test_linucb_plays_as_ours_does(intercept):
    """Both pick the lowest number among equals, so they differ only if two bounds differ by rounding."""
    theirs = rollout(envs(), make_agent(f"mabwiser(policy=linucb, alpha=0.1, intercept={intercept})"))
    ours = rollout(envs(), make_agent("linucb", alpha=0.1, intercept=intercept))
    assert np.array_equal(theirs.actions, ours.actions)


@pytest.mark.parametrize(
    "options",
    [
        "policy=lints, alpha=0.5",
        "policy=lingreedy, epsilon=0.2",
        "policy=ucb1",
        "policy=thompsonsampling",
        "policy=epsilongreedy, neighborhood='knearest(k=3)'",
        "policy=linucb, neighborhood='radius(radius=2)'",
        "policy=ucb1, neighborhood=treebandit",
        "policy=ucb1, neighborhood='clusters(n_clusters=3, is_minibatch=True)'",
        "policy=lints, neighborhood=lshnearest, rounds=2",
    ],
)
def test_other_policies_play_and_repeat(options):
    first, again = (rollout(envs(2, 25), make_agent(f"mabwiser({options})")).actions for _ in range(2))
    assert np.array_equal(first, again)
    assert len(np.unique(first)) > 1


def test_ucb1_is_the_librarys_own_after_a_round_of_every_action():
    """Against a MAB by hand, fed the same rewards."""
    mab = pytest.importorskip("mabwiser.mab")
    agent = make_agent("mabwiser(policy=ucb1, alpha=0.5)")
    agent.reset(TaskInfo(np.zeros((1, 4, 1)), 4, 2), [np.random.default_rng(0)])
    theirs = mab.MAB([0, 1, 2, 3], mab.LearningPolicy.UCB1(alpha=0.5))
    rows = []
    for reward in np.random.default_rng(1).integers(2, size=30).astype(float):
        (action,) = agent.act(np.zeros((1, 2)))
        agent.observe(np.zeros((1, 2)), np.array([action]), np.array([reward]))
        rows.append((action, reward))
        if len(rows) == 4:
            theirs.fit(*map(list, zip(*rows, strict=True)))
        elif len(rows) > 4:
            assert action == theirs.predict()
            theirs.partial_fit([action], [reward])
    assert sorted(action for action, _ in rows[:4]) == [0, 1, 2, 3]


def test_thompson_sampling_draws_by_the_tasks_generator():
    agent = make_agent("mabwiser(policy=thompsonsampling, rounds=0)")
    actions = []
    for seed in (0, 0, 1):
        agent.reset(TaskInfo(np.zeros((20, 10, 1)), 10, 4), [np.random.default_rng(100 * seed + i) for i in range(20)])
        actions.append(agent.act(np.zeros((20, 4))).tolist())
    assert actions[0] == actions[1] != actions[2]
    assert len(set(actions[0])) > 4


def test_a_manifest_tells_the_librarys_version():
    assert weights_hash(make_agent("mabwiser")).startswith("mabwiser==")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("policy=linucbb", "unknown MABWiser policy 'linucbb'; did you mean 'linucb'"),
        ("alhpa=1", "unknown option of policy 'linucb': 'alhpa'; did you mean 'alpha'"),
        ("alpha=-1", "agent 'mabwiser' cannot be made: ValueError: The value of alpha cannot be negative"),
        ("intercept=1", "intercept must be True or False, got 1"),
        ("neighborhood=near", "unknown MABWiser neighborhood 'near'"),
        ("neighborhood='knearest(n=5)'", "unknown option of neighborhood 'knearest': 'n'"),
        ("policy=lints, neighborhood=treebandit", "Tree-Bandit is not compatible with the learning policy"),
        ("rounds=-1", "rounds must be at least 0, got -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_agent(f"mabwiser({options})")


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mabwiser.mab", None)
    with pytest.raises(InputError, match=r"needs the package 'mabwiser': pip install 'gents-gym\[mabwiser\]'"):
        make_agent("mabwiser")
