"""The compiled map of contexts against the model's own, and TS-Gen on models that learned one."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.ts_gen import TSGen
from gents_gym.bench.plain import PlainTSGen
from gents_gym.models.context_kernel import ContextRows, map_contexts
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.paper import PaperConfig, PaperModel
from gents_gym.randomness import stream
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic

T, A = 20, 3


def learned(kind):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"context_features": 4, "context_width": 12}
        model = FilterModel(FilterConfig(2, 5, **sizes)) if kind == "filter" else PaperModel(PaperConfig(2, 5, **sizes))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.bank = torch.randn(50, 5)
    return model.eval()


class Plain:
    """The same model behind the protocol's three methods, which takes the general path."""

    def __init__(self, model):
        self.bank, self.model = model.bank.numpy(), model

    def start(self, action_features):
        return self.model.start(torch.tensor(action_features))

    def predict(self, state, context):
        return self.model.predict(state, torch.tensor(context))

    def append(self, state, context, outcome, where=None):
        return self.model.append(state, *(torch.tensor(part) for part in (context, outcome, where)))


def envs(num_envs=8):
    sizes = {"horizon": T, "n_actions": A, "autoreset_mode": "Disabled"}
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=num_envs, **sizes)


kinds = pytest.mark.parametrize("kind", ["filter", "paper"])


@kinds
def test_the_compiled_map_is_the_models_and_rows_stand_alone(kind):
    model, contexts = learned(kind), np.random.default_rng(0).normal(size=(3, 7, 5)).astype(np.float32)
    model.context_scaling = torch.tensor([[0.5] * 5, [2.0] * 5])
    found = map_contexts(model, contexts)
    with torch.no_grad():
        assert np.allclose(found, model.rows(torch.tensor(contexts)).numpy(), atol=1e-5)
    assert found.std() > 0.1
    assert np.array_equal(found[1, 2], map_contexts(model, contexts[1, 2:3])[0])


@kinds
@pytest.mark.parametrize("options", [{}, {"m": 6, "samples": 2}], ids=["whole tables", "truncated"])
def test_mapped_rows_play_as_the_general_path_does(kind, options):
    """Fed the same random numbers; a float tie may turn a drawn outcome, and the game after it."""
    model = learned(kind)
    fast, general = (
        rollout(envs(), TSGen(model=each, policy="logistic", **options)).actions for each in (model, Plain(model))
    )
    assert (fast == general).all(axis=1).sum() >= 7
    assert len(np.unique(fast)) > 1


def test_a_paper_model_with_learned_features_plays_as_the_plain_algorithm():
    found, model = rollout(envs(), TSGen(model=learned("paper"), policy="logistic")).actions, learned("paper")
    tasks, plain = Synthetic(n_actions=A, horizon=T).sample(0, range(8)), np.zeros_like(found)
    for i in range(8):
        agent, rng = PlainTSGen(model, tasks.action_features[i], T), stream(0, "agent", i)
        for t in range(T):
            plain[i, t] = agent.act(tasks.contexts[i, t], rng)
            agent.observe(tasks.contexts[i, t], plain[i, t], float(tasks.outcomes[i, t, plain[i, t]]))
    assert (found == plain).all(axis=1).sum() >= 7


@kinds
def test_an_unknown_horizon_plays_as_a_known_one(kind):
    """Where the end is not known, the mapped rows grow with all others."""
    tasks, played = Synthetic(n_actions=A, horizon=T).sample(0, range(2)), {}
    for horizon in (T, None):
        agent = TSGen(model=learned(kind), m=3)
        agent.reset(TaskInfo(tasks.action_features, A, 5, horizon), [stream(0, "agent", i) for i in range(2)])
        played[horizon] = []
        for t in range(T):
            played[horizon].append(actions := agent.act(tasks.contexts[:, t]))
            agent.observe(tasks.contexts[:, t], actions, tasks.outcomes[np.arange(2), t, actions])
    assert np.array_equal(played[T], played[None])


def test_the_bits_do_not_depend_on_the_batch():
    model = learned("filter")
    together = rollout(envs(9), TSGen(model=model)).actions
    alone = rollout(envs(1), TSGen(model=model), indices=[5]).actions
    assert np.array_equal(together[5:6], alone)


def test_contexts_are_mapped_once(monkeypatch):
    """The bank at reset, then a task's one new context per decision; never a whole table."""
    seen, call = [], ContextRows.__call__
    monkeypatch.setattr(ContextRows, "__call__", lambda self, x: seen.append(x.shape) or call(self, x))
    rollout(envs(2), TSGen(model=learned("filter")))
    first = seen.index((2, 5))
    assert sorted(set(seen[:first])) == [(1, 5), (50, 5)]  # what is asked for sizes alone, and the bank
    assert seen.count((50, 5)) == 1
    assert seen[first:] == [(2, 5)] * T
    assert FilterModel(FilterConfig(2, 5)).context_features(np.zeros((1, 5), np.float32)) is None


@pytest.mark.parametrize("agent", ["greedy", "ts-gen", "ts-gen(policy=mlp, m=4)", "gen-ucb", "neural-linear-ts"])
def test_agents_play_headlines_with_a_model_of_their_space_alone(agent):
    news = gym.make_vec("gents_gym/News-v0", num_envs=2, horizon=5, autoreset_mode="Disabled")
    with pytest.raises(InputError, match="model must be trained on tasks with 64 action features"):
        rollout(news, make_agent(agent, model="synthetic-filter"))
    model = FilterModel(FilterConfig(64, 5, context_features=3, context_width=8))
    model.bank = torch.zeros(20, 5)
    model.space = News().headlines.space
    assert rollout(news, make_agent(agent, model=model)).actions.shape == (2, 5)
    tasks = News(horizon=5).sample(0, range(2))
    features = tasks.action_features.copy()
    features[0, 3, 7] = np.nan
    with pytest.raises(InputError, match=r"action_features must be finite, got nan at index \(0, 3, 7\)"):
        make_agent(agent, model=model).reset(TaskInfo(features, 10, 5, 5), [stream(0, "agent", i) for i in range(2)])
    model.space = "another"
    with pytest.raises(InputError, match="action_features must come from the space 'another' for this model"):
        rollout(news, make_agent(agent, model=model))
