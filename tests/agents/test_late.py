"""Agents that learn late: what arrives is learned as if it were in time, and what is missing is imputed."""

import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym import Feedback, InputError, TaskInfo
from gents_gym.agents.greedy import Greedy
from gents_gym.agents.late import LastAct, OpenDecisions
from gents_gym.agents.neural_linear import NeuralLinearTS
from gents_gym.agents.ts_gen import TSGen
from gents_gym.tasks.synthetic import Synthetic

ID = "gents_gym/Synthetic-v0"
B, A, T = 3, 4, 12
TASKS = Synthetic(n_actions=A, horizon=T).sample(0, range(B))


def start(spec):
    agent = gents_gym.make_agent(spec)
    agent.reset(TaskInfo(TASKS.action_features, A, 5, T, late=True), [np.random.default_rng(i) for i in range(B)])
    return agent


def nothing():
    return Feedback(np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def cells(task, decision, actions):
    task, decision = np.array(task), np.array(decision)
    return Feedback(task, decision, TASKS.outcomes[task, decision, np.stack(actions, 1)[task, decision]].astype(float))


@pytest.mark.parametrize("spec", ["linucb", "lints(intercept=True)", "neural-linear-ts", "greedy", "ts-gen(m=4)"])
def test_what_arrives_late_is_believed_as_if_it_were_in_time(spec):
    """All outcomes of six decisions, out of order and in two parcels: the same predictions as one by one."""
    late, timely = start(spec), start(spec)
    actions = []
    for t in range(6):
        actions.append(late.act(TASKS.contexts[:, t]))
        parcel = nothing()
        if t == 3:
            parcel = cells([2, 0, 2, 1, 2], [3, 1, 0, 2, 1], actions)
        if t == 5:
            left = [(i, d) for d in range(5, -1, -1) for i in range(B) if (i, d) not in ARRIVED]
            parcel = cells(*zip(*left, strict=True), actions)
        late.observe_late(parcel)
    for t, action in enumerate(actions):
        timely.act(TASKS.contexts[:, t])
        timely.observe(TASKS.contexts[:, t], action, TASKS.outcomes[np.arange(B), t, action].astype(float))
    tolerance = 1e-6 if "lin" in spec else 5e-3  # the filter's approximation depends on the order a little
    assert np.allclose(predict(late), predict(timely), atol=tolerance)
    assert not np.allclose(predict(late), predict(start(spec)), atol=5e-2)


ARRIVED = {(2, 3), (0, 1), (2, 0), (1, 2), (2, 1)}


def predict(agent):
    """What an agent expects in the next context, whatever it is made of."""
    context = TASKS.contexts[:, 6]
    if isinstance(agent, TSGen | Greedy):
        return agent._held.expected(context)
    if isinstance(agent, NeuralLinearTS):
        return agent._posterior.predict(agent._features(TASKS.action_features, context[:, None]))[0]
    return agent._posterior.predict(agent._features(context))[0]


def test_ts_gen_imputes_what_is_pending():
    """A pending cell is drawn like any other missing one; what arrived stays as it is."""
    agent = start("ts-gen(samples=60)")
    actions = []
    for t in range(3):
        actions.append(agent.act(TASKS.contexts[:, t]))
        agent.observe_late(cells([0, 1, 2], [1, 1, 1], actions) if t == 2 else nothing())
    table = agent.complete_tables(TASKS.contexts[:, 3]).outcomes  # (B, M, T, A)
    for i in range(B):
        known = table[i, :, 1, actions[1][i]]
        assert (known == TASKS.outcomes[i, 1, actions[1][i]]).all()
    spread = [table[i, :, t, actions[t][i]].mean() for i in range(B) for t in (0, 2)]
    assert 0.02 < np.mean(spread) < 0.98
    assert any(0 < share < 1 for share in spread)


@pytest.mark.parametrize("spec", ["linucb", "greedy"])
def test_bad_feedback(spec):
    agent = start(spec)
    with pytest.raises(InputError, match="observe_late must follow act, once for each decision"):
        agent.observe_late(nothing())
    actions = [agent.act(TASKS.contexts[:, 0])]
    agent.observe_late(cells([0], [0], actions))
    with pytest.raises(InputError, match="observe_late must follow act"):
        agent.observe_late(nothing())
    actions.append(agent.act(TASKS.contexts[:, 1]))
    with pytest.raises(InputError, match="an outcome must arrive once for each decision, got one a second time"):
        agent.observe_late(cells([0], [0], actions))
    agent.act(TASKS.contexts[:, 2])
    with pytest.raises(InputError, match="decision must be one of the 3 made so far, from 0 on, got 3 to 3"):
        agent.observe_late(Feedback(np.array([0]), np.array([3]), np.array([1.0])))


def test_what_was_kept_belongs_to_the_agent():
    acted, context, action = LastAct(), np.ones((B, 2)), np.arange(B)
    assert acted.keep(context, action) is action
    context[:], action[:] = 7, 7
    kept = acted.take()
    assert (kept[0] == 1).all()
    assert kept[1].tolist() == [0, 1, 2]


def test_parcels_name_a_task_once():
    opened = OpenDecisions(TaskInfo(TASKS.action_features, A, 5, T))
    for t in range(2):
        opened.acts(TASKS.contexts[:, t], np.full(B, t))
        assert list(opened.arrive(nothing())) == []
    opened.acts(TASKS.contexts[:, 2], np.full(B, 2))
    late = Feedback(np.array([1, 0, 1, 1]), np.array([2, 0, 0, 1]), np.array([5.0, 6.0, 7.0, 8.0]))
    parts = list(opened.arrive(late))
    assert [part[0].tolist() for part in parts] == [[1, 0], [1], [1]]
    assert [part[2].tolist() for part in parts] == [[2, 0], [0], [1]]
    assert [part[3].tolist() for part in parts] == [[5, 6], [7], [8]]
    assert np.array_equal(parts[0][1], TASKS.contexts[[1, 0], [2, 0]])


@pytest.mark.parametrize(
    "spec", ["random", "oracle", "mabwiser", "mabwiser(policy=ucb1)", "vw", "online", "exact-twin"]
)
def test_agents_play_where_outcomes_are_late_or_lost(spec):
    if spec.startswith(("mabwiser", "vw")):
        pytest.importorskip({"m": "mabwiser", "v": "vowpalwabbit"}[spec[0]])
    envs = gym.make_vec(ID, num_envs=2, n_actions=A, horizon=T, delay={"geometric": 0.3, "lost": 0.3})
    assert gents_gym.rollout(envs, spec).actions.shape == (2, T)
