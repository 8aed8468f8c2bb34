"""The three kinds of outcomes of the synthetic setting against slow formulas, and the bits of the paper's own."""

import pickle

import numpy as np
import pytest
from scipy import stats

from gents_gym import InputError, make_tasks
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.tasks.logistic import paper_prior
from gents_gym.tasks.news import News, context_features
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import half, identity

KINDS = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "categorical": Categorical(3)}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("name", "options", "tasks", "rows"),
    [
        ("synthetic", {}, "07ab0aeeb27dfc63", "49f80491a10f296c"),
        ("synthetic", {"context_spread": 0.4}, "eac936ed469eaa23", "555e5bc7a32a00eb"),
        ("news", {}, "cf53d8074dee677e", "628094a01e52228c"),
    ],
)
def test_the_papers_tasks_are_the_same_bits_in_every_version(name, options, tasks, rows):
    """Recorded results are about these very tasks."""
    distribution = make_tasks(name, horizon=20, **options)
    assert distribution.sample(11, range(5)).content_hash[:16] == tasks
    assert distribution.sample_actions(11, range(5), 7).content_hash[:16] == rows


def slow_predictors(z, contexts, rng):
    """W of one action in (n, D) contexts, by the formula as it is written, with coefficients drawn here."""
    size = contexts.shape[1]
    constant, by_feature = rng.normal(), rng.normal(1, 0.25, 2)
    by_context, cross = rng.normal(1, 0.25, size), rng.normal(1, 0.25, 2)
    found = []
    for x in contexts:
        found.append(constant + by_feature @ z + by_context @ x + sum(x[j] * cross[j] * z[j] for j in range(2)))
    return np.array(found)


def slow_moments(kind, n, rng):
    """Mean and variance of an outcome, and the covariance of an action's two, over actions and contexts."""
    pairs = np.empty((n, 2))
    for i in range(n):
        z, contexts = rng.normal(size=2), rng.normal(size=(2, 5))
        if kind == "gaussian":
            pairs[i] = slow_predictors(z, contexts, rng) + rng.normal(size=2)
        else:
            logits = np.stack([np.zeros(2), slow_predictors(z, contexts, rng), slow_predictors(z, contexts, rng)])
            chances = np.exp(logits) / np.exp(logits).sum(axis=0)
            pairs[i] = [rng.choice(3, p=chances[:, j]) for j in range(2)]
    return pairs


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_outcomes_have_the_moments_of_the_formula(kind):
    """Against brute force: level, spread, and what two outcomes of one action share."""
    n = 6000
    slow = slow_moments(kind, n, np.random.default_rng(0))
    rows = Synthetic(outcomes=kind).sample_actions(0, range(n), 2)
    for statistic in (lambda y: y[:, 0], lambda y: y[:, 0] ** 2, lambda y: y[:, 0] * y[:, 1]):
        ours, theirs = statistic(rows.outcomes.astype(np.float64)), statistic(slow)
        assert abs(ours.mean() - theirs.mean()) < 4.5 * np.sqrt((ours.var() + theirs.var()) / n)
    assert rows.likelihood == KINDS[kind]


def test_gaussian_outcomes_are_their_means_and_one_noise_of_variance_one():
    tasks = Synthetic(outcomes="gaussian", horizon=100).sample(0, range(100))
    noise = (tasks.outcomes - tasks.means).astype(np.float64)
    assert stats.kstest(noise.reshape(-1)[::7], stats.norm.cdf).pvalue > 1e-3
    flat = noise.reshape(-1, 10)
    assert np.abs(np.corrcoef(flat, rowvar=False) - np.eye(10)).max() < 5 / np.sqrt(len(flat))  # each action's own


def test_gaussian_means_are_linear_with_coefficients_from_the_truth():
    distribution = Synthetic(outcomes="gaussian", n_actions=20, horizon=30)
    tasks = distribution.sample(1, range(200))
    rows = np.concatenate([np.ones((200, 30, 1)), tasks.contexts], axis=2)
    coefficients = np.linalg.lstsq(rows[0], tasks.means[0], rcond=None)[0]
    assert np.allclose(rows[0] @ coefficients, tasks.means[0], atol=1e-4)
    fitted = np.swapaxes(np.linalg.pinv(rows) @ tasks.means, 1, 2)  # (B, A, K)
    mean, variance = distribution.truth.prior(tasks.action_features)
    standard = ((fitted - mean) / np.sqrt(variance)).reshape(-1, 6)
    assert np.abs(standard.mean(axis=0)).max() < 5 / np.sqrt(len(standard))
    assert np.abs(np.cov(standard, rowvar=False) - np.eye(6)).max() < 5 * np.sqrt(2 / len(standard))


def test_categories_have_independent_coefficients_from_the_truth():
    """With R picking one outcome, the means are its probability; log ratios are linear in the contexts."""
    sizes = {"outcomes": "categorical", "n_actions": 20, "horizon": 60}
    parts = [Synthetic(**sizes, reward_fn=lambda y, k=k: (y == k) * 1.0).sample(1, range(150)) for k in range(3)]
    chances = np.stack([part.means for part in parts], axis=-1).astype(np.float64)  # (B, T, A, 3)
    assert np.allclose(chances.sum(axis=-1), 1, atol=1e-5)
    surprise = np.stack([(parts[0].outcomes == k) for k in range(3)], axis=-1) - chances
    assert np.abs(surprise.mean(axis=(0, 1, 2))).max() < 4.5 * 0.5 / np.sqrt(surprise[..., 0].size)
    clear = (chances > 1e-3).all(axis=-1)  # below, float32 rounds the ratios away
    rows = np.concatenate([np.ones((150, 60, 1)), parts[0].contexts], axis=2).astype(np.float64)
    logits = np.log(chances[..., 1:] / chances[..., :1], where=clear[..., None], out=np.zeros(chances[..., 1:].shape))
    squares = np.einsum("bta,bti,btj->baij", clear, rows, rows) + 1e-9 * np.eye(6)
    fitted = np.linalg.solve(squares, np.einsum("bta,bti,btac->baic", clear, rows, logits)).swapaxes(2, 3)
    enough = clear.sum(axis=1) >= 15
    assert enough.mean() > 0.9
    residual = np.where(clear[..., None], np.einsum("bti,baci->btac", rows, fitted) - logits, 0)
    assert np.abs(residual.swapaxes(1, 2)[enough]).max() < 0.01
    mean, variance = Synthetic(**sizes).truth.prior(parts[0].action_features)
    standard = ((fitted - mean) / np.sqrt(variance))[enough].reshape(-1, 12)
    # Actions with enough clear rows are a selection, which moves the moments a little; exact ones would be 0 and I.
    assert np.abs(standard.mean(axis=0)).max() < 0.15
    assert np.abs(np.cov(standard, rowvar=False) - np.eye(12)).max() < 0.2


@every_kind
@pytest.mark.parametrize("reward_fn", [None, lambda y: 250 - 100 * y, np.square, np.tanh])
def test_means_are_the_expected_rewards(kind, reward_fn):
    tasks = Synthetic(outcomes=kind, reward_fn=reward_fn, horizon=100).sample(0, range(100))
    residual = (tasks.rewards.astype(np.float64) - tasks.means).mean(axis=(1, 2))  # (B,)
    assert abs(residual.mean()) < 4.5 * residual.std() / 10
    slope = ((tasks.rewards - tasks.means) * (tasks.means - tasks.means.mean())).astype(np.float64).mean(axis=(1, 2))
    assert abs(slope.mean()) < 4.5 * slope.std() / 10


@every_kind
def test_what_tasks_say_of_themselves(kind):
    distribution = make_tasks("synthetic", horizon=3, outcomes=kind)
    tasks = distribution.sample(0, range(4))
    assert tasks.likelihood == distribution.likelihood == KINDS[kind]
    assert tasks.oracle == ("logistic" if kind == "bernoulli" else "least-squares")
    assert tasks.reward_fn is (half if kind == "categorical" else identity)
    assert tasks.truth is tasks[1].truth is tasks.known_truth is distribution.truth
    assert tasks[2].hashes == distribution.sample(0, [2]).hashes
    copied, played = pickle.loads(pickle.dumps((distribution, tasks)))
    assert played.truth is copied.truth


def test_categorical_rewards_are_halves_or_what_is_asked_for():
    assert np.unique(Synthetic(outcomes="categorical").sample(0, [0]).rewards).tolist() == [0, 0.5, 1]
    whole = make_tasks("synthetic", outcomes="categorical", reward_fn="identity").sample(0, [0])
    assert np.unique(whole.rewards).tolist() == [0, 1, 2]
    halved = make_tasks("synthetic", reward_fn="half").sample(0, [0])
    assert np.unique(halved.rewards).tolist() == [0, 0.5]


def test_the_truth_is_the_settings_own():
    truth = Synthetic(context_dim=4, context_spread=0.3, outcomes="gaussian").truth
    assert (truth.likelihood, truth.context_map, truth.context_spread, truth.noise) == (GAUSSIAN, None, 0.3, 1.0)
    assert [part.shape for part in truth.prior(np.zeros((7, 2)))] == [(7, 5), (7, 5)]
    news = News(horizon=3)
    tasks = news.sample(0, [0])
    assert news.truth.context_map is context_features
    assert [part.shape for part in news.truth.prior(tasks.hidden_features)] == [(1, 10, 5), (1, 10, 5)]
    assert tasks.truth is news.truth
    assert tasks.known_truth is None


def test_the_prior_is_the_papers():
    """Against draws of the coefficients as the paper writes them."""
    rng, z = np.random.default_rng(0), np.array([0.7, -1.2])
    n = 200_000
    u_z, u_x, cross = (rng.normal(1, 0.25, (n, size)) for size in (2, 5, 2))
    drawn = np.column_stack([rng.normal(size=n) + u_z @ z, u_x[:, :2] + cross * z, u_x[:, 2:]])
    mean, variance = paper_prior(z, 5)
    assert np.abs((drawn.mean(axis=0) - mean) / np.sqrt(variance)).max() < 4.5 / np.sqrt(n)
    assert np.abs(np.cov(drawn, rowvar=False) / np.sqrt(np.outer(variance, variance)) - np.eye(6)).max() < 0.015
    many = paper_prior(z, 5, 2)
    assert np.array_equal(many[0], [mean, mean])
    assert np.array_equal(many[1], [variance, variance])
    with pytest.raises(InputError, match=r"action_features must be φ_Z, 2 entries, .* got 3"):
        paper_prior(np.zeros(3), 5)


def test_bad_outcomes():
    with pytest.raises(InputError, match="unknown outcomes 'gausian'; did you mean 'gaussian'"):
        Synthetic(outcomes="gausian")
    with pytest.raises(InputError, match=r"reward_fn must map each outcome to a finite reward, got \[nan"):
        Synthetic(outcomes="gaussian", reward_fn=np.sqrt)
    with pytest.raises(InputError, match="option of task distribution 'news': unexpected keyword argument 'outcomes'"):
        make_tasks("news", outcomes="gaussian")
