import numpy as np
import pytest

import gents_gym
from gents_gym.agents.ids import least_ratio, regret_and_information


def ratio(mixture, regret, information):
    return (mixture @ regret) ** 2 / (mixture @ information)


def test_the_mixture_is_the_least_of_a_grid_over_all_distributions():
    rng = np.random.default_rng(0)
    parts = np.stack(np.meshgrid(*[np.arange(41)] * 3), axis=-1).reshape(-1, 3)
    grid = parts[parts.sum(axis=1) <= 40] / 40
    grid = np.concatenate([grid, 1 - grid.sum(axis=1, keepdims=True)], axis=1)  # distributions of 4 actions
    regret, information = rng.exponential(size=(60, 4)), rng.exponential(size=(60, 4)) ** 3
    regret[:20, 0] /= 20  # nearly optimal
    information[20:30] = information[20:30, :1]  # equal for all actions
    regret[30:40] = regret[30:40, :1]
    found = least_ratio(regret, information)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert ((found > 0).sum(axis=1) <= 2).all()
    for mixture, delta, gain in zip(found, regret, information, strict=True):
        assert ratio(mixture, delta, gain) <= ratio(grid, delta, gain).min() * (1 + 1e-9)
        fine = np.linspace(0, 1, 2001)[:, None]  # of the pair that was found, or of one of it
        pair = np.argsort(-mixture, kind="stable")[:2]
        mixed = fine * np.eye(4)[pair[0]] + (1 - fine) * np.eye(4)[pair[1]]
        np.testing.assert_allclose(ratio(mixture, delta, gain), ratio(mixed, delta, gain).min(), rtol=1e-4)
    assert ((found > 1e-6).sum(axis=1) == 2).sum() > 5  # inner minima are among them


def test_regret_and_information_by_the_definition():
    scores = np.random.default_rng(1).normal(size=(3, 50, 4))
    regret, information = regret_and_information(scores)
    for task in range(3):
        mu = scores[task]
        best = mu.argmax(axis=1)
        for a in range(4):
            v = sum((best == j).mean() * (mu[best == j, a].mean() - mu[:, a].mean()) ** 2 for j in {*best})
            assert regret[task, a] == pytest.approx(mu.max(axis=1).mean() - mu[:, a].mean())
            assert information[task, a] == pytest.approx(v)


def test_the_best_is_played_if_all_tables_agree():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(40, 7, 5))
    scores[:, :, 3] += 20
    found = least_ratio(*regret_and_information(scores))
    assert found.tolist() == np.eye(5)[np.full(40, 3)].tolist()
    equal = least_ratio(*regret_and_information(np.zeros((1, 7, 5))))
    assert equal.tolist() == [[1, 0, 0, 0, 0]]


def test_an_informative_action_is_played_although_it_is_never_the_best():
    """Action 2 tells which of the others is best."""
    scores = np.zeros((1, 100, 3))
    scores[0, :50, 0] = scores[0, 50:, 1] = 1
    scores[0, :50, 2], scores[0, 50:, 2] = 0.5, -3
    found = least_ratio(*regret_and_information(scores))[0]
    assert found[2] > 0.05


def test_options():
    with pytest.raises(gents_gym.InputError, match="samples must be at least 2, got 1"):
        gents_gym.make_agent("ids", samples=1)
    with pytest.raises(gents_gym.InputError, match="m must be at least 1, got 0"):
        gents_gym.make_agent("ids", m=0)
