"""The knowledge-gradient agent: its formula against plain sums, its ends, and what it refuses."""

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_agent, make_tasks, rollout
from gents_gym.agents.gen_kg import GenKG, worth
from gents_gym.types import Outlook

COUNTS = np.array([1, 4, 16])


def make(n_tasks=3, horizon=20, **options):
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=n_tasks, horizon=horizon, n_actions=4, **options)


def random_outlook(seed=0):
    rng = np.random.default_rng(seed)
    return Outlook(np.sort(rng.random((3, 4, 3)), axis=2), rng.random((3, 4)))


def test_worth_is_the_sum_of_the_formula():
    """Task by task, decision by decision; sums in fine steps, as the agent's integral."""
    outlook, left, fine = random_outlook(), 40, 200
    found = worth(outlook, COUNTS, left)
    for b in range(3):
        for a in range(4):
            gains, rate, each = outlook.gains[b, a], outlook.shares[b, a], []
            for k in COUNTS:
                s = (np.arange((left - k) * fine) + 0.5) / fine
                curve = [np.interp(n, [0, *COUNTS], [0, *gains]) for n in (k + rate * s, rate * s)]
                each.append((curve[0] - curve[1]).sum() / fine / k)
            assert found[b, a] == pytest.approx(max(each), rel=1e-5)


def test_without_free_observations_it_is_the_knowledge_gradient():
    gains, left = random_outlook().gains, 30
    found = worth(Outlook(gains, np.zeros((3, 4))), COUNTS, left)
    wanted = ((left - COUNTS) * gains / COUNTS).max(axis=2)
    assert found == pytest.approx(wanted, rel=0.05)  # no share is below a thousandth
    assert (worth(Outlook(gains, np.ones((3, 4))), COUNTS, left) < found).all()


@pytest.mark.parametrize("spec", ["gen-kg(c=0)", "gen-kg(c=0, model=synthetic-paper)"])
def test_without_weight_it_is_greedy(spec):
    greedy = spec.replace("gen-kg(c=0", "greedy(").replace("(, ", "(").replace("()", "")
    assert np.array_equal(rollout(make(), spec).actions, rollout(make(), greedy).actions)


def test_the_last_decision_is_greedy_and_the_first_explores():
    """Two actions, one nearly known and a little better: the other is worth a try if enough decisions are left."""

    class Beta:
        def start(self, action_features):
            return np.where(action_features[:, :1] > 0, [[51.0, 49.0]], [[1.0, 1.0]])

        def predict(self, state, context):
            return state[:, 0] / state.sum(axis=1)

        def append(self, state, context, outcome, where=None):
            counts = np.stack([outcome, 1 - outcome], axis=1)
            return state + (counts if where is None else counts * where[:, None])

    agent, features = GenKG(model=Beta(), size=4), np.array([[[1.0], [-1.0]]])
    for horizon, action in ((1, 0), (200, 1)):
        agent.reset(TaskInfo(features, 2, 1, horizon), [np.random.default_rng(0)])
        assert agent.act(np.zeros((1, 1))).tolist() == [action]
    for discount, action in ((0.01, 0), (0.99, 1)):
        patient = GenKG(model=Beta(), size=4, discount=discount)
        for horizon in (None, 200):
            patient.reset(TaskInfo(features, 2, 1, horizon), [np.random.default_rng(0)])
            assert patient.act(np.zeros((1, 1))).tolist() == [action]


def test_scores_are_predictions_plus_weighted_worth():
    tasks = make_tasks("synthetic", horizon=20, n_actions=4).sample(0, range(3))
    info, scores = TaskInfo(tasks.action_features, 4, 5, 20), []
    for c in (0, 1, 2.5):
        agent = GenKG(c=c)
        agent.reset(info, [np.random.default_rng(i) for i in range(3)])
        scores.append(agent.scores(tasks.contexts[:, 0]))
    assert (scores[1] > scores[0]).any()
    assert scores[2] - scores[0] == pytest.approx(2.5 * (scores[1] - scores[0]))


@pytest.mark.parametrize(
    "spec", ["gen-kg(contexts=bank)", "gen-kg(contexts=seen, size=8)", "gen-kg(model=exact, contexts=None, size=4)"]
)
def test_context_models(spec):
    record = rollout(make(2, 6), spec)
    assert record.actions.shape == (2, 6)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gen-kg(c=-1)", "c must be at least 0, got -1"),
        ("gen-kg(size=0)", "size must be at least 1, got 0"),
        ("gen-kg(discount=0)", "discount must be above 0, got 0"),
        ("gen-kg(discount=1)", "discount must be below 1, got 1"),
        ("gen-kg(contexts=sen)", "unknown context model 'sen'; did you mean 'seen'"),
        ("gen-kg(ties=last)", "unknown ties 'last'"),
    ],
)
def test_bad_options(spec, message):
    with pytest.raises(InputError, match=message):
        make_agent(spec)


def test_too_many_imagined_contexts_are_refused():
    agent = GenKG(size=10**12)
    with pytest.raises(InputError, match="size"):
        agent.reset(TaskInfo(np.zeros((1, 4, 2)), 4, 5, 9), [np.random.default_rng(0)])


def test_an_unknown_horizon_needs_a_discount():
    info, rngs = TaskInfo(np.zeros((2, 4, 2)), 4, 5), [np.random.default_rng(i) for i in range(2)]
    for verb in (lambda agent: agent.reset(info, rngs), lambda agent: agent.check(info)):
        with pytest.raises(InputError, match="discount must be given if the horizon is not known, got None"):
            verb(GenKG())
        verb(GenKG(discount=0.9))
        verb(GenKG(c=0))
