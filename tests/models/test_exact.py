"""The exact p* of binary outcomes against simulation-based calibration, quadrature and importance samples."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chisquare, norm

from gents_gym import InputError
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.logistic import paper_prior
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Feedback, TaskInfo, Truth


class History(NamedTuple):
    """What was observed of B tasks."""

    action_features: np.ndarray  # (B, A, F)
    contexts: np.ndarray  # (B, t, D)
    actions: np.ndarray  # (B, t)
    outcomes: np.ndarray  # (B, t)

    def __getitem__(self, tasks):
        return History(*(part[tasks] for part in self))


def exact(context_dim=3, context_map=None, spread=1.0, **options):
    prior = partial(paper_prior, n_slopes=context_dim)
    return ExactModel(Truth(prior, context_map=context_map, context_spread=spread), **options)


def believe(history, rngs, model=None, horizon=None, known=None):
    """The belief of p* after a history."""
    n_tasks, n_actions = history.action_features.shape[:2]
    context_dim = history.contexts.shape[2]
    info = TaskInfo(history.action_features, n_actions, context_dim, horizon, known_contexts=known)
    belief = (exact(context_dim) if model is None else model).begin(info, rngs)
    for t in range(history.contexts.shape[1]):
        belief.decide(history.contexts[:, t], history.actions[:, t])
        belief.observe(Feedback(np.arange(n_tasks), np.full(n_tasks, t), history.outcomes[:, t]))
    return belief


def generators(n):
    return [np.random.default_rng(i) for i in range(n)]


def synthetic_history(rng, n_tasks, n_rows, n_actions=2, context_dim=3):
    """Tasks whose true coefficients are known, and a history of random actions."""
    z = rng.normal(size=(n_tasks, n_actions, 2))
    mean, variance = paper_prior(z, context_dim)
    beta = mean + np.sqrt(variance) * rng.normal(size=mean.shape)  # (B, A, 1+D)
    x = rng.normal(size=(n_tasks, n_rows, context_dim)).astype(np.float32)
    actions = rng.integers(n_actions, size=(n_tasks, n_rows))
    played = np.take_along_axis(beta, actions[..., None], axis=1)  # (B, t, 1+D)
    chances = expit(played[..., 0] + (played[..., 1:] * x).sum(-1))
    y = (rng.random(chances.shape) < chances).astype(float)
    return History(z, x, actions, y), beta


@pytest.mark.parametrize("n_rows", [0, 1, 8, 60])
def test_simulation_based_calibration(n_rows):
    """Among posterior draws the true coefficients have uniform ranks, whatever the history's length."""
    n_tasks, n_draws = 500, 9
    history, beta = synthetic_history(np.random.default_rng(n_rows), n_tasks, n_rows)
    rngs = [np.random.default_rng([7, i]) for i in range(n_tasks)]
    draws = believe(history, rngs).draw(n_draws)  # (B, M, A, K)
    ranks = (draws < beta[:, None]).sum(axis=1)  # (B, A, K)
    for k in range(beta.shape[2]):
        counts = np.bincount(ranks[..., k].ravel(), minlength=n_draws + 1)
        assert chisquare(counts).pvalue > 1e-4


def test_prior_is_the_tasks_own():
    """The prior given Z, against coefficients recovered from the synthetic distribution's true means."""
    tasks = Synthetic(n_actions=30, horizon=40, context_dim=4).sample(0, range(60))
    rows = np.concatenate([np.ones((60, 40, 1)), tasks.contexts], axis=2).astype(np.float64)
    clear = np.abs(tasks.means - 0.5) < 0.499
    means = np.where(clear, tasks.means, 0.5).astype(np.float64)
    squares = np.einsum("bta,bti,btj->baij", clear, rows, rows)
    right = np.einsum("bta,bti,bta->bai", clear, rows, np.log(means / (1 - means)))
    beta = np.linalg.solve(squares, right[..., None])[..., 0]
    mean, variance = paper_prior(tasks.action_features, 4)
    standard = ((beta - mean) / np.sqrt(variance)).reshape(-1, 5)
    assert np.abs(standard.mean(axis=0)).max() < 4.5 / np.sqrt(len(standard))
    assert np.abs(np.cov(standard, rowvar=False) - np.eye(5)).max() < 4.5 * np.sqrt(2 / len(standard))


def test_predictive_is_the_ratio_of_marginal_likelihoods():
    history, _ = synthetic_history(np.random.default_rng(3), 20, 10)
    model = exact(n_weighted=4000)
    context = np.random.default_rng(4).normal(size=(20, 3)).astype(np.float32)
    found = believe(history, generators(20), model).expected(context)
    for b in range(3):
        for a in range(2):
            mine = history.actions[b] == a
            z, x, y = history.action_features[b, a][None], history.contexts[b][mine], history.outcomes[b][mine]
            longer = np.concatenate([x, context[b][None]])[None], np.append(y, 1.0)[None]
            rng = np.random.default_rng(5)
            ratio = model.log_marginal(z, *longer, rng) - model.log_marginal(z, x[None], y[None], rng)
            assert found[b, a] == pytest.approx(np.exp(ratio[0]), abs=0.02)


def test_predictive_of_a_skewed_posterior_is_quadratures():
    """Slopes without data: a vague intercept whose few outcomes are all ones, at a context of zeros."""
    z = np.array([[[3.0, -3.0], [0.0, 0.0]]])
    history = History(z, np.zeros((1, 3, 2), np.float32), np.zeros((1, 3), int), np.ones((1, 3)))
    found = believe(history, generators(1), exact(2, n_weighted=40_000)).expected(np.zeros((1, 2)))
    mean, variance = paper_prior(z, 2)
    grid = np.linspace(-15, 15, 6001)
    for a, seen in ((0, 3), (1, 0)):
        weights = norm.pdf(grid, mean[0, a, 0], variance[0, a, 0] ** 0.5) * expit(grid) ** seen
        assert found[0, a] == pytest.approx((weights * expit(grid)).sum() / weights.sum(), abs=0.004)


def test_losses_sum_to_the_marginal_likelihood_on_average():
    """The exact p* beats, or ties with, any other predictor on its own data: here the true prior's mean alone."""
    rows = Synthetic().sample_actions(0, range(300), 50)
    model = ExactModel(Synthetic().truth, n_weighted=32)
    best = -model.log_marginal(rows.action_features, rows.contexts, rows.outcomes, np.random.default_rng(0))
    mean, _ = paper_prior(rows.action_features, 5)
    logits = mean[:, :1] + np.einsum("nrd,nd->nr", rows.contexts, mean[:, 1:])
    naive = -(np.log(expit(np.where(rows.outcomes == 1, logits, -logits)))).sum(axis=1)
    assert best.mean() < naive.mean() - 4 * (naive - best).std() / np.sqrt(300)


def test_imputed_tables_keep_what_was_observed_and_fit_the_rest():
    history, beta = synthetic_history(np.random.default_rng(1), 200, 80)
    later = np.random.default_rng(2).normal(size=(200, 60, 3)).astype(np.float32)
    contexts = np.concatenate([history.contexts, later], axis=1)
    belief = believe(history, generators(200), horizon=140, known=contexts)
    completed = belief.complete(contexts[:, 80], contexts="given")
    assert np.array_equal(completed.contexts[:, 0], contexts)
    table = completed.outcomes[:, 0]
    assert table.shape == (200, 140, 2)
    assert set(np.unique(table)) == {0, 1}
    seen = np.take_along_axis(table[:, :80], history.actions[..., None], axis=2)[..., 0]
    assert np.array_equal(seen, history.outcomes)
    chances = expit(beta[:, None, :, 0] + contexts @ beta[:, :, 1:].swapaxes(1, 2))[:, 80:]
    per_task = (table[:, 80:] - chances).mean(axis=(1, 2))
    assert abs(per_task.mean()) < 4 * per_task.std() / np.sqrt(200)
    again = believe(history, generators(200), horizon=140, known=contexts).complete(contexts[:, 80], contexts="given")
    assert np.array_equal(table, again.outcomes[:, 0])


def test_a_task_does_not_depend_on_its_batch():
    history, _ = synthetic_history(np.random.default_rng(6), 5, 20)
    draws = believe(history, generators(5)).draw(2)
    alone = believe(history[3:4], [np.random.default_rng(3)])
    assert np.allclose(alone.draw(2)[0], draws[3])


def test_context_map_is_applied():
    history, _ = synthetic_history(np.random.default_rng(8), 2, 6)
    flipped = believe(history._replace(contexts=-history.contexts), generators(2), exact(context_map=np.negative))
    assert np.allclose(flipped.draw(), believe(history, generators(2)).draw())


def test_means_and_variances_are_those_of_a_long_importance_sample():
    """Of prior draws, weighed by the likelihood of what was observed; the reward is 0.9 - 0.5 y."""
    history, _ = synthetic_history(np.random.default_rng(9), 3, 6)
    contexts = np.random.default_rng(1).normal(size=(3, 4, 3)).astype(np.float32)
    info = TaskInfo(history.action_features, 2, 3, reward_fn=lambda y: 0.9 - 0.5 * y)
    belief = exact(n_weighted=20_000).begin(info, generators(3))
    for t in range(6):
        belief.decide(history.contexts[:, t], history.actions[:, t])
        belief.observe(Feedback(np.arange(3), np.full(3, t), history.outcomes[:, t]))
    means, variances = belief.expected(contexts), belief.variance(contexts)
    assert means.shape == variances.shape == (3, 4, 2)
    prior_mean, prior_variance = paper_prior(history.action_features, 3)
    rng = np.random.default_rng(2)
    for b in range(3):
        for a in range(2):
            beta = prior_mean[b, a] + np.sqrt(prior_variance[b, a]) * rng.normal(size=(400_000, 4))
            mine = history.actions[b] == a
            logits = beta[:, :1] + beta[:, 1:] @ history.contexts[b][mine].T
            weights = np.prod(expit(np.where(history.outcomes[b][mine] == 1, logits, -logits)), axis=1)
            weights /= weights.sum()
            rewards = 0.9 - 0.5 * expit(beta[:, :1] + beta[:, 1:] @ contexts[b].T)  # (n, C)
            mean = weights @ rewards
            assert means[b, :, a] == pytest.approx(mean, abs=0.004)
            assert variances[b, :, a] == pytest.approx(weights @ (rewards - mean) ** 2, rel=0.08)
    assert variances.min() > 1e-5
    assert np.allclose(belief.expected(contexts[:, 1]), means[:, 1], atol=0.004)
    assert belief.variance(contexts[:, 1]).shape == (3, 2)


@pytest.mark.parametrize("spread", [0.3, 0.8])
def test_imagined_contexts_have_the_moments_of_the_closed_form(spread):
    """The next context given t of them: a Gaussian, conditioned by its joint covariance."""
    t, n = 4, 4000
    own = np.random.default_rng(0).normal(size=(1, t, 2)).astype(np.float32)
    belief = exact(2, spread=spread).begin(TaskInfo(np.zeros((1, 2, 2)), 2, 2), generators(1))
    for i in range(t - 1):
        belief.decide(own[:, i], np.zeros(1, int))
    found = belief.complete(own[:, t - 1], 3, n).contexts[0]
    assert found.shape == (n, t + 2, 2)
    assert (found[:, :t] == own[0]).all()
    joint = (1 - spread**2) * np.ones((t + 2, t + 2)) + spread**2 * np.eye(t + 2)  # of one entry of all contexts
    gain = joint[t:, :t] @ np.linalg.inv(joint[:t, :t])
    mean, covariance = gain @ own[0], joint[t:, t:] - gain @ joint[:t, t:]
    for entry in range(2):
        new = found[:, t:, entry]
        error = np.sqrt(np.diagonal(covariance) / n)
        assert (np.abs(new.mean(axis=0) - mean[:, entry]) < 4.5 * error).all()
        assert np.allclose(np.cov(new, rowvar=False), covariance, atol=4.5 * covariance.max() * np.sqrt(2 / n))


def test_without_spread_every_context_is_the_tasks_own():
    own = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    belief = exact(2, spread=0.0).begin(TaskInfo(np.zeros((3, 2, 2)), 2, 2, 9), generators(3))
    for _ in range(3):
        assert np.allclose(belief.complete(own, draws=2).contexts, own[:, None, None], atol=1e-6)
        belief.decide(own, np.zeros(3, int))


def test_bad_input():
    with pytest.raises(InputError, match="n_steps must be at least 1, got 0"):
        exact(n_steps=0)
    with pytest.raises(InputError, match=r"action_features must be φ_Z, 2 entries, for p\* .*got 3"):
        paper_prior(np.zeros((4, 3)), 5)
    history, _ = synthetic_history(np.random.default_rng(8), 2, 6)
    belief = believe(history, generators(2))
    with pytest.raises(InputError, match=r"context must have shape \(B, D\)=\(2, 3\), got \(2, 4\)"):
        belief.complete(np.zeros((2, 4)), 3)
    with pytest.raises(InputError, match=r"unknown context model of p\*: 'bank'"):
        belief.complete(np.zeros((2, 3)), 3, contexts="bank")
    with pytest.raises(InputError, match="for tasks without known contexts, got 'given'"):
        belief.complete(np.zeros((2, 3)), 3, contexts="given")
    with pytest.raises(InputError, match="state must have contexts, actions, seen, outcomes, got contexts"):
        belief.restore({"contexts": np.zeros((2, 6, 3))})
    wider = believe(history, generators(2))
    wider.add(np.zeros((2, 1, 2)))
    wider.decide(np.zeros((2, 3)), np.array([0, 2]))
    wider.observe(Feedback(np.array([1]), np.array([6]), np.array([1.0])))
    with pytest.raises(InputError, match="seen must lie below 2, the number of actions, got 2"):
        belief.restore(wider.state())


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([[0, 1]], r"actions must be whole numbers of shape \(B, n\) with B=2, got int64\(1, 2\)"),
        ([[0.5], [1.0]], r"actions must be whole numbers of shape \(B, n\) with B=2, got float64\(2, 1\)"),
        ([[0], [0, 1]], r"actions must be whole numbers of shape \(B, n\) with B=2, got \[\[0\], \[0, 1\]\]"),
        ([[0, -1], [0, 1]], r"actions must lie in \[0, 3\), got -1 to 1"),
        ([[0, 3], [0, 1]], r"actions must lie in \[0, 3\), got 0 to 3"),
        ([[0, 1], [2, 2]], r"actions must differ from each other, got \[2, 2\] for task 1"),
    ],
)
def test_actions_that_are_none_are_refused(actions, message):
    tasks = Synthetic(n_actions=3, horizon=4).sample(0, [0, 1])
    info = TaskInfo(tasks.action_features, 3, 5, 4, truth=tasks.known_truth)
    belief = ExactModel(tasks.known_truth).begin(info, [np.random.default_rng(i) for i in (0, 1)])
    with pytest.raises(InputError, match=message):
        belief.complete(tasks.contexts[:, 0], actions=actions)
