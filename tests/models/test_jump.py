"""The exact posterior of coefficients that jump, against a sum over all times of the jump written out plainly."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from gents_gym import ExactModel, Feedback, TaskInfo, make_tasks

A, T, SEEN, RATE = 3, 16, 10, 0.15


@pytest.fixture(scope="module")
def tasks():
    options = {"outcomes": "gaussian", "drift": "jump", "rate": RATE, "n_actions": A, "horizon": T, "context_dim": 2}
    return make_tasks("drifting", **options).sample(5, range(1))


@pytest.fixture(scope="module")
def actions():
    return np.random.default_rng(1).integers(A, size=SEEN)


def begin(tasks):
    info = TaskInfo(
        tasks.action_features, A, tasks.context_dim, T, likelihood=tasks.likelihood, known_contexts=tasks.contexts
    )
    return ExactModel(tasks.truth).begin(info, [np.random.default_rng(2)])


@pytest.fixture(scope="module")
def belief(tasks, actions):
    belief = begin(tasks)
    for t, action in enumerate(actions):
        belief.decide(tasks.contexts[:, t], np.array([action]))
        belief.observe(Feedback(np.array([0]), np.array([t]), tasks.outcomes[0, t, [action]]))
    return belief


def enumerate_jumps(tasks, actions, row, a):
    """Shares of all times of a jump, none first, (SEEN+1,), and x·β of action a in a row given each, (2, SEEN+1)."""
    x = np.concatenate([np.ones((T, 1)), tasks.contexts[0, :, :-1]], axis=1).astype(np.float64)
    prior_mean, prior_variance = (part[0] for part in tasks.truth.prior(tasks.action_features))
    logs, found = [], []
    for when in range(SEEN + 1):
        log = SEEN * np.log1p(-RATE) if when == 0 else (when - 1) * np.log1p(-RATE) + np.log(RATE)
        late = np.arange(SEEN) >= when
        for action in range(A):
            for side in (late, ~late):
                at = np.flatnonzero((actions == action) & side)
                if len(at):
                    covariance = (x[at] * prior_variance[action]) @ x[at].T + np.eye(len(at))
                    mean = x[at] @ prior_mean[action]
                    log += multivariate_normal(mean, covariance).logpdf(tasks.outcomes[0, at, action])
        logs.append(log)
        at = np.flatnonzero((actions == a) & (late if row >= max(when, 1) or when == 0 else ~late))
        precision = np.diag(1 / prior_variance[a]) + x[at].T @ x[at]
        shift = prior_mean[a] / prior_variance[a] + x[at].T @ tasks.outcomes[0, at, a]
        found.append((x[row] @ np.linalg.solve(precision, shift), x[row] @ np.linalg.solve(precision, x[row])))
    return np.exp(np.array(logs) - logsumexp(logs)), np.array(found).T


def test_predictions_are_a_sum_over_all_times(tasks, actions, belief):
    context = tasks.contexts[:, SEEN]
    for a in range(A):
        shares, (means, variances) = enumerate_jumps(tasks, actions, SEEN, a)
        mean = shares @ means
        assert np.isclose(belief.expected(context)[0, a], mean, atol=1e-5)
        assert np.isclose(belief.variance(context)[0, a], shares @ (variances + means**2) - mean**2, atol=1e-4)


def test_tables_are_drawn_from_the_same_mixture(tasks, actions, belief):
    found = belief.complete(tasks.contexts[:, SEEN], draws=6000, contexts="given").outcomes[0]  # (M, T, A)
    for row in (2, 7, SEEN):
        for a in range(A):
            if row < SEEN and actions[row] == a:
                assert np.all(found[:, row, a] == tasks.outcomes[0, row, a])
                continue
            shares, (means, variances) = enumerate_jumps(tasks, actions, row, a)
            mean, spread = shares @ means, shares @ (variances + means**2) - (shares @ means) ** 2 + 1
            assert abs(found[:, row, a].mean() - mean) < 5 * np.sqrt(spread / 6000)
            assert np.isclose(found[:, row, a].var(), spread, rtol=0.12)


def test_a_jump_may_still_come(tasks, actions, belief):
    """In rows far ahead, coefficients are new ones if there was no jump so far and one comes before them."""
    x = np.append(1, tasks.contexts[0, T - 1, :-1])
    for a in range(A):
        shares, _ = enumerate_jumps(tasks, actions, SEEN, a)
        prior = x @ tasks.truth.prior(tasks.action_features)[0][0, a]
        rows = np.concatenate([np.ones((1, 1)), tasks.contexts[:, T - 1, :-1]], axis=1)[:, None]
        drawn = belief._posterior.sample(np.tile(rows[:, None], (1, 6000, 1, 1)), T - 1, belief._rngs)[0, :, 0, a, 0]
        stays = (1 - RATE) ** (T - 1 - SEEN)
        now = belief.expected(tasks.contexts[:, T - 1])[0, a]
        none = _mean_without_jump(tasks, actions, x, a)
        expected = now + shares[0] * (1 - stays) * (prior - none)
        assert abs(drawn.mean() - expected) < 5 * drawn.std() / np.sqrt(6000)


def _mean_without_jump(tasks, actions, row, a):
    x = np.concatenate([np.ones((T, 1)), tasks.contexts[0, :, :-1]], axis=1).astype(np.float64)
    mean, variance = (part[0, a] for part in tasks.truth.prior(tasks.action_features))
    at = np.flatnonzero(actions == a)
    precision = np.diag(1 / variance) + x[at].T @ x[at]
    return row @ np.linalg.solve(precision, mean / variance + x[at].T @ tasks.outcomes[0, at, a])


def test_the_marginal_is_the_sum_over_all_times():
    setting = make_tasks("drifting", outcomes="gaussian", drift="jump", rate=RATE)
    rows, model = setting.sample_actions(0, range(2), 8), ExactModel(setting.truth)
    found = model.log_marginal(rows.action_features, rows.contexts, rows.outcomes, np.random.default_rng(0))
    x, (mean, variance) = model.design(rows.contexts), model.prior(rows.action_features[:, None])
    for i in range(2):
        logs = []
        for when in range(8):
            late = np.arange(8) >= when
            blocks = np.equal.outer(late, late)
            covariance = blocks * ((x[i] * variance[i, 0]) @ x[i].T) + np.eye(8)
            log = 7 * np.log1p(-RATE) if when == 0 else (when - 1) * np.log1p(-RATE) + np.log(RATE)
            logs.append(log + multivariate_normal(x[i] @ mean[i, 0], covariance).logpdf(rows.outcomes[i]))
        assert np.isclose(found[i], logsumexp(logs), atol=1e-4)
