"""Tests agents on outcomes that are not binary: which agents play them, and what is refused before play."""

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, load_model, make_agent, make_tasks, rollout
from gents_gym.agents.neural_linear import NeuralLinearTS
from gents_gym.evaluation.grid import weights_hash
from gents_gym.models.load import bundled_family, resolve_model
from gents_gym.types import Fittable

KINDS = ["gaussian", "categorical"]
AGENTS = [
    "ts-gen",
    "ts-gen(m=8, samples=3)",
    "gen-ucb(m=8)",
    "greedy",
    "epsilon-greedy",
    "softmax",
    "linucb",
    "lints",
    "lints(prior=fitted)",
    "neural-linear-ts",
    "neural-linear-ts(prior=fitted)",
]
T, A = 40, 4


def make(kind, num_envs=100):
    sizes = {"horizon": T, "n_actions": A, "autoreset_mode": "Disabled"}
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=num_envs, outcomes=kind, **sizes)


def play(spec, kind, **options):
    agent = make_agent(spec)
    if isinstance(agent, Fittable):
        agent.fit(make_tasks("synthetic", outcomes=kind).sample_actions(0, range(100), 50))
    return rollout(make(kind, **options), agent, seed=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", AGENTS)
def test_all_play_and_do_better_than_chance(spec, kind):
    regret = play(spec, kind).regret["best"].sum(axis=1)
    chance = rollout(make(kind), "random", seed=3).regret["best"].sum(axis=1)
    gain = chance - regret
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["ts-gen", "greedy", "gen-ucb(m=8)", "gen-kg(size=8)"])
def test_a_task_is_played_the_same_in_any_batch(spec, kind):
    whole = play(spec, kind, num_envs=9).actions
    assert np.array_equal(play(spec, kind, num_envs=4).actions, whole[:4])


@pytest.mark.parametrize("kind", KINDS)
def test_a_preset_is_its_model_of_the_tasks_outcomes(kind):
    info = TaskInfo(np.zeros((1, A, 2), np.float32), A, 5, likelihood=make_tasks("synthetic", outcomes=kind).likelihood)
    found = resolve_model("filter", info)
    assert found.likelihood == info.likelihood
    assert found.config == load_model(f"synthetic-filter-{kind}").config
    assert f"synthetic-filter-{kind}" in bundled_family("filter")
    with pytest.raises(InputError, match=f"and {kind}.* outcomes; synthetic-paper has 2 and 5, bernoulli outcomes"):
        resolve_model("paper", info)


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        (
            "ts-gen(model=synthetic-filter)",
            "gaussian",
            "gaussian outcomes; synthetic-filter has 2 and 5, bernoulli outcomes",
        ),
        (
            "greedy(model=synthetic-filter-gaussian)",
            "bernoulli",
            "bernoulli outcomes; synthetic-filter-gaussian has 2 and 5",
        ),
        ("greedy(model=paper)", "categorical", r"categorical\(3\) outcomes; synthetic-paper has 2 and 5, bernoulli"),
        ("neural-linear-ts(model=paper)", "gaussian", "gaussian outcomes; synthetic-paper has 2 and 5, bernoulli"),
        (
            "ts-gen(policy=logistic)",
            "gaussian",
            "policy must be a policy class for gaussian outcomes, such as least-squares",
        ),
        ("gen-ucb(policy=mlp)", "categorical", r"policy must be a policy class for categorical\(3\) outcomes"),
    ],
)
def test_what_does_not_fit_is_refused(spec, kind, message):
    with pytest.raises(InputError, match=message):
        rollout(make(kind, 2), make_agent(spec))


def test_outcomes_that_the_likelihood_does_not_allow():
    for kind, outcome, message in (
        ("gaussian", np.nan, "outcome must be finite, got nan"),
        ("categorical", 3, "outcome must be a whole number from 0 to 2, got 3"),
    ):
        likelihood = make_tasks("synthetic", outcomes=kind).likelihood
        agent = make_agent("greedy")
        agent.reset(
            TaskInfo(np.zeros((1, A, 2), np.float32), A, 5, T, likelihood=likelihood), [np.random.default_rng(0)]
        )
        context = np.zeros((1, 5), np.float32)
        with pytest.raises(InputError, match=message):
            agent.observe(context, agent.act(context), np.array([outcome]))


def test_the_default_model_of_neural_linear_ts_follows_the_outcomes():
    for kind, size in (("bernoulli", 100), ("gaussian", 7), ("categorical", 8)):
        tasks = make_tasks("synthetic", n_actions=2, horizon=3, outcomes=kind).sample(0, [0])
        agent = NeuralLinearTS()
        info = TaskInfo(tasks.action_features, 2, 5, likelihood=tasks.likelihood)
        agent.reset(info, [np.random.default_rng(0)])
        assert agent._features(tasks.action_features, tasks.contexts[:, :1]).shape == (1, 2, size)
    assert weights_hash(NeuralLinearTS()) is not None
    assert weights_hash(NeuralLinearTS("filter")) == weights_hash(make_agent("greedy"))
