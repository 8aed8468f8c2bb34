import gymnasium as gym
import numpy as np
import pytest
import torch

from gents_gym import InputError, TaskInfo, load_model, make_agent, rollout
from gents_gym.agents.greedy import EpsilonGreedy, Greedy, Softmax
from gents_gym.tasks.synthetic import Synthetic

TASKS = Synthetic(n_actions=4, horizon=25).sample(0, range(3))


def make(num_envs=3):
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=num_envs, horizon=25, n_actions=4, autoreset_mode="Disabled")


def test_greedy_plays_the_models_best_prediction():
    """One task and action at a time, each history fed to a fresh model from its start."""
    found, model = rollout(make(), "greedy").actions, load_model("synthetic-filter")
    for i in range(3):
        seen = [[] for _ in range(4)]
        for t in range(25):
            chances = []
            for a in range(4):
                with torch.no_grad():
                    state = model.start(torch.tensor(TASKS.action_features[i, a][None]))
                    for s in seen[a]:
                        x, y = (torch.tensor(part[i, s][None]) for part in (TASKS.contexts, TASKS.outcomes[..., a]))
                        state = model.append(state, x, y)
                    chances.append(model.predict(state, torch.tensor(TASKS.contexts[i, t][None])).item())
            assert found[i, t] == np.argmax(chances)
            seen[found[i, t]].append(t)


def first_actions(agent, n=6000):
    info = TaskInfo(np.repeat(TASKS.action_features[:1], n, 0), 4, 5, 25)
    agent.reset(info, [np.random.default_rng(i) for i in range(n)])
    return np.bincount(agent.act(np.repeat(TASKS.contexts[:1, 0], n, 0)), minlength=4) / n


def predictions():
    agent = Greedy()
    agent.reset(TaskInfo(TASKS.action_features[:1], 4, 5, 25), [np.random.default_rng(0)])
    return agent.scores(TASKS.contexts[:1, 0])[0]


def close(found, expected, n=6000):
    return (np.abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / n) + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_epsilon_greedy_explores_as_often_as_it_says(epsilon):
    expected = np.full(4, epsilon / 4)
    expected[predictions().argmax()] += 1 - epsilon
    assert close(first_actions(EpsilonGreedy(epsilon=epsilon)), expected)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_softmax_plays_its_probabilities(temperature):
    weights = np.exp((predictions() - predictions().max()) / temperature)
    assert close(first_actions(Softmax(temperature=temperature)), weights / weights.sum())


def test_predictions_are_of_rewards():
    agent = Greedy()
    agent.reset(TaskInfo(TASKS.action_features[:1], 4, 5, 25, lambda y: 0.9 - 0.5 * y), [np.random.default_rng(0)])
    assert np.allclose(agent.scores(TASKS.contexts[:1, 0])[0], 0.9 - 0.5 * predictions())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("epsilon-greedy(epsilon=1.1)", r"epsilon must be at most 1, got 1\.1"),
        ("epsilon-greedy(epsilon=-1)", "epsilon must be at least 0, got -1"),
        ("softmax(temperature=0)", "temperature must be above 0, got 0"),
    ],
)
def test_bad_options(spec, message):
    with pytest.raises(InputError, match=message):
        make_agent(spec)


def test_outcomes_that_the_model_cannot_have():
    agent = Greedy()
    agent.reset(TaskInfo(TASKS.action_features, 4, 5, 25), [np.random.default_rng(0)] * 3)
    with pytest.raises(InputError, match=r"outcome must be 0 or 1, got 0\.5"):
        agent.observe(TASKS.contexts[:, 0], np.zeros(3, int), np.full(3, 0.5))
