"""The posterior of Gaussian outcomes against the normal equations, scipy's normals and closed forms of E[R]."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gents_gym.models.conjugate import ConjugatePosterior, conjugate_marginal

B, A, K, NOISE = 3, 4, 3, 0.7


def identity(y):
    return y


def prior(seed=0, shape=(B, A, K), noise=NOISE):
    rng = np.random.default_rng(seed)
    return ConjugatePosterior.prior(rng.normal(size=shape), 0.2 + 2 * rng.random(shape), noise)


def learned(n_rows, seed=0, noise=NOISE):
    """A posterior, with what it learned: actions (B, t), rows (B, t, K), outcomes (B, t)."""
    rng, posterior = np.random.default_rng(seed + 1), prior(seed, noise=noise)
    actions, rows = rng.integers(A - 1, size=(B, n_rows)), rng.normal(size=(B, n_rows, K))  # never the last action
    outcomes = rng.normal(size=(B, n_rows)) * 2
    for t in range(n_rows):
        posterior.learn(np.arange(B), actions[:, t], rows[:, t], outcomes[:, t])
    return posterior, actions, rows, outcomes


def direct(start, b, a, actions, rows, outcomes):
    """Mean and covariance of one action by the normal equations."""
    variance = np.diagonal(start.root[b, a]) ** 2
    x, y = rows[b][actions[b] == a], outcomes[b][actions[b] == a]
    covariance = np.linalg.inv(np.diag(1 / variance) + x.T @ x / start.noise)
    return covariance @ (start.mean[b, a] / variance + x.T @ y / start.noise), covariance


@pytest.mark.parametrize(("n_rows", "noise"), [(0, NOISE), (1, NOISE), (60, NOISE), (60, 1e-6), (60, 1e4), (3000, 1.0)])
def test_mean_and_covariance_are_the_normal_equations(n_rows, noise):
    posterior, *history = learned(n_rows, noise=noise)
    for b, a in np.ndindex(B, A):
        mean, covariance = direct(prior(noise=noise), b, a, *history)
        assert np.allclose(posterior.mean[b, a], mean, rtol=1e-6, atol=1e-8)
        root = posterior.root[b, a]
        assert np.allclose(root @ root.T, covariance, rtol=1e-6, atol=1e-6 * np.abs(covariance).max())


def test_the_order_of_outcomes_changes_nothing():
    posterior, actions, rows, outcomes = learned(40)
    other = prior()
    for t in np.random.default_rng(1).permutation(40):
        other.learn(np.arange(B), actions[:, t], rows[:, t], outcomes[:, t])
    assert np.allclose(other.mean, posterior.mean, rtol=1e-10)
    assert np.allclose(other.root, posterior.root, rtol=1e-9, atol=1e-12)
    assert np.array_equal(np.triu(posterior.root), posterior.root)


@pytest.mark.parametrize("n_rows", [1, 2, 40])
def test_log_marginal_is_the_normal_density_of_the_whole_sequence(n_rows):
    rng = np.random.default_rng(3)
    start, rows, outcomes = prior(2, (6, 1, K)), rng.normal(size=(6, n_rows, K)), rng.normal(size=(6, n_rows))
    found = conjugate_marginal(prior(2, (6, 1, K)), rows, outcomes)
    for i in range(6):
        covariance = rows[i] @ start.root[i, 0] @ start.root[i, 0].T @ rows[i].T + NOISE * np.eye(n_rows)
        slow = multivariate_normal(rows[i] @ start.mean[i, 0], covariance).logpdf(outcomes[i])
        assert found[i] == pytest.approx(slow, rel=1e-10)


def test_predictions_of_one_and_of_many_rows():
    posterior, *history = learned(30)
    rows = np.random.default_rng(5).normal(size=(B, 6, K))
    means, variances = posterior.expected(rows, identity, []), posterior.variance(rows, identity, [])
    for b, a in np.ndindex(B, A):
        mean, covariance = direct(prior(), b, a, *history)
        assert np.allclose(means[b, :, a], rows[b] @ mean)
        assert np.allclose(variances[b, :, a], np.einsum("ck,kl,cl->c", rows[b], covariance, rows[b]), rtol=1e-9)
    assert np.allclose(posterior.expected(rows[:, 2:3], identity, []), means[:, 2:3], rtol=1e-12)


@pytest.mark.parametrize(
    ("reward_fn", "closed_mean", "closed_variance"),
    [
        (lambda y: 5 - 3 * y, lambda m, v: 5 - 3 * m, lambda m, v: 9 * v),
        (lambda y: 1e6 + y, lambda m, v: 1e6 + m, lambda m, v: v),
        (np.square, lambda m, v: m**2 + v + NOISE, lambda m, v: 4 * m**2 * v + 2 * v**2),
        (
            lambda y: np.exp(y / 2),
            lambda m, v: np.exp(m / 2 + (v + NOISE) / 8),
            lambda m, v: np.exp(m + (v + NOISE) / 4) * np.expm1(v / 4),
        ),
    ],
)
def test_rewards_other_than_the_outcome(reward_fn, closed_mean, closed_variance):
    posterior, *_ = learned(8)
    rows = np.random.default_rng(6).normal(size=(B, 2, K)) / 2
    mean, variance = posterior.predict(rows)
    assert np.allclose(posterior.expected(rows, reward_fn, []), closed_mean(mean, variance), rtol=1e-8)
    assert np.allclose(posterior.variance(rows, reward_fn, []), closed_variance(mean, variance), rtol=1e-6)


def test_a_step_as_reward():
    """P(Y > 0), and the variance over β of P(Y > 0 | β): that of two outcomes of the same β both above 0."""
    posterior, *_ = learned(8)
    rows = np.random.default_rng(7).normal(size=(B, 1, K))
    mean, variance = posterior.predict(rows)
    found = posterior.expected(rows, lambda y: (y > 0) * 1.0, []), posterior.variance(rows, lambda y: (y > 0) * 1.0, [])
    for at in np.ndindex(mean.shape):
        m, v = mean[at], variance[at]
        chance = norm.cdf(m / np.sqrt(v + NOISE))
        both = multivariate_normal([m, m], [[v + NOISE, v], [v, v + NOISE]]).cdf([0, 0])  # both at most 0
        assert found[0][at] == pytest.approx(chance, abs=0.02)
        assert found[1][at] == pytest.approx(both - (1 - chance) ** 2, abs=0.02)


def test_draws_have_the_posteriors_moments_and_a_tasks_own_numbers():
    posterior, *_ = learned(5)
    rngs = [np.random.default_rng(i) for i in range(B)]
    draws = posterior.draw(4000, rngs)  # (B, M, A, K)
    assert draws.shape == (B, 4000, A, K)
    for b, a in np.ndindex(B, A):
        standard = np.linalg.solve(posterior.root[b, a], (draws[b, :, a] - posterior.mean[b, a]).T)
        assert np.abs(standard.mean(axis=1)).max() < 4.5 / np.sqrt(4000)
        assert np.abs(np.cov(standard) - np.eye(K)).max() < 4.5 * np.sqrt(2 / 4000)
    alone = posterior.pick(np.array([2]), None).draw(4000, [np.random.default_rng(2)])
    assert np.allclose(alone[0], draws[2])


def test_parameters_are_means_and_the_noise():
    rows, coefficients = np.random.default_rng(0).normal(size=(2, 3, 5, K)), np.ones((2, 3, A, K))
    found = prior().parameters(rows, coefficients)
    assert found.shape == (2, 3, 5, A, 2)
    assert np.allclose(found[..., 0], rows.sum(axis=-1)[..., None])
    assert (found[..., 1] == NOISE).all()


def test_copies_and_additions_share_nothing():
    posterior, *_ = learned(5)
    kept = posterior.mean.copy(), posterior.root.copy()
    copied, new = posterior.pick(np.array([1, 1, 0]), None), prior(9, (B, 2, K))
    joined = posterior.join(new)
    for other in (copied, joined):
        other.learn(np.array([0, 2]), np.array([1, 1]), np.ones((2, K)), np.array([3.0, 4.0]))
    assert np.array_equal(posterior.mean, kept[0])
    assert np.array_equal(posterior.root, kept[1])
    assert np.array_equal(copied.mean[1], posterior.mean[1])
    assert not np.allclose(copied.mean[0, 1], posterior.mean[1, 1])
    assert np.array_equal(joined.root[:, A:], new.root)
    assert np.array_equal(joined.mean[1, :A], posterior.mean[1])
