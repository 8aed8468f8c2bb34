"""What does not fit is refused in one line before anything is played, in a rollout and on the command line."""

import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.on_model import BeliefHolder
from gents_gym.types import Selective

OWN_MODELS = """
import numpy as np
import gents_gym

class Beta:
    def start(self, action_features):
        return np.ones((len(action_features), 2))

    def predict(self, state, context):
        return state[:, 0] / state.sum(axis=1)

    def append(self, state, context, outcome, where=None):
        counts = np.stack([outcome, 1 - outcome], axis=1)
        return state + (counts if where is None else counts * where[:, None])

class Normal(Beta):
    likelihood = gents_gym.Gaussian()

    def predict(self, state, context):
        return np.ones((len(state), 2))

class Column(Beta):
    def predict(self, state, context):
        return np.ones((len(state), 1)) / 2

class Percent(Beta):
    def predict(self, state, context):
        return np.full(len(state), 50)

class OneRow(Beta):
    def start(self, action_features):
        return np.ones((1, 2))

class Shrinks(Beta):
    def append(self, state, context, outcome, where=None):
        return super().append(state, context, outcome, where)[1:]

class Loses(Beta):
    def start(self, action_features):
        return {"a": np.ones((len(action_features), 2)), "b": np.ones((len(action_features), 2))}

    def predict(self, state, context):
        return np.full(len(context), 0.5)

    def append(self, state, context, outcome, where=None):
        return {"a": state["a"]}

class Fails(Beta):
    def append(self, state, context, outcome):
        return state

class SmallBank(Beta):
    bank = np.zeros((4, 3))

class Believes:
    likelihood = gents_gym.Bernoulli()

    def begin(self, info, rngs):
        return self.belief(info)

    def belief(self, info):
        return None

    def context_features(self, contexts):
        return None

    def action_context_features(self, action_features, contexts):
        return None

class Flat(Believes):
    def belief(self, info):
        return self

    def expected(self, contexts):
        return np.zeros(len(contexts))

    def _verb(self, *given, **options):
        return None

    variance = decide = observe = complete = fork = add = state = restore = _verb

class Half:
    def start(self, action_features):
        return action_features
"""
BINARY, GAUSSIAN = "gents_gym/Synthetic-v0", "gents_gym/Synthetic-v0(outcomes=gaussian)"
CASES = [
    (BINARY, "ts-gen(model=mine:Normal)", "model must be of bernoulli outcomes for these tasks, got gaussian ones"),
    (GAUSSIAN, "greedy(model=mine:Beta)", "model must be of gaussian outcomes for these tasks, got bernoulli ones"),
    (
        GAUSSIAN,
        "softmax(model=synthetic-filter)",
        "outcomes; synthetic-filter has 2 and 5, bernoulli outcomes",
    ),
    (
        GAUSSIAN,
        "ts-gen(model=mine:Normal, policy=logistic)",
        "policy must be a policy class for gaussian outcomes, such as least-squares, got 'logistic'",
    ),
    (
        BINARY,
        "ts-gen(model=mine:Beta, contexts=bank)",
        "contexts must be 'seen' or 'given' for a model without a bank, got 'bank'",
    ),
    (
        BINARY,
        "gen-ucb(model=synthetic-filter, contexts=given)",
        "contexts must be 'bank' or 'seen' for tasks without known contexts, got 'given'",
    ),
    (BINARY, "ts-gen(model=exact, contexts=bank)", "unknown context model of p*: 'bank'; known: given, own, seen"),
    (
        BINARY,
        "ts-gen(model=mine:Beta, policy=features)",
        "must read contexts for a model without context features",
    ),
    (BINARY, "greedy(model=mine:Column)", "the model's predict must return shape (10,) for N=10, got (10, 1)"),
    (
        BINARY,
        "epsilon-greedy(model=mine:Percent)",
        "what the model's predict returns must be probabilities in [0, 1], got 50",
    ),
    (BINARY, "ts-gen(model=mine:OneRow)", "start must return an array with a row for each of 10 actions, or several"),
    (BINARY, "ts-gen(model=mine:Shrinks)", "append must return an array with a row for each of 10 actions"),
    (
        BINARY,
        "ts-gen(model=mine:Loses)",
        "support append for 10 actions with contexts of 5 entries, got KeyError: 'b'",
    ),
    (
        BINARY,
        "ts-gen(model=mine:Fails)",
        "support append for 10 actions with contexts of 5 entries, got TypeError",
    ),
    (BINARY, "ts-gen(model=mine:SmallBank)", "the model's bank must have shape (n, D), got (4, 3)"),
    (BINARY, "greedy(model=mine:Believes)", "the model's begin must return a belief with expected, variance, "),
    (BINARY, "greedy(model=mine:Flat)", "what the model expects must have shape (B, A)=(1, 10), got (1,)"),
    (
        BINARY,
        "greedy(model=mine:Half)",
        "must be a class with begin or start, predict, append, got <class 'mine.Half'>",
    ),
    (BINARY, "neural-linear-ts(model=mine:Beta)", "model must have action_context_features for neural-linear-ts, got"),
    (BINARY, "neural-linear-ts(model=mine:Column)", "the model's predict must return shape (10,) for N=10"),
]


@pytest.fixture(autouse=True)
def own_models(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN_MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


class Counted(gym.vector.VectorWrapper):
    """Counts the steps that are played."""

    steps = 0

    def step(self, actions):
        self.steps += 1
        return super().step(actions)


@pytest.mark.parametrize(("env", "agent", "message"), CASES, ids=[agent for _, agent, _ in CASES])
def test_a_rollout_refuses_before_the_first_step(env, agent, message):
    outcomes = "gaussian" if env == GAUSSIAN else "bernoulli"
    envs = Counted(gym.make_vec(BINARY, num_envs=1, horizon=4, outcomes=outcomes))
    with pytest.raises(InputError) as refused:
        rollout(envs, agent)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert envs.steps == 0


@pytest.mark.parametrize(("env", "agent", "message"), CASES, ids=[agent for _, agent, _ in CASES])
def test_the_command_line_refuses_before_anything_is_played(env, agent, message, tmp_path, run_command, capsys):
    assert run_command("evaluate", "--env", env, "--agents", "linucb", agent, "--tasks", 2, "--out", "results") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"gents-gym: agent {agent!r} cannot play {env!r}: ")
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_an_unknown_context_model_is_refused_when_the_agent_is_made():
    with pytest.raises(InputError, match="unknown context model 'sen'; did you mean 'seen'"):
        make_agent("ts-gen(contexts=sen)")


def test_an_outcome_that_the_likelihood_does_not_allow_changes_nothing():
    info, rngs = TaskInfo(np.zeros((2, 3, 2), np.float32), 3, 5, 4), [np.random.default_rng(i) for i in range(2)]
    held, context = BeliefHolder("filter", info, rngs), np.ones((2, 5), np.float32)
    before = held.expected(context)
    for outcome, message in (
        ([0, 2], "outcome must be 0 or 1, got 2"),
        ([0, np.nan], "outcome must be finite, got nan"),
    ):
        with pytest.raises(InputError, match=message):
            held.observe(context, np.array([0, 1]), np.array(outcome))
    assert np.array_equal(held.expected(context), before)
    held.observe(context, np.array([0, 1]), np.array([0, 1]))  # the row that is open now is the first one
    assert held.belief.state()["outcomes"].tolist() == [[0], [1]]
    assert not np.array_equal(held.expected(context), before)


def test_agents_on_a_model_say_what_they_can_play():
    names = ("ts-gen", "gen-ucb", "greedy", "epsilon-greedy", "softmax", "neural-linear-ts")
    info = TaskInfo(np.zeros((2, 3, 2), np.float32), 3, 5, 4)
    for name in names:
        agent = make_agent(name)
        assert isinstance(agent, Selective)
        assert agent.check(info) is None
    assert not isinstance(make_agent("linucb"), Selective)
    assert not isinstance(gents_gym.make_agent("random"), Selective)
