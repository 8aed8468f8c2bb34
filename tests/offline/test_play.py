import numpy as np
import pytest

from gents_gym import Logs
from gents_gym.agents.linucb import LinUCB
from gents_gym.offline.play import join, play, split_streams, watch
from gents_gym.offline.study import Linear, draw_actions

RNG = np.random.default_rng(0)
N, A = 4000, 3
CONTEXTS = RNG.normal(size=(N, 2)).astype(np.float32)
TABLE = (RNG.random((N, A)) < 1 / (1 + np.exp(-CONTEXTS @ RNG.normal(size=(2, A))))).astype(np.float32)
LOGGED = Linear(RNG.normal(size=(2, A)), 1.0, 0.3)
PROPENSITIES = LOGGED.probabilities(CONTEXTS)
ACTIONS = draw_actions(PROPENSITIES, RNG.random(N))
EACH = np.arange(N)
LOGS = Logs(ACTIONS, CONTEXTS, TABLE[EACH, ACTIONS], np.eye(A), propensities=PROPENSITIES[EACH, ACTIONS])


class Recorder:
    """Plays a constant action, and keeps what it was shown."""

    def __init__(self, action=1):
        self.action = action

    def reset(self, info, rngs):
        self.seen = []

    def act(self, context):
        return np.array([self.action])

    def observe(self, context, action, outcome):
        self.seen.append((context[0], action[0], outcome[0]))


def played(agent, logs=LOGS, **options):
    (stream,) = split_streams(logs)
    agent.reset(stream.info, [np.random.default_rng(1)])
    return play(agent, stream, np.random.default_rng(2), None, **options)


def test_rows_are_accepted_alike_whatever_the_context():
    """Every row is accepted with the least propensity: contexts of accepted rows look like all contexts."""
    agent = Recorder()
    found = played(agent)
    least = LOGS.propensities.min()
    assert found.accepted.sum() == pytest.approx(N * least, abs=4 * np.sqrt(N * least))
    assert (ACTIONS[found.accepted] == 1).all()
    accepted = CONTEXTS[found.accepted]
    assert np.abs(accepted.mean(axis=0) - CONTEXTS.mean(axis=0)).max() < 4 / np.sqrt(len(accepted))
    assert np.abs(CONTEXTS[ACTIONS == 1].mean(axis=0)).max() > 6 / np.sqrt(len(accepted))  # matching alone would not
    assert found.target.tolist() == (ACTIONS == 1).tolist()
    assert found.plays.tolist() == [0, N, 0]


def test_the_agent_learns_from_accepted_rows_alone_and_not_at_all_if_it_is_fixed():
    agent = Recorder()
    found = played(agent)
    assert len(agent.seen) == found.accepted.sum()
    contexts, actions, outcomes = (np.array(part) for part in zip(*agent.seen, strict=True))
    assert np.array_equal(contexts, CONTEXTS[found.accepted])
    assert np.array_equal(outcomes, TABLE[found.accepted, 1])
    assert set(actions) == {1}
    played(agent, learning=False)
    assert agent.seen == []


def test_uniform_logs_accept_every_match():
    logs = Logs(ACTIONS, CONTEXTS, LOGS.outcomes, np.eye(A), propensities=np.full(N, 1 / A))
    assert np.array_equal(played(Recorder(), logs).accepted, ACTIONS == 1)


def test_tasks_with_other_propensities_are_accepted_as_often():
    logs = Logs(ACTIONS, CONTEXTS, LOGS.outcomes, np.eye(A), propensities=np.full(N, 1 / A))
    (stream,) = split_streams(logs)
    agent = Recorder()
    agent.reset(stream.info, [np.random.default_rng(1)])
    found = play(agent, stream, np.random.default_rng(2), None, least=0.1)
    assert found.accepted.sum() == pytest.approx(0.1 * N, abs=4 * np.sqrt(0.1 * N))


def test_probabilities_are_asked_for_where_there_are_some():
    policy = Linear(RNG.normal(size=(2, A)), 1.0)
    found = played(policy)
    assert np.allclose(found.target, policy.probabilities(CONTEXTS)[EACH, ACTIONS])
    assert np.allclose(found.plays, policy.probabilities(CONTEXTS).sum(axis=0))


def test_predictions_are_averaged_over_what_is_played():
    (stream,) = split_streams(LOGS)
    policy, predicted = Linear(RNG.normal(size=(2, A)), 1.0), RNG.random((N, A))
    policy.reset(stream.info, [np.random.default_rng(1)])
    found = play(policy, stream, np.random.default_rng(2), predicted)
    assert np.allclose(found.direct, (policy.probabilities(CONTEXTS) * predicted).sum(axis=1))


def test_watching_teaches_the_logged_actions():
    """LinUCB that watched has the posterior of one that observed the rows itself."""
    stream = split_streams(LOGS)[0].choose(np.arange(30))
    agents = [LinUCB(), LinUCB()]
    for agent in agents:
        agent.reset(stream.info, [np.random.default_rng(0)])
    watch(agents[0], stream)
    for k in range(30):
        agents[1].observe(CONTEXTS[k : k + 1], ACTIONS[k : k + 1], LOGS.outcomes[k : k + 1])
    later = CONTEXTS[30:40]
    assert [agents[0].act(x[None])[0] for x in later] == [agents[1].act(x[None])[0] for x in later]


def test_tasks_are_played_on_their_own_and_joined_in_the_order_of_rows():
    logs = Logs([2, 0, 3, 1], np.arange(4.0)[:, None], np.array([0, 1, 1, 0]), np.eye(4), tasks=np.array([1, 0, 1, 0]))
    streams = split_streams(logs)
    assert [stream.actions.tolist() for stream in streams] == [[0, 1], [0, 1]]
    assert [stream.action_features.argmax(axis=1).tolist() for stream in streams] == [[0, 1], [2, 3]]
    parts = []
    for stream in streams:
        agent = Recorder(0)
        agent.reset(stream.info, [np.random.default_rng(0)])
        parts.append(play(agent, stream, np.random.default_rng(0), None))
    found = join(parts, 4, [stream.own for stream in streams])
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.accepted.tolist() == [True, True, False, False]
    assert found.plays.tolist() == [2, 0, 2, 0]
