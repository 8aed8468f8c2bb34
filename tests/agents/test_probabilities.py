"""Tests the probabilities that agents report: formulas by hand, and votes against what is played."""

import numpy as np
import pytest

import gents_gym
from gents_gym.randomness import stream
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.testing import check_agent

TASKS = Synthetic(horizon=20, n_actions=4).sample(0, range(6))


def ready(spec, **options):
    """Return an agent that has played five decisions, and the next contexts."""
    agent = gents_gym.make_agent(spec, **options)
    agent = agent.for_tasks(TASKS) if hasattr(agent, "for_tasks") else agent
    info = gents_gym.TaskInfo(TASKS.action_features, 4, 5, TASKS.horizon, truth=TASKS.truth)
    agent.reset(info, [stream(0, "agent", i) for i in range(6)])
    for t in range(5):
        context = TASKS.contexts[:, t]
        action = agent.act(context)
        agent.observe(context, action, TASKS.outcomes[np.arange(6), t, action])
    return agent, TASKS.contexts[:, 5]


def test_formulas():
    greedy, context = ready("greedy")
    scores = greedy.scores(context)
    best = np.eye(4)[scores.argmax(axis=1)]
    assert greedy.probabilities(context).tolist() == best.tolist()
    agent, context = ready("epsilon-greedy", epsilon=0.2)
    best = np.eye(4)[agent._greedy.scores(context).argmax(axis=1)]
    np.testing.assert_allclose(agent.probabilities(context), 0.05 + 0.8 * best)
    agent, context = ready("softmax", temperature=0.1)
    weights = np.exp(agent._greedy.scores(context) / 0.1)
    np.testing.assert_allclose(agent.probabilities(context), weights / weights.sum(axis=1, keepdims=True))
    agent, context = ready("random")
    assert (agent.probabilities(context) == 0.25).all()


@pytest.mark.parametrize(
    "spec", ["oracle", "linucb", "greedy", "bayes-ucb(model=exact)", "gen-kg", "gen-kg(model=exact)"]
)
def test_what_is_certain_is_played(spec):
    agent, context = ready(spec)
    chances = agent.probabilities(context)
    assert chances.tolist() == np.eye(4)[agent.act(context)].tolist()


def test_ties_share():
    agent = gents_gym.make_agent("linucb", ties="random")
    agent.reset(gents_gym.TaskInfo(np.zeros((2, 4, 1)), 4, 3), [np.random.default_rng(i) for i in range(2)])
    assert (agent.probabilities(np.ones((2, 3))) == 0.25).all()
    assert gents_gym.make_agent("linucb").ties == "first"


@pytest.mark.parametrize("spec", ["ts-gen(votes=5)", "gen-ucb(votes=5, samples=2, m=4)", "lints(votes=5)"])
def test_the_played_action_is_among_the_votes(spec):
    agent, context = ready(spec)
    chances = agent.probabilities(context)
    np.testing.assert_allclose(chances * 5, np.round(chances * 5), atol=1e-9)
    assert (chances[np.arange(6), agent.act(context)] >= 0.2 - 1e-9).all()


def test_votes_agree_with_many_decisions_of_the_same_belief():
    agent, context = ready("ts-gen(votes=400, m=8)")
    chances = agent.probabilities(context)
    acted = np.mean([np.eye(4)[agent.act(context)] for _ in range(400)], axis=0)
    np.testing.assert_allclose(chances, acted, atol=4.5 * np.sqrt(0.25 * 2 / 400))


@pytest.mark.parametrize("spec", ["ts-gen", "gen-ucb", "lints", "neural-linear-ts", "exact-twin"])
def test_votes_must_be_several(spec):
    with pytest.raises(gents_gym.InputError, match="votes must be at least 2, got 1"):
        gents_gym.make_agent(spec, votes=1)


@pytest.mark.parametrize(
    "spec",
    [
        "epsilon-greedy(model=exact)",
        "gen-kg(contexts=seen, ties=random)",
        "ts-gen(ties=random, m=2, votes=3)",
        "linucb(ties=random)",
    ],
)
def test_asking_changes_nothing_where_streams_are_shared(spec):
    check_agent(spec, steps=8)
