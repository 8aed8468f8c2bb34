"""What every registered agent keeps: a new one is tested by being registered."""

from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import registry
from gents_gym.models.distilled import ActionNetwork, DistilledConfig, save_network
from gents_gym.testing import check_agent
from gents_gym.types import Fittable

ID, T = "gents_gym/Synthetic-v0", 40
# Few votes and few tables, for time.
QUICK = {name: f"{name}(votes=4)" for name in ("ts-gen", "gen-ucb", "exact-twin")} | {"ids": "ids(samples=4, m=8)"}
VARIANTS = [
    *(QUICK.get(name, name) for name in registry.AGENTS),
    "linucb(intercept=True)",
    "linucb(discount=0.9)",
    "lints(window=10)",
    "lints(intercept=True)",
    "lints(prior=fitted)",
    "lints(prior=fitted, intercept=True)",
    "neural-linear-ts(prior=fitted)",
    "ts-gen(policy=mlp, votes=2)",
    "ts-gen(policy=mlp, m=8, votes=2)",
    "ts-gen(samples=3, m=8, votes=3)",
    "ts-gen(model=synthetic-paper, votes=3)",
    "sb3(deterministic=False)",
]
# Agents on library matrix products, which may round differently for another number of rows: so many of the tasks
# compared may part from their twins. For all other agents none may.
MAY_PART = {
    "neural-linear-ts": 1,
    "neural-linear-ts(prior=fitted)": 1,
    "ts-gen(model=synthetic-paper, votes=3)": 1,
    "sb3": 1,
    "sb3(deterministic=False)": 1,
}
OTHERS = ("per-task", "callable", "online", "mabwiser", "vw", "sb3", "distilled")  # what is made of more than options
LIBRARIES = {"sb3": "stable_baselines3", "mabwiser": "mabwiser", "vw": "vowpalwabbit"}


class FirstAction:
    def act(self, observation):
        return int(observation["context"].sum() > 0)


NEEDED = {"per-task": {"agent": FirstAction}, "callable": {"function": FirstAction().act}}


@pytest.fixture(scope="module", autouse=True)
def saved_model(tmp_path_factory):
    """A network without training, and a tiny model of stable-baselines3 if that is installed."""
    NEEDED["distilled"] = {"path": str(save_untrained(tmp_path_factory.mktemp("distilled")))}
    if find_spec("stable_baselines3") is not None:
        from stable_baselines3 import PPO

        path = tmp_path_factory.mktemp("sb3") / "model.zip"
        PPO("MultiInputPolicy", gym.make(ID, horizon=T, n_actions=4), n_steps=64, batch_size=64, seed=0).learn(64).save(
            path
        )
        NEEDED["sb3"] = {"path": str(path)}


def save_untrained(folder):
    network = ActionNetwork(DistilledConfig("greedy", "synthetic-filter", width=4, context_dim=5))
    network.start(torch.Generator().manual_seed(0), torch.eye(10).reshape(10, 1, 10))
    save_network(network, folder)
    return folder


def make(spec):
    name, _, _ = spec.partition("(")
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    agent = gents_gym.make_agent(spec, **NEEDED.get(name, {}))
    if isinstance(agent, Fittable):
        agent.fit(gents_gym.make_tasks("synthetic").sample_actions(0, range(50), 100))
    return agent


@pytest.mark.parametrize("spec", VARIANTS)
def test_every_agent_keeps_the_contract(spec):
    agent = (lambda: make(spec)) if spec.partition("(")[0] in OTHERS else spec
    assert check_agent(agent, steps=10, may_part=MAY_PART.get(spec, 0)) is None


# Fitted to, trained or tuned for the default sizes.
SIZED = ("auto", "bayes", "fitted", "greedy", "softmax", "squarecb", "ids", "gen", "neural", "sb3", "distilled")


@pytest.mark.parametrize("spec", [spec for spec in VARIANTS if not any(part in spec for part in SIZED)])
def test_other_sizes_are_played_too(spec):
    envs = gym.make_vec(ID, num_envs=2, horizon=T, n_actions=3, context_dim=8)
    record = gents_gym.rollout(envs, make(spec))
    assert record.actions.shape == (2, T)
    assert record.actions.max() < 3


@pytest.mark.parametrize("spec", [spec for spec in VARIANTS if "lin" in spec or spec == "mabwiser"])
@pytest.mark.parametrize(
    ("context", "message"),
    [
        (np.zeros((2, 4)), r"context must have shape \(B, D\)=\(2, 5\), got \(2, 4\)"),
        (np.zeros(5), r"context must have shape \(B, D\)=\(2, 5\), got \(5,\)"),
        (np.full((2, 5), np.nan), r"context must be finite, got nan at index \(0, 0\)"),
    ],
)
def test_bad_contexts(spec, context, message):
    agent = make(spec)
    agent.reset(gents_gym.TaskInfo(np.zeros((2, 3, 2)), 3, 5), [np.random.default_rng(i) for i in range(2)])
    with pytest.raises(gents_gym.InputError, match=message):
        agent.act(context)
    with pytest.raises(gents_gym.InputError, match=message):
        agent.observe(context, np.zeros(2, int), np.zeros(2))


@pytest.mark.parametrize("spec", ["linucb", "lints", "neural-linear-ts"])
@pytest.mark.parametrize(
    ("action", "outcome", "message"),
    [
        ([0, 3], [0, 0], r"action must lie in \[0, 3\), got 3"),
        ([0], [0, 0], r"action must have shape \(B,\)=\(2,\), got \(1,\)"),
        ([0, 1], [0], r"outcome must have shape \(B,\)=\(2,\), got \(1,\)"),
        ([0, 1], [0, np.nan], r"outcome must be finite, got nan at index \(1,\)"),
    ],
)
def test_bad_observations(spec, action, outcome, message):
    agent = make(spec)
    agent.reset(gents_gym.TaskInfo(np.zeros((2, 3, 2)), 3, 5), [np.random.default_rng(i) for i in range(2)])
    with pytest.raises(gents_gym.InputError, match=message):
        agent.observe(np.zeros((2, 5)), np.array(action), np.array(outcome))
