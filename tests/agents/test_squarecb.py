import numpy as np
import pytest

import gents_gym
from gents_gym.agents.squarecb import inverse_gap_weights
from gents_gym.randomness import stream
from gents_gym.tasks.synthetic import Synthetic


def test_weights_by_hand():
    found = inverse_gap_weights(np.array([[0.5, 0.7, 0.6], [0.2, 0.2, 0.2]]), gamma=10)
    np.testing.assert_allclose(found[0], [1 / 5, 1 - 1 / 5 - 1 / 4, 1 / 4])
    np.testing.assert_allclose(found[1], 1 / 3)
    np.testing.assert_allclose(inverse_gap_weights(np.array([[0.1, 0.9]]), gamma=0), 0.5)


@pytest.mark.parametrize(("growth", "factor"), [(0.0, 1), (0.5, 2), (1.0, 4)])
def test_gamma_grows_with_the_number_of_the_decision(growth, factor):
    tasks = Synthetic(horizon=10, n_actions=4).sample(0, range(5))
    agent = gents_gym.make_agent("squarecb", gamma=20, growth=growth)
    agent.reset(gents_gym.TaskInfo(tasks.action_features, 4, 5, 10), [stream(0, "agent", i) for i in range(5)])
    for t in range(3):
        action = agent.act(tasks.contexts[:, t])
        agent.observe(tasks.contexts[:, t], action, tasks.outcomes[np.arange(5), t, action])
    context = tasks.contexts[:, 3]  # of the fourth decision
    expected = inverse_gap_weights(agent._greedy.scores(context), 20 * factor)
    np.testing.assert_allclose(agent.probabilities(context), expected)


def test_a_high_gamma_is_greedy():
    tasks = Synthetic(horizon=10, n_actions=4).sample(0, range(5))
    agents = [gents_gym.make_agent("squarecb", gamma=1e12), gents_gym.make_agent("greedy")]
    info = gents_gym.TaskInfo(tasks.action_features, 4, 5, 10)
    for agent in agents:
        agent.reset(info, [stream(0, "agent", i) for i in range(5)])
    assert np.array_equal(*(agent.act(tasks.contexts[:, 0]) for agent in agents))


def test_options():
    with pytest.raises(gents_gym.InputError, match="gamma must be at least 0, got -1"):
        gents_gym.make_agent("squarecb", gamma=-1)
    with pytest.raises(gents_gym.InputError, match=r"growth must be at least 0, got -0\.5"):
        gents_gym.make_agent("squarecb", growth=-0.5)
