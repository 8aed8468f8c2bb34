import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym import InputError, TaskInfo
from gents_gym.agents.available import find_available, pick_any, pick_best
from gents_gym.agents.linear import LinearPosterior, LinearPrior

ID = "gents_gym/Synthetic-v0"
INFO = TaskInfo(np.zeros((3, 4, 2)), 4, 5)
RAGGED = np.array([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0]], bool)


def test_live_actions_come_first_and_pads_never_win():
    live = find_available(RAGGED, INFO)
    assert live.counts.tolist() == [2, 4, 1]
    assert [row[:n].tolist() for row, n in zip(live.actions, live.counts, strict=True)] == [[1, 3], [0, 1, 2, 3], [2]]
    assert all(sorted(row) == [0, 1, 2, 3] for row in live.actions.tolist())
    assert pick_best(np.array([[0.0, 1, 9, 9], [3, 2, 1, 0], [-5, 9, 9, 9]]), live).tolist() == [3, 0, 2]
    assert pick_any(np.array([0.49, 0.99, 0.99]), live, 4).tolist() == [1, 3, 2]


def test_as_many_in_each_task_need_no_pads():
    live = find_available([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], INFO)
    assert live.actions.tolist() == [[0, 3], [1, 2], [0, 1]]


def test_everything_is_no_mask():
    assert find_available(np.ones((3, 4), bool), INFO) is None
    assert find_available(None, INFO) is None


@pytest.mark.parametrize(
    ("available", "message"),
    [
        (np.ones((3, 5), bool), r"available must have shape \(B, A\)=\(3, 4\), got \(3, 5\)"),
        (RAGGED & (np.arange(4) < 2), r"available must have an action that can be played, got none at index \(2,\)"),
        (np.full((3, 4), "x"), "available must be an array of whole numbers, got dtype"),
    ],
)
def test_bad_masks(available, message):
    with pytest.raises(InputError, match=message):
        find_available(available, INFO)


def test_predictions_of_live_actions_are_those_among_all():
    rng = np.random.default_rng(0)
    posterior = LinearPosterior(LinearPrior.isotropic(5, 1.0), INFO)
    for _ in range(9):
        posterior.update(rng.normal(size=(3, 5)), rng.integers(4, size=3), rng.normal(size=3))
    live, x = find_available(RAGGED, INFO), rng.normal(size=(3, 5))
    for features, some in (
        (x, x),
        (each := rng.normal(size=(3, 4, 5)), np.take_along_axis(each, live.actions[..., None], 1)),
    ):
        for whole, part in zip(posterior.predict(features), posterior.predict(some, live), strict=True):
            assert np.array_equal(np.take_along_axis(whole, live.actions, 1), part)


RANDOMISED = [
    "random",
    "linucb(ties=random)",
    "lints(votes=4)",
    "neural-linear-ts(votes=4)",
    "epsilon-greedy(epsilon=0.5)",
    "softmax",
    "squarecb(gamma=5)",
    "bayes-ucb",
    "ids(m=4, samples=3)",
    "ts-gen(m=4, samples=2, votes=3)",
    "gen-ucb(m=4, samples=2, votes=3)",
]


@pytest.mark.parametrize("spec", [*RANDOMISED, "gen-kg(size=8)"])
def test_tasks_with_different_numbers_of_actions_play_side_by_side(spec):
    agent = gents_gym.make_agent(spec)
    tasks = gents_gym.make_tasks("synthetic", n_actions=4, horizon=20).sample(0, range(3))
    agent.reset(TaskInfo(tasks.action_features, 4, 5, 20), [np.random.default_rng(i) for i in range(3)])
    rng, slots = np.random.default_rng(0), np.arange(3)
    for t in range(20):
        available = rng.random((3, 4)) < 0.6
        available[slots, rng.integers(4, size=3)] = True
        chances = available / available.sum(axis=1, keepdims=True)
        if spec in RANDOMISED and t % 4 == 0:
            chances = agent.probabilities(tasks.contexts[:, t], available)
        action = agent.act(tasks.contexts[:, t], available)
        assert np.allclose(chances.sum(axis=1), 1)
        assert not chances[~available].any()
        assert (chances[slots, action] > 0).all()
        agent.observe(tasks.contexts[:, t], action, tasks.outcomes[slots, t, action])


def test_probabilities_among_some_are_those_of_the_formula():
    tasks = gents_gym.make_tasks("synthetic", n_actions=4, horizon=9).sample(0, range(3))
    info, context = TaskInfo(tasks.action_features, 4, 5, 9), tasks.contexts[:, 0]
    agents = {spec: gents_gym.make_agent(spec) for spec in ("greedy", "softmax(temperature=0.3)", "squarecb(gamma=5)")}
    for agent in agents.values():
        agent.reset(info, [np.random.default_rng(i) for i in range(3)])
    found = {spec: agent.probabilities(context, RAGGED) for spec, agent in agents.items()}
    predicted = agents["greedy"].scores(context)
    for i in range(3):
        there = np.flatnonzero(RAGGED[i])
        scores = predicted[i, there]
        weights = np.exp(scores / 0.3)
        assert np.allclose(found["softmax(temperature=0.3)"][i, there], weights / weights.sum())
        gaps = 1 / (len(there) + 5 * (scores.max() - scores))
        gaps[scores.argmax()] = 1 + gaps[scores.argmax()] - gaps.sum()
        assert np.allclose(found["squarecb(gamma=5)"][i, there], gaps)
        assert found["greedy"][i, there[scores.argmax()]] == 1


def test_all_available_actions_are_played_by_chance():
    """Random among three of six: each a third of the time, and nothing else."""
    envs = gym.make_vec(ID, num_envs=30, n_actions=6, horizon=30, turnover={"live": 3})
    actions, there = gents_gym.rollout(envs, "random").actions, envs.tasks.available[:, 0]
    shares = np.array([np.bincount(row, minlength=6) for row in actions]) / 30
    assert np.allclose(shares[there].reshape(30, 3).mean(axis=0), 1 / 3, atol=0.06)
    assert not shares[~there].any()
