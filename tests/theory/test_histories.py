"""What is followed is what agents play, and tables are drawn from the law they should come from."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import gents_gym
from gents_gym import InputError
from gents_gym.evaluation.environments import make_envs
from gents_gym.tasks.logistic import paper_prior
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.theory import histories

SETTING = Synthetic(n_actions=3, horizon=12, context_dim=2)
SPEC = "gents_gym/Synthetic-v0(n_actions=3, horizon=12, context_dim=2)"
TASKS = SETTING.sample(0, range(3))


@pytest.fixture(scope="module")
def followed():
    return histories.follow(SETTING.sample(0, [0]), steps=(1, 12), draws=1500)


def played(env, agent):
    return gents_gym.rollout(make_envs(env, 3), gents_gym.make_agent(agent), oracle="logistic").regret["oracle"]


def test_the_history_is_the_agents_own():
    expected = played(SPEC, "ts-gen(model=exact, policy=logistic)")
    assert np.array_equal(histories.follow(TASKS).regret, expected)
    assert np.array_equal(histories.play(TASKS), expected)
    assert np.array_equal(histories.follow(TASKS, steps=(2, 9), draws=5).regret, expected)  # watching changes nothing


def test_other_models_are_played_and_the_twin_knows_hidden_features():
    tasks = Synthetic(n_actions=3, horizon=12).sample(0, range(3))
    env = "gents_gym/Synthetic-v0(n_actions=3, horizon=12)"
    expected = played(env, "ts-gen(model=filter, policy=logistic)")
    assert np.array_equal(histories.play(tasks, "filter"), expected)
    news = make_envs("gents_gym/News-v0(horizon=12)", 3)
    news.reset(seed=0)
    expected = gents_gym.rollout(news, gents_gym.make_agent("exact-twin"), oracle="logistic").regret["oracle"]
    assert np.array_equal(histories.play(news.unwrapped.tasks), expected)


def slow_labels(n):
    """Return what policies play in the first task's contexts, fitted to tables drawn from the prior by hand, (n, T)."""
    rng = np.random.default_rng(5)
    mean, variance = paper_prior(TASKS.action_features[0], 2)
    beta = mean + np.sqrt(variance) * rng.normal(size=(n, 3, 3))  # (n, A, K)
    rows = np.concatenate([np.ones((12, 1)), TASKS.contexts[0]], axis=1)
    table = rng.random((n, 12, 3)) < expit(rows @ beta.swapaxes(1, 2))
    x = np.repeat(TASKS.contexts[:1], n, axis=0)
    return gents_gym.make_policy("logistic").fit(x, table.astype(np.float32)).scores(x).argmax(axis=2)


def test_labels_are_drawn_given_the_contexts(monkeypatch):
    monkeypatch.setattr(histories, "CELLS", 50_000)  # several parts
    found = histories.prior_labels(SETTING.sample(0, [0]), 3000)[0]
    expected = slow_labels(3000)
    assert found.shape == (3000, 12)
    for action in range(3):
        p, q = (found == action).mean(axis=0), (expected == action).mean(axis=0)
        assert (np.abs(p - q) < 4.5 * np.sqrt((q * (1 - q) + 0.001) * 2 / 3000)).all()


def test_plays_and_outcomes_are_draws_given_the_history(followed):
    assert followed.plays["exact"].shape == (2, 1, 3000)
    assert followed.outcomes.shape == (2, 1, 3000, 3)
    assert followed.oracle.shape == (2, 1)
    mean, variance = paper_prior(TASKS.action_features[0], 2)
    rows = np.concatenate([[1], TASKS.contexts[0, 0]])
    beta = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(20_000, 3, 3))
    expected = expit(beta @ rows).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / 3000)
    assert (np.abs(followed.outcomes[0, 0].mean(axis=0) - expected) < 4.5 * error).all()


def test_random_play_is_measured_by_the_table():
    best = gents_gym.make_policy("logistic").fit(TASKS.contexts, TASKS.outcomes).scores(TASKS.contexts).argmax(axis=2)
    earned = [TASKS.outcomes[b, t, best[b, t]] - TASKS.outcomes[b, t].mean() for b in range(3) for t in range(12)]
    assert histories.random_regret(TASKS) == pytest.approx(np.mean(earned), abs=1e-6)


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        (replace(TASKS, truth=None), {}, "env must publish its truth"),
        (Synthetic(horizon=5, outcomes="gaussian").sample(0, [0]), {}, "env must have outcomes 0 and 1.* got gaussian"),
        (TASKS, {"steps": (13,)}, "steps must be at most the horizon 12, got 13"),
        (TASKS, {"steps": (0,)}, "steps must be at least 1, got 0"),
        (TASKS, {"steps": (1,), "draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_bad_input(tasks, options, message):
    with pytest.raises(InputError, match=message):
        histories.follow(tasks, **options)
