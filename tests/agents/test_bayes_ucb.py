import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.bayes_ucb import BayesUCB, quantiles
from gents_gym.tasks.synthetic import Synthetic

OPTIONS = {"n_actions": 4, "horizon": 25}


def make(**options):
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=3, autoreset_mode="Disabled", **OPTIONS, **options)


def test_quantiles_are_those_of_the_distributions_with_these_moments():
    rng = np.random.default_rng(0)
    a, b, level = rng.uniform(0.3, 30, (50, 1)), rng.uniform(0.3, 30, (50, 1)), 0.9
    law = stats.beta(a, b, loc=-2, scale=5)
    rewards = np.array([3.0, -2.0, 1.0])
    np.testing.assert_allclose(quantiles(law.mean(), law.var(), level, rewards), law.ppf(level), rtol=1e-9)
    normal = stats.norm(a, b)
    np.testing.assert_allclose(quantiles(normal.mean(), normal.var(), level, None), normal.ppf(level))


def test_extreme_moments_have_quantiles():
    mean = np.array([0.0, 1.0, 0.5, 0.5])
    found = quantiles(mean, np.array([0.0, 0.0, 0.0, 0.25]), 0.9, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, [0, 1, 0.5, 1], atol=1e-3)
    assert quantiles(mean, mean, 0.9, np.array([2.0, 2.0])) is mean  # only one reward: nothing to be unsure of


def test_the_level_rises_with_the_decisions_left():
    """By hand: 1 - 1 / (2 + κ·n), n decisions after the current one."""
    tasks = Synthetic(**OPTIONS, outcomes="gaussian").sample(0, range(3))
    info = TaskInfo(tasks.action_features, 4, 5, 25, likelihood=tasks.likelihood, truth=tasks.truth)
    agent = BayesUCB(model="exact", kappa=0.5)
    agent.reset(info, [np.random.default_rng(i) for i in range(3)])
    for t in range(25):
        context = tasks.contexts[:, t]
        belief = agent._held.belief
        level = 1 - 1 / (2 + 0.5 * (24 - t))
        expected = stats.norm(belief.expected(context), np.sqrt(belief.variance(context))).ppf(level)
        np.testing.assert_allclose(agent.scores(context), expected, rtol=1e-6)
        action = agent.act(context)
        agent.observe(context, action, tasks.outcomes[np.arange(3), t, action])


def test_a_discount_takes_the_place_of_the_horizon():
    info = TaskInfo(np.zeros((1, 4, 2), np.float32), 4, 5, None)
    agent = BayesUCB(kappa=0.5, discount=0.9)
    agent.reset(info, [np.random.default_rng(0)])
    assert agent._level() == pytest.approx(1 - 1 / (2 + 0.5 * 9))
    with pytest.raises(InputError, match="discount or quantile must be given if the horizon is not known"):
        BayesUCB().reset(info, [np.random.default_rng(0)])


def test_the_median_plays_nearly_as_greedy():
    greedy, median = (rollout(make(), agent).actions for agent in ("greedy", "bayes-ucb(kappa=0)"))
    assert (greedy == median).mean() > 0.8


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
def test_it_plays_other_outcomes(outcomes):
    record = rollout(make(outcomes=outcomes), "bayes-ucb")
    assert (
        record.cumulative("best")[:, -1].mean()
        < rollout(make(outcomes=outcomes), "random").cumulative("best")[:, -1].mean()
    )


def test_a_model_without_a_variance_is_refused():
    with pytest.raises(InputError, match=r"model must give variances of its means.*'synthetic-paper'"):
        rollout(
            gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, autoreset_mode="Disabled"),
            "bayes-ucb(model=synthetic-paper)",
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kappa": -1}, "kappa must be at least 0, got -1"),
        ({"quantile": 1.0}, "quantile must be below 1, got 1.0"),
        ({"discount": 0}, "discount must be above 0, got 0"),
        ({"ties": "last"}, "ties"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_agent("bayes-ucb", **options)
