"""Least-squares policies against numpy's lstsq and scikit-learn's Ridge."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from gents_gym import InputError, make_policy
from gents_gym.construct import get_policy
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.policies.least_squares import LeastSquares


def problem(rng, n_tasks=1, n_actions=2, n_rows=None, size=None, scale=1.0, offset=0.0):
    n_rows, size = n_rows or int(rng.integers(12, 200)), size or int(rng.integers(1, 9))
    mixing = rng.normal(size=(size, size)) + 2 * np.eye(size)
    contexts = (scale * rng.normal(size=(n_tasks, n_rows, size)) @ mixing + offset).astype(np.float32)
    slopes = rng.normal(size=(n_tasks, size, n_actions)) / scale
    outcomes = contexts @ slopes + rng.normal(size=(n_tasks, n_rows, n_actions)) + rng.normal()
    return contexts, outcomes.astype(np.float32)


def straight(contexts, rewards, weights=None):
    """numpy's least squares of one column on (1, X)."""
    rows = np.column_stack([np.ones(len(contexts)), contexts.astype(np.float64)])
    root = np.sqrt(np.ones(len(rows)) if weights is None else weights.astype(np.float64))
    return np.linalg.lstsq(root[:, None] * rows, root * rewards.astype(np.float64), rcond=None)[0]


def penalised(contexts, rewards, alpha, weights=None):
    """scikit-learn's Ridge of one column."""
    fitted = Ridge(alpha=alpha, solver="svd").fit(contexts.astype(np.float64), rewards.astype(np.float64), weights)
    return np.append(fitted.intercept_, fitted.coef_)


def test_fits_without_penalty_are_numpys_least_squares():
    rng = np.random.default_rng(0)
    for _ in range(200):
        contexts, outcomes = problem(rng)
        found = LeastSquares(alpha=0).fit(contexts, outcomes).coefficients[0]
        for a in range(2):
            assert np.allclose(found[a], straight(contexts[0], outcomes[0, :, a]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 0.01, 1.0, 30.0])
def test_fits_are_scikit_learns_ridge(alpha, weighted):
    rng = np.random.default_rng(1)
    for _ in range(200):
        contexts, outcomes = problem(rng)
        weights = rng.gamma(1, 1, outcomes.shape).astype(np.float32) if weighted else None
        found = LeastSquares(alpha).fit(contexts, outcomes, weights=weights).coefficients[0]
        for a in range(2):
            theirs = penalised(contexts[0], outcomes[0, :, a], alpha, None if weights is None else weights[0, :, a])
            assert np.allclose(found[a], theirs, rtol=1e-6, atol=1e-6)


def test_a_batch_is_its_tasks_to_the_bit():
    rng = np.random.default_rng(2)
    contexts, outcomes = problem(rng, n_tasks=7, n_actions=4, n_rows=30, size=5)
    weights = rng.gamma(1, 1, outcomes.shape).astype(np.float32)
    for given in (None, weights):
        every = LeastSquares().fit(contexts, outcomes, weights=given).coefficients
        for i in range(7):
            some = None if given is None else given[i : i + 1]
            alone = LeastSquares().fit(contexts[i : i + 1], outcomes[i : i + 1], weights=some).coefficients
            assert np.array_equal(every[i : i + 1], alone)


def test_rows_of_weight_zero_are_out_and_weights_are_repetitions():
    rng = np.random.default_rng(3)
    contexts, outcomes = problem(rng, n_actions=3, n_rows=60, size=4)
    weights = rng.integers(0, 4, outcomes.shape).astype(np.float32)
    outcomes[weights == 0] = 1e6
    found = LeastSquares().fit(contexts, outcomes, weights=weights).coefficients[0]
    for a in range(3):
        times = weights[0, :, a].astype(int)
        repeated = straight(np.repeat(contexts[0], times, axis=0), np.repeat(outcomes[0, :, a], times))
        assert np.allclose(found[a], repeated, rtol=1e-6, atol=1e-6)


def test_contexts_far_from_zero_and_of_other_units_cost_no_digits():
    rng = np.random.default_rng(4)
    for scale, offset in ((1, 1000), (1e3, 0), (1e-3, 0), (1e3, 1e4)):
        contexts, outcomes = problem(rng, n_rows=100, size=5, scale=scale, offset=offset)
        found = LeastSquares(0).fit(contexts, outcomes)
        for a in range(2):
            centre = contexts[0].astype(np.float64).mean(axis=0)
            beta = straight(contexts[0] - centre, outcomes[0, :, a])
            expected = beta[0] + (contexts[0] - centre) @ beta[1:]
            assert np.allclose(found.scores(contexts)[0, :, a], expected, atol=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0, 1e-6])
@pytest.mark.parametrize("kind", ["few rows", "one row", "equal contexts", "a copy", "a sum", "zeros"])
def test_rows_that_do_not_determine_the_slopes_give_the_shortest(kind, alpha, weighted):
    rng = np.random.default_rng(5)
    n_rows = {"few rows": 4, "one row": 1}.get(kind, 40)
    contexts, outcomes = problem(rng, n_tasks=3, n_rows=n_rows, size=6)
    contexts = np.round(contexts * 64) / 64  # so that sums have no rounding
    if kind == "equal contexts":
        contexts[:] = contexts[:, :1]
    elif kind == "a copy":
        contexts[..., 3] = contexts[..., 1]
    elif kind == "a sum":
        contexts[..., 3] = contexts[..., 1] + contexts[..., 0]
    elif kind == "zeros":
        contexts[..., :2] = 0
    weights = np.full_like(outcomes, 2) if weighted else None
    found = LeastSquares(alpha).fit(contexts, outcomes, weights=weights).coefficients
    for b in range(3):
        x = contexts[b].astype(np.float64)
        centre = x.mean(axis=0)
        slopes = np.linalg.pinv(x - centre, rcond=1e-6) @ (outcomes[b] - outcomes[b].mean(axis=0))  # (D, A)
        assert np.allclose(found[b, :, 1:], slopes.T, rtol=1e-4, atol=1e-4)
        assert np.allclose(found[b, :, 0], outcomes[b].mean(axis=0) - centre @ slopes, rtol=1e-3, atol=1e-3)


def test_equal_outcomes_predict_themselves_and_no_rows_r_of_zero():
    rng = np.random.default_rng(6)
    contexts, outcomes = problem(rng, n_actions=2, n_rows=20, size=3)
    outcomes[..., 0] = 4
    weights = np.ones_like(outcomes)
    weights[..., 1] = 0
    policy = LeastSquares(reward_fn=lambda y: 10 - y).fit(contexts, outcomes, weights=weights)
    assert np.allclose(policy.scores(contexts)[0], [6, 10], atol=1e-9)


def test_rewards_are_what_is_fitted():
    contexts, outcomes = problem(np.random.default_rng(7), n_rows=50, size=3)
    reward_fn = lambda y: np.tanh(y) * 100  # noqa: E731
    found = make_policy("least-squares", reward_fn=reward_fn).fit(contexts, outcomes).scores(contexts)
    assert np.allclose(found, LeastSquares().fit(contexts, reward_fn(outcomes)).scores(contexts))
    first = LeastSquares(reward_fn=reward_fn).fit(contexts, outcomes).scores(contexts[:, 0])
    assert np.allclose(first, found[:, 0])


def test_read_only_tables_are_taken_and_stay():
    contexts, outcomes = problem(np.random.default_rng(8), n_rows=50, size=3)
    contexts.flags.writeable = outcomes.flags.writeable = False
    kept = outcomes.copy()
    LeastSquares().fit(contexts, outcomes)
    assert np.array_equal(outcomes, kept)


def test_bad_input():
    contexts, outcomes = problem(np.random.default_rng(9), n_rows=5, size=2)
    with pytest.raises(InputError, match="alpha must be at least 0, got -1"):
        LeastSquares(-1)
    with pytest.raises(InputError, match="weights must be at least 0, got -1"):
        LeastSquares().fit(contexts, outcomes, weights=-np.ones_like(outcomes))
    with pytest.raises(InputError, match="outcomes must be finite, got nan"):
        LeastSquares().fit(contexts, outcomes * np.nan)


@pytest.mark.parametrize("likelihood", [GAUSSIAN, Categorical(3)])
def test_a_class_for_coins_is_refused_beforehand_with_the_cure(likelihood):
    groups = {"group1": [[0.0]], "group2": [[1.0]], "epsilon": 0.1}
    for policy in ("logistic", "mlp", make_policy("constrained", **groups)):
        with pytest.raises(InputError, match=r"oracle must be a policy class for .* outcomes, such as least-squares"):
            get_policy("oracle", policy, likelihood=likelihood)
        get_policy("oracle", policy, likelihood=BERNOULLI)
    for policy in ("least-squares", make_policy("constrained", base="least-squares", **groups)):
        get_policy("oracle", policy, likelihood=likelihood)
        get_policy("oracle", policy, likelihood=BERNOULLI)


@pytest.mark.parametrize("policy", ["logistic", "mlp"])
def test_tables_of_other_outcomes_are_refused_with_the_cure(policy):
    contexts, outcomes = problem(np.random.default_rng(10), n_rows=5, size=2)
    with pytest.raises(InputError, match=r"outcomes must be 0 or 1, got .*: .* least-squares for others"):
        make_policy(policy).fit(contexts, outcomes)


def test_constrained_policies_on_least_squares_keep_the_constraint():
    rng = np.random.default_rng(11)
    contexts, outcomes = problem(rng, n_tasks=3, n_actions=3, n_rows=60, size=2)
    groups = rng.normal(0.5, 1, (2, 30, 2)) * np.array([1, -1])[:, None, None]
    made = make_policy("constrained", group1=groups[0], group2=groups[1], epsilon=0.05, base="least-squares")
    policy = made.fit(contexts, outcomes)
    played = [policy.scores(np.repeat(group[None], 3, axis=0)).argmax(axis=2) for group in groups]
    for action in range(3):
        assert np.abs((played[0] == action).mean(axis=1) - (played[1] == action).mean(axis=1)).max() <= 0.05 + 1e-9
