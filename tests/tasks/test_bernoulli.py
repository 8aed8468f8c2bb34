"""The Bernoulli bandit: its prior, and the exact posterior against quadrature."""

import numpy as np
import pytest
from scipy.special import expit, logit

from gents_gym import InputError
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.bernoulli import Bernoulli, bernoulli_prior
from gents_gym.types import Feedback, TaskInfo


def test_an_actions_chance_is_constant_and_logistic_normal_given_its_features():
    tasks = Bernoulli(n_actions=40, horizon=3).sample(0, range(100))
    assert (tasks.contexts == 1).all()
    assert tasks.contexts.shape == (100, 3, 1)
    assert np.array_equal(tasks.means[:, 0], tasks.means[:, 2])
    z = tasks.action_features.reshape(-1, 2).astype(float)
    mean, variance = z.sum(axis=1), 1 + 0.25**2 * (z**2).sum(axis=1)  # as U_const + U_Z·Z has them
    told = bernoulli_prior(z)
    assert np.allclose(told[0].sum(axis=1), mean)
    assert np.allclose(told[1].sum(axis=1), variance)
    standard = (logit(tasks.means[:, 0].reshape(-1).astype(float)) - mean) / np.sqrt(variance)
    assert abs(standard.mean()) < 4 / np.sqrt(len(standard))
    assert abs(standard.var() - 1) < 4 * np.sqrt(2 / len(standard))


def test_the_exact_posterior_is_that_of_the_chance():
    """Chances of three actions after some outcomes, by a fine grid over W."""
    tasks = Bernoulli(n_actions=3, horizon=30).sample(5, [0])
    info = TaskInfo(tasks.action_features, 3, 1, 30, truth=tasks.known_truth)
    belief = ExactModel(info.truth, n_weighted=20_000).begin(info, [np.random.default_rng(0)])
    played, context = np.array([0, 0, 1, 0, 1, 0]), np.ones((1, 1), np.float32)
    for t, action in enumerate(played):
        belief.decide(context, np.array([action]))
        belief.observe(Feedback(np.array([0]), np.array([t]), tasks.outcomes[0, t, [action]]))
    grid, z = np.linspace(-12, 12, 4001), tasks.action_features[0].astype(float)
    expected = []
    for action in range(3):
        spread = 1 + 0.25**2 * (z[action] ** 2).sum()
        density = np.exp(-0.5 * (grid - z[action].sum()) ** 2 / spread)
        for t in np.flatnonzero(played == action):
            density *= expit(grid) if tasks.outcomes[0, t, action] else 1 - expit(grid)
        expected.append((density * expit(grid)).sum() / density.sum())
    assert belief.expected(context)[0] == pytest.approx(expected, abs=0.005)
    imagined = belief.complete(context, draws=2)
    assert (imagined.contexts == 1).all()


def test_single_actions_have_rows_of_one_chance():
    rows = Bernoulli().sample_actions(0, range(300), 50)
    assert rows.contexts.shape == (300, 50, 1)
    rates = rows.outcomes.mean(axis=1)
    assert np.corrcoef(rates, rows.action_features.sum(axis=1))[0, 1] > 0.6


def test_bad_options_are_refused():
    with pytest.raises(InputError, match="n_actions must be at least 2, got 1"):
        Bernoulli(n_actions=1)
