"""The sampled posterior against a fine grid, a long random walk and other importance samples."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import kstest

from gents_gym.likelihoods import BERNOULLI, Categorical
from gents_gym.models.ledger import Ledger
from gents_gym.models.posterior import SampledPosterior, sampled_marginal
from gents_gym.types import Feedback, TaskInfo


def with_one(contexts):
    """The rows (1, X)."""
    return np.concatenate([np.ones_like(contexts[..., :1]), contexts], axis=-1)


def learned(contexts, actions, outcomes, mean, scale, n_categories=3, n_weighted=256, n_steps=32):
    """The posterior after actions (B, t) in contexts (B, t, D); the prior is (B, A, Q)."""
    n_tasks, n_rows, size = contexts.shape
    likelihood = Categorical(n_categories) if n_categories > 0 else BERNOULLI
    ledger = Ledger(TaskInfo(np.zeros((n_tasks, mean.shape[1], 1)), mean.shape[1], size), with_one)
    posterior = SampledPosterior.prior(likelihood, n_steps, n_weighted, ledger, mean, scale)
    for t in range(n_rows):
        ledger.decide(contexts[:, t], actions[:, t])
        ledger.arrive(Feedback(np.arange(n_tasks), np.full(n_tasks, t), outcomes[:, t]), likelihood)
        posterior.learn(np.arange(n_tasks), actions[:, t], ledger.rows[:, t], outcomes[:, t])
    return posterior


def generators(n):
    return [np.random.default_rng(i) for i in range(n)]


def log_density(beta, rows, y, mean, scale):
    """The log posterior of one action up to a constant, β (..., Q), slowly."""
    logits = np.einsum("nk,...ck->...nc", rows, beta.reshape(*beta.shape[:-1], -1, rows.shape[1]))
    logits = np.concatenate([np.zeros_like(logits[..., :1]), logits], axis=-1)
    fit = np.take_along_axis(logits, np.broadcast_to(y[:, None], (*logits.shape[:-1], 1)), axis=-1)[..., 0]
    prior = -0.5 * ((beta - mean) ** 2 / scale + np.log(2 * np.pi * scale)).sum(axis=-1)
    return (fit - logsumexp(logits, axis=-1)).sum(axis=-1) + prior


OUTCOMES = np.array([0, 2, 2, 1, 2, 2, 0, 2, 2])
MEAN, SCALE = np.array([0.4, 0.0, -0.8, 0.0]), np.array([1.5, 1e-8, 2.5, 1e-8])  # (intercept, slope) of each category


def grid():
    """A fine grid over two intercepts, (n, n, Q), and the joint log density with OUTCOMES there, (n, n)."""
    axis = np.linspace(-7, 8, 201)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    beta = np.stack([first, np.zeros_like(first), second, np.zeros_like(second)], axis=-1)
    return axis, beta, log_density(beta[..., ::2], np.ones((9, 1)), OUTCOMES, MEAN[::2], SCALE[::2])


def at_zero(n_tasks, **options):
    """n times the posterior of one action after OUTCOMES, in contexts of zeros: its slopes stay at their prior."""
    prior = (np.tile(part, (n_tasks, 1, 1)) for part in (MEAN, SCALE))
    history = np.zeros((n_tasks, 9, 1), np.float32), np.zeros((n_tasks, 9), int), np.tile(OUTCOMES, (n_tasks, 1))
    return learned(*history, *prior, **options)


def test_chains_end_in_the_distribution_of_a_fine_grid():
    axis, beta, log_joint = grid()
    weights = np.exp(log_joint - log_joint.max())
    draws = at_zero(2000).draw(1, generators(2000))[:, 0, 0]  # (n, Q)
    for entry, other in ((0, 1), (2, 0)):
        cdf = np.cumsum(weights.sum(axis=other))
        assert kstest(draws[:, entry], lambda b, c=cdf: np.interp(b, axis, c / c[-1])).pvalue > 1e-3
    means = (weights[..., None] * beta).sum(axis=(0, 1)) / weights.sum()
    away = (axis[:, None] - means[0]) * (axis - means[2]) * weights
    found = np.cov(draws[:, ::2], rowvar=False)[0, 1]
    assert found == pytest.approx(away.sum() / weights.sum(), abs=0.12)


def test_expectations_are_the_grids():
    """Of the reward 7, 0, 1 for 0, 1, 2."""
    _, beta, log_joint = grid()
    weights = np.exp(log_joint - logsumexp(log_joint))
    chances = softmax(np.stack([0 * beta[..., 0], beta[..., 0], beta[..., 2]], axis=-1), axis=-1)
    rewards = chances @ [7, 0, 1]
    mean = (weights * rewards).sum()
    posterior = at_zero(1, n_weighted=40_000)
    rows, reward_fn = with_one(np.zeros((1, 1, 1))), lambda y: np.where(y == 0, 7, y - 1)
    assert posterior.expected(rows, reward_fn, generators(1))[0, 0, 0] == pytest.approx(mean, abs=0.04)
    variance = (weights * (rewards - mean) ** 2).sum()
    assert posterior.variance(rows, reward_fn, generators(1))[0, 0, 0] == pytest.approx(variance, rel=0.06)


def test_log_marginal_is_the_grids_and_its_error_is_what_repetitions_show():
    axis, _, log_joint = grid()
    exact = logsumexp(log_joint) + 2 * np.log(axis[1] - axis[0])
    n = 2000
    prior = (np.tile(part, (n, 1, 1)) for part in (MEAN, SCALE))
    rows, outcomes = np.tile(with_one(np.zeros((1, 9, 1))), (n, 1, 1)), np.tile(OUTCOMES, (n, 1))
    found, error = sampled_marginal(*prior, rows, outcomes, 64, np.random.default_rng(0))
    bias = -0.5 * found.var()  # of the log of a mean
    assert found.mean() - bias == pytest.approx(exact, abs=4.5 * found.std() / np.sqrt(n))
    assert 0.02 < found.std() < 0.15
    assert np.sqrt((error**2).mean()) == pytest.approx(found.std(), rel=0.1)


def test_draws_are_those_of_a_long_random_walk():
    """Two categories besides the first, an intercept and two slopes: six coefficients."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=6), 0.3 + rng.random(6)
    contexts, y = rng.normal(size=(25, 2)).astype(np.float32), rng.integers(3, size=25)
    n = 1500
    history = np.tile(contexts, (n, 1, 1)), np.zeros((n, 25), int), np.tile(y, (n, 1))
    draws = learned(*history, *(np.tile(part, (n, 1, 1)) for part in (mean, scale))).draw(1, generators(n))[:, 0, 0]
    rows = with_one(contexts.astype(float))
    state, kept = np.tile(mean, (400, 1)), []  # 400 chains
    density = log_density(state, rows, y, mean, scale)
    for step in range(900):
        proposal = state + 0.3 * rng.normal(size=state.shape)
        new = log_density(proposal, rows, y, mean, scale)
        accepted = np.log(rng.random(400)) < new - density
        state, density = np.where(accepted[:, None], proposal, state), np.where(accepted, new, density)
        if step >= 300 and step % 75 == 0:
            kept.append(state)
    walk = np.concatenate(kept)
    error = np.sqrt(draws.var(axis=0) * (1 / n + 2 / len(walk)))
    assert (np.abs(draws.mean(axis=0) - walk.mean(axis=0)) < 4.5 * error).all()
    assert np.abs(np.cov(draws, rowvar=False) - np.cov(walk, rowvar=False)).max() < 0.08
    assert all(kstest(draws[:, k], walk[:, k]).pvalue > 1e-4 for k in range(6))


def test_two_categories_are_binary_outcomes():
    rng = np.random.default_rng(1)
    mean, scale = rng.normal(size=(4, 2, 3)), 0.3 + rng.random((4, 2, 3))
    history = (
        rng.normal(size=(4, 12, 2)).astype(np.float32),
        rng.integers(2, size=(4, 12)),
        rng.integers(2, size=(4, 12)),
    )
    both = [learned(*history, mean, scale, n_categories=n) for n in (2, 0)]
    two, binary = (one.draw(3, generators(4)) for one in both)
    assert np.allclose(two, binary, atol=1e-12)
    rows = with_one(rng.normal(size=(4, 5, 2)))
    two, binary = (one.expected(rows, np.square, generators(4)) for one in both)
    assert np.allclose(two, binary, atol=1e-12)


def test_only_actions_with_news_are_fitted_again():
    rng = np.random.default_rng(2)
    mean, scale = rng.normal(size=(3, 4, 4)), np.ones((3, 4, 4))
    contexts, y = rng.normal(size=(3, 8, 1)).astype(np.float32), rng.integers(3, size=(3, 8))
    actions = rng.integers(4, size=(3, 8))
    posterior = learned(contexts[:, :7], actions[:, :7], y[:, :7], mean, scale)
    first = posterior.draw(1, generators(3))
    assert not posterior.stale.any()
    again = posterior.draw(1, generators(3))
    assert np.array_equal(first, again)
    ledger, every = posterior.ledger, np.arange(3)
    ledger.decide(contexts[:, 7], actions[:, 7])
    ledger.arrive(Feedback(every, np.full(3, 7), y[:, 7]), Categorical(3))
    posterior.learn(every, actions[:, 7], ledger.rows[:, 7], y[:, 7])
    assert posterior.stale.sum() == 3
    fresh = learned(contexts, actions, y, mean, scale)
    assert np.array_equal(posterior.draw(1, generators(3)), fresh.draw(1, generators(3)))
    picked = posterior.pick(np.array([2, 0]), ledger.pick(np.array([2, 0])))
    theirs = fresh.draw(1, generators(3))[[2, 0]]
    assert np.allclose(picked.draw(1, [np.random.default_rng(2), np.random.default_rng(0)]), theirs, atol=1e-12)
