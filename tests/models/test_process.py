"""The exact posterior of moving and shared coefficients, against filters, smoothers and sums written out plainly."""

from dataclasses import replace

import numpy as np
import pytest

from gents_gym import ExactModel, Feedback, InputError, TaskInfo, make_tasks
from gents_gym.models.process import walk_marginal

B, A, T, SEEN = 2, 3, 14, 9


def tell(belief, tasks, actions, order):
    """Decide on all of ``actions`` (B, t), then hand in the outcomes of decisions in an order."""
    for t in range(actions.shape[1]):
        belief.decide(tasks.contexts[:, t], actions[:, t])
    for t in order:
        outcome = tasks.outcomes[np.arange(B), t, actions[:, t]]
        belief.observe(Feedback(np.arange(B), np.full(B, t), outcome))
    return belief


def begin(tasks, seed=0, **changes):
    sizes = tasks.n_actions, tasks.context_dim, tasks.horizon
    known = {"likelihood": tasks.likelihood, "truth": tasks.truth, "known_contexts": tasks.known_contexts}
    info = replace(TaskInfo(tasks.action_features, *sizes, **known), **changes)
    return ExactModel(tasks.truth).begin(info, [np.random.default_rng([seed, i]) for i in range(B)])


@pytest.fixture(scope="module")
def actions():
    return np.random.default_rng(0).integers(A, size=(B, SEEN))


def smooth(tasks, actions, b, a):
    """Moments of one action's coefficients at all decisions by a Kalman filter and Rauch, Tung and Striebel's pass."""
    truth, x = tasks.truth, np.concatenate([np.ones((T, 1)), tasks.contexts[b, :, :-1]], axis=1).astype(np.float64)
    mean, variance = (part[b, a] for part in truth.prior(tasks.action_features))
    kept, spread = 1 - truth.rate, np.diag(variance)
    filtered, m, p = [], mean, spread
    for t in range(T):
        if t:
            m, p = mean + kept * (m - mean), kept**2 * p + (1 - kept**2) * spread
        if t < SEEN and actions[b, t] == a:
            gain = p @ x[t] / (x[t] @ p @ x[t] + truth.noise)
            m, p = m + gain * (tasks.outcomes[b, t, a] - x[t] @ m), p - np.outer(gain, x[t] @ p)
        filtered.append((m, p))
    smoothed = [filtered[-1]]
    for m, p in filtered[-2::-1]:
        ahead = kept**2 * p + (1 - kept**2) * spread
        gain = kept * p @ np.linalg.inv(ahead)
        later_m, later_p = smoothed[0]
        smoothed.insert(0, (m + gain @ (later_m - mean - kept * (m - mean)), p + gain @ (later_p - ahead) @ gain.T))
    means = np.array([x[t] @ m for t, (m, _) in enumerate(smoothed)])
    return means, np.array([x[t] @ p @ x[t] for t, (_, p) in enumerate(smoothed)])


@pytest.fixture(scope="module")
def walking():
    return make_tasks("drifting", outcomes="gaussian", rate=0.1, n_actions=A, horizon=T, context_dim=3).sample(
        4, range(B)
    )


def test_the_walks_predictions_are_the_kalman_filters(walking, actions):
    belief = tell(begin(walking), walking, actions, range(SEEN))
    x = walking.contexts[:, SEEN]
    for b in range(B):
        for a in range(A):
            means, variances = smooth(walking, actions, b, a)
            assert np.isclose(belief.expected(x)[b, a], means[SEEN], atol=1e-5)
            assert np.isclose(belief.variance(x)[b, a], variances[SEEN], atol=1e-5)


def test_the_walks_tables_are_drawn_from_the_smoother(walking, actions):
    tell(belief := begin(walking, known_contexts=walking.contexts), walking, actions, range(SEEN))
    found = belief.complete(walking.contexts[:, SEEN], draws=4000, contexts="given").outcomes  # (B, M, T, A)
    for a in range(A):
        means, variances = smooth(walking, actions, 0, a)
        missing = np.append(actions[0] != a, np.ones(T - SEEN, np.bool_))
        drawn = found[0][:, missing, a]
        deviation = np.sqrt(variances[missing] + 1)
        assert np.all(np.abs(drawn.mean(axis=0) - means[missing]) < 5 * deviation / np.sqrt(4000))
        assert np.allclose(drawn.std(axis=0), deviation, rtol=0.08)


def test_neighbouring_rows_of_a_walk_are_drawn_together(walking):
    """Without observations, coefficients of two rows correlate by the rate to the power of their distance."""
    belief = begin(walking)
    path, _ = belief._posterior._draw_path(8, 6000, [np.random.default_rng(i) for i in range(B)])
    assert np.allclose((path[:, :, 2] * path[:, :, 5]).mean(axis=1), 0.9**3, atol=0.08)


@pytest.mark.parametrize("drift", ["walk", "jump"])
def test_late_outcomes_give_the_same_belief(drift, actions):
    options = {"outcomes": "gaussian", "rate": 0.1, "n_actions": A, "horizon": T, "drift": drift}
    tasks = make_tasks("drifting", **options).sample(4, range(B))
    orders = (range(SEEN), [4, 0, 8, 7, 2, 1, 3, 6, 5])
    first, second = (tell(begin(tasks), tasks, actions, order) for order in orders)
    x = tasks.contexts[:, SEEN : SEEN + 3]
    assert np.allclose(first.expected(x), second.expected(x), atol=1e-9)
    assert np.allclose(first.variance(x), second.variance(x), atol=1e-9)
    again = begin(tasks)
    again.restore(first.state())
    assert np.allclose(first.expected(x), again.expected(x), atol=1e-9)
    assert np.allclose(first.fork(np.array([1])).expected(x[1:]), first.expected(x)[1:], atol=1e-9)


def test_the_walks_marginal_is_the_multivariate_normals():
    from scipy.stats import multivariate_normal

    setting = make_tasks("drifting", outcomes="gaussian", rate=0.1)
    rows = setting.sample_actions(0, range(3), 12)
    model = ExactModel(setting.truth)
    found = model.log_marginal(rows.action_features, rows.contexts, rows.outcomes, np.random.default_rng(0))
    x, (mean, variance) = model.design(rows.contexts), model.prior(rows.action_features[:, None])
    fade = 0.9 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    for i in range(3):
        covariance = fade * ((x[i] * variance[i, 0]) @ x[i].T) + np.eye(12)
        expected = multivariate_normal(x[i] @ mean[i, 0], covariance).logpdf(rows.outcomes[i])
        assert np.isclose(found[i], expected, atol=1e-4)
    still = walk_marginal(make_tasks("drifting", outcomes="gaussian", rate=0).truth, mean[:, 0], variance[:, 0], x,
                          rows.outcomes)  # fmt: skip
    plain = ExactModel(make_tasks("synthetic", outcomes="gaussian").truth)
    same = plain.log_marginal(rows.action_features, rows.contexts[..., :-1], rows.outcomes, np.random.default_rng(0))
    assert np.allclose(still, same, atol=1e-8)


def test_imagined_contexts_carry_the_right_times(walking, actions):
    belief = tell(begin(walking), walking, actions, range(SEEN))
    for contexts in (None, "given"):
        times = belief.complete(walking.contexts[:, SEEN], draws=2, contexts=contexts).contexts[..., -1]
        assert np.allclose(times, np.arange(T) / T)


def test_other_outcomes_have_no_exact_belief_that_moves():
    truth = make_tasks("drifting").truth
    with pytest.raises(InputError, match=r"needs gaussian outcomes .*, got bernoulli ones: model .reference. is for"):
        ExactModel(truth)


@pytest.fixture(scope="module")
def sharing():
    options = {"outcomes": "gaussian", "correlation": 0.7, "row_effect": 0.4, "n_actions": A, "horizon": T}
    return make_tasks("correlated", context_dim=2, **options).sample(4, range(B))


def joint_moments(tasks, actions, b):
    """Moments of all cells of a task given the observed ones, (T·A,) and (T·A, T·A), from the joint Gaussian."""
    x = np.concatenate([np.ones((T, 1)), tasks.contexts[b]], axis=1).astype(np.float64)
    mean, variance = (part[b] for part in tasks.truth.prior(tasks.action_features))
    blocks = [
        [np.diag(np.sqrt(variance[i] * variance[j])) * (1 if i == j else 0.7) for j in range(A)] for i in range(A)
    ]
    design = np.zeros((T, A, A, x.shape[1]))
    for a in range(A):
        design[:, a, a] = x
    design = design.reshape(T * A, -1)
    noise = np.kron(np.eye(T), 0.4 * np.ones((A, A)) + 0.6 * np.eye(A))
    centre, covariance = design @ mean.ravel(), design @ np.block(blocks) @ design.T + noise
    seen = np.arange(SEEN) * A + actions[b]
    gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    outcomes = tasks.outcomes[b].reshape(-1)[seen]
    return centre + gain @ (outcomes - centre[seen]), covariance - gain @ covariance[seen]


def test_shared_coefficients_are_conditioned_as_one_gaussian(sharing, actions):
    belief = tell(begin(sharing), sharing, actions, range(SEEN))
    x = sharing.contexts[:, SEEN]
    for b in range(B):
        mean, covariance = joint_moments(sharing, actions, b)
        row = slice(SEEN * A, SEEN * A + A)
        assert np.allclose(belief.expected(x)[b], mean[row], atol=1e-5)
        assert np.allclose(belief.variance(x)[b], np.diag(covariance)[row] - 1, atol=1e-5)


def test_tables_of_shared_coefficients_are_drawn_from_that_gaussian(sharing, actions):
    belief = tell(begin(sharing, known_contexts=sharing.contexts), sharing, actions, range(SEEN))
    found = belief.complete(sharing.contexts[:, SEEN], draws=6000, contexts="given").outcomes[0]
    found = found.reshape(6000, -1).astype(np.float64)
    mean, covariance = joint_moments(sharing, actions, 0)
    deviation = np.sqrt(np.diag(covariance).clip(0))
    assert np.all(np.abs(found.mean(axis=0) - mean) < 5 * deviation / np.sqrt(6000) + 1e-4)
    assert np.allclose(np.cov(found.T), covariance, atol=0.15)  # a row's cells too


def test_an_action_more_shares_the_tasks_effect(sharing, actions):
    wide = tell(begin(sharing), sharing, actions % 2, range(SEEN))
    few = sharing.action_features[:, :2]
    belief = begin(sharing, action_features=few, n_actions=2)
    tell(belief, sharing, actions % 2, range(SEEN))
    belief.add(sharing.action_features[:, 2:])
    assert np.allclose(belief.expected(sharing.contexts[:, SEEN]), wide.expected(sharing.contexts[:, SEEN]), atol=1e-9)
