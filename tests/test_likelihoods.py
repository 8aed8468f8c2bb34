"""Likelihoods against scipy's distributions, their own samples, and closed forms of expected rewards."""

import numpy as np
import pytest
from scipy import integrate, stats

from gents_gym.checks import InputError
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical, check_reward, infer_likelihood, make_likelihood

THREE = Categorical(3)


def chances(n, size, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(size), n)


@pytest.mark.parametrize("likelihood", [BERNOULLI, GAUSSIAN, THREE, Categorical(12)])
def test_names_lead_back(likelihood):
    assert make_likelihood(str(likelihood)) == likelihood


@pytest.mark.parametrize("name", ["poisson", "categorical", "categorical(x)", "Gaussian", 3, None])
def test_unknown_names(name):
    with pytest.raises(InputError, match=r"a likelihood must be bernoulli, gaussian or categorical\(C\), got "):
        make_likelihood(name)


@pytest.mark.parametrize("size", [0, 1])
def test_a_category_alone_is_none(size):
    with pytest.raises(InputError, match=f"n_outcomes must be at least 2, got {size}"):
        make_likelihood(f"categorical({size})")


def test_log_prob_is_scipys():
    rng = np.random.default_rng(1)
    p, y = rng.random((4, 50)), rng.integers(0, 2, (4, 50))
    assert np.allclose(BERNOULLI.log_prob(p, y), stats.bernoulli.logpmf(y, p), atol=1e-12)
    mean, variance, y = rng.normal(size=(3, 4, 50)) ** 2 * np.array([1, 3, 5])[:, None, None]
    ours = GAUSSIAN.log_prob(np.stack([mean, variance], -1), y)
    assert np.allclose(ours, stats.norm.logpdf(y, mean, np.sqrt(variance)), rtol=1e-10)
    p, y = chances(60, 3), rng.integers(0, 3, 60)
    theirs = [stats.multinomial.logpmf(np.eye(3)[k], 1, row) for row, k in zip(p, y, strict=True)]
    assert np.allclose(THREE.log_prob(p, y), theirs, atol=1e-10)


def test_impossible_outcomes_have_log_probability_minus_infinity():
    assert BERNOULLI.log_prob(np.array([0.0, 1.0]), np.array([1.0, 0.0])).tolist() == [-np.inf, -np.inf]
    assert THREE.log_prob(np.array([[0.5, 0.5, 0]]), np.array([2.0])).tolist() == [-np.inf]


@pytest.mark.parametrize("likelihood", [BERNOULLI, GAUSSIAN, THREE])
def test_samples_follow_scipys_law(likelihood):
    n, rng = 200_000, np.random.default_rng(2)
    noise = likelihood.noise(rng, (n,))
    assert noise.dtype == np.float32
    if likelihood is GAUSSIAN:
        sample = GAUSSIAN.sample(np.array([1.5, 4.0]), noise)
        assert stats.kstest(sample, stats.norm(1.5, 2).cdf).pvalue > 1e-3
    else:
        shares = np.array([0.7, 0.3]) if likelihood is BERNOULLI else np.array([0.2, 0.1, 0.7])
        sample = likelihood.sample(np.float64(0.3) if likelihood is BERNOULLI else shares, noise)
        found = np.bincount(sample.astype(int), minlength=len(shares))
        assert stats.chisquare(found, n * shares).pvalue > 1e-3
    assert sample.dtype == np.float32
    assert sample.shape == (n,)
    likelihood.check("outcomes", sample)


def test_samples_have_the_parameters_of_their_own_cell():
    p = chances(40, 3).reshape(5, 8, 3)
    noise = THREE.noise(np.random.default_rng(3), (20_000, 5, 8))
    drawn = THREE.sample(p, noise)
    for k in range(3):
        assert np.abs((drawn == k).mean(axis=0) - p[..., k]).max() < 5 * 0.5 / np.sqrt(20_000)
    corner = THREE.sample(np.eye(3), np.float32([0.999, 0.0, 0.5]))
    assert corner.tolist() == [0, 1, 2]


def test_expected_rewards_of_coins_and_categories_are_sums():
    p = np.random.default_rng(4).random((3, 7)).astype(np.float32)
    assert BERNOULLI.expected_reward(lambda y: y, p) is p
    assert np.allclose(BERNOULLI.expected_reward(lambda y: 7 - 30 * y, p), 7 - 30 * p)
    p = chances(6, 4).astype(np.float32)
    rewards = np.array([-3.0, 10, 0, 0.5])
    found = Categorical(4).expected_reward(lambda y: rewards[y.astype(int)], p)
    assert found.dtype == np.float32
    assert np.allclose(found, (p * rewards).sum(axis=1), atol=1e-5)


def normals(n=40, seed=5):
    rng = np.random.default_rng(seed)
    return np.stack([rng.normal(0, 3, n), rng.gamma(2, 1, n)], axis=1)


def test_expected_rewards_of_normals_are_closed_forms():
    parameters = normals()
    m, v = parameters.T
    assert np.array_equal(GAUSSIAN.expected_reward(lambda y: y, parameters), m)
    for reward_fn, expected in (
        (lambda y: 3 - 2 * y, 3 - 2 * m),
        (np.square, m**2 + v),
        (lambda y: y**4, m**4 + 6 * m**2 * v + 3 * v**2),
        (lambda y: np.exp(y / 4), np.exp(m / 4 + v / 32)),
        (np.sin, np.sin(m) * np.exp(-v / 2)),
    ):
        assert np.allclose(GAUSSIAN.expected_reward(reward_fn, parameters), expected, rtol=1e-9, atol=1e-9)


def test_expected_rewards_of_normals_with_kinks_and_steps():
    parameters = normals()
    m, s = parameters[:, 0], np.sqrt(parameters[:, 1])
    z = m / s
    gain = m * stats.norm.cdf(z) + s * stats.norm.pdf(z)
    assert np.allclose(GAUSSIAN.expected_reward(lambda y: y.clip(0), parameters), gain, atol=1e-3)
    step = GAUSSIAN.expected_reward(lambda y: (y > 0) * 1.0, parameters)
    assert np.abs(step - stats.norm.cdf(z)).max() < 1 / 80
    far = np.array([[7.0, 1.0]])  # the identity near 0, but not where these outcomes are
    expected = integrate.quad(lambda y: np.clip(y, -5, 5) * stats.norm.pdf(y, 7), -3, 17, points=[5])[0]
    assert GAUSSIAN.expected_reward(lambda y: y.clip(-5, 5), far) == pytest.approx(expected, abs=1e-3)


def test_expected_rewards_are_those_of_samples():
    parameters = normals(3)
    noise = GAUSSIAN.noise(np.random.default_rng(6), (200_000, 3))
    rewards = np.tanh(GAUSSIAN.sample(parameters, noise).astype(np.float64))
    expected = GAUSSIAN.expected_reward(np.tanh, parameters)
    assert (np.abs(rewards.mean(axis=0) - expected) < 4.5 * rewards.std(axis=0) / np.sqrt(200_000)).all()


def test_many_predictions_are_computed_in_blocks_to_the_same_numbers():
    parameters = normals(12_000).reshape(60, 200, 2)
    found = GAUSSIAN.expected_reward(np.tanh, parameters)
    assert found.shape == (60, 200)
    assert np.allclose(found[7, :3], GAUSSIAN.expected_reward(np.tanh, parameters[7, :3]), atol=1e-12)
    assert GAUSSIAN.expected_reward(np.tanh, parameters[:0]).shape == (0, 200)


@pytest.mark.parametrize(
    ("likelihood", "outcomes", "message"),
    [
        (BERNOULLI, [0, 1, 2], "y must be 0 or 1, got 2"),
        (BERNOULLI, [np.nan], "y must be 0 or 1, got nan"),
        (GAUSSIAN, [0.5, -np.inf], "y must be finite, got -inf"),
        (THREE, [0, 3], "y must be a whole number from 0 to 2, got 3"),
        (THREE, [0.5], r"y must be a whole number from 0 to 2, got 0\.5"),
        (THREE, [-1], "y must be a whole number from 0 to 2, got -1"),
    ],
)
def test_outcomes_that_are_none(likelihood, outcomes, message):
    with pytest.raises(InputError, match=message):
        likelihood.check("y", np.array(outcomes, np.float32))


def test_what_outcomes_say_of_their_likelihood():
    assert infer_likelihood(np.array([[0.0, 1.0]])) == BERNOULLI
    assert infer_likelihood(np.array([0.0, 1.0, 2.0])) == GAUSSIAN


def test_any_finite_reward_is_valid():
    for likelihood in (BERNOULLI, GAUSSIAN, THREE):
        check_reward(lambda y: 1e5 * y - 300, likelihood)
    check_reward(np.sqrt, THREE)


@pytest.mark.parametrize(
    ("reward_fn", "likelihood", "message"),
    [
        (np.log, BERNOULLI, r"must map each outcome to a finite reward, got \[-inf, 0\.0\] for \[0\.0, 1\.0\]"),
        (np.sqrt, GAUSSIAN, r"must map each outcome to a finite reward, got \[nan, nan, 0\.0"),
        (np.sum, THREE, r"must map each outcome to a finite reward, got 3\.0 for \[0\.0, 1\.0, 2\.0\]"),
        (3, THREE, "reward_fn must map outcomes to rewards, got 3"),
    ],
)
def test_rewards_that_are_none(reward_fn, likelihood, message):
    with pytest.raises(InputError, match=message):
        check_reward(reward_fn, likelihood)
