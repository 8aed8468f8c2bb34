import numpy as np
import pytest

from gents_gym import InputError, make_tasks

T = 30
both = pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])


@both
def test_without_effects_tasks_are_the_synthetic_ones_to_the_bit(outcomes):
    plain, free = (
        make_tasks(name, horizon=T, outcomes=outcomes, **options)
        for name, options in (("synthetic", {}), ("correlated", {"correlation": 0}))
    )
    assert free.sample(3, range(4)).content_hash == plain.sample(3, range(4)).content_hash


@both
def test_single_actions_are_the_synthetic_ones(outcomes):
    plain, shared = (make_tasks(name, outcomes=outcomes) for name in ("synthetic", "correlated"))
    assert shared.sample_actions(3, range(4), 9).content_hash == plain.sample_actions(3, range(4), 9).content_hash


@pytest.mark.parametrize("correlation", [0.3, 0.9, 1])
def test_coefficients_correlate(correlation):
    """In one row, standardised predictors of different actions of a task correlate as much as coefficients do."""
    setting = make_tasks("correlated", horizon=1, outcomes="gaussian", correlation=correlation)
    tasks = setting.sample(0, range(1500))
    predictors = tasks.means[:, 0].astype(np.float64)  # (B, A)
    rows = np.concatenate([np.ones((1500, 1)), tasks.contexts[:, 0]], axis=1)[:, None]  # (B, 1, K)
    mean, variance = setting.truth.prior(tasks.action_features)
    scaled = (predictors - (rows * mean).sum(-1)) / np.sqrt((rows**2 * variance).sum(-1))
    assert abs(scaled.var() - 1) < 0.08
    weights = np.sqrt(rows**2 * variance)  # of the coefficients in a predictor
    weights /= np.sqrt((weights**2).sum(-1, keepdims=True))
    for a, b in ((0, 1), (4, 8)):
        alike = (weights[:, a] * weights[:, b]).sum(-1)
        assert abs((scaled[:, a] * scaled[:, b]).mean() - correlation * alike.mean()) < 0.1


@both
def test_outcomes_of_a_row_correlate(outcomes):
    tasks = make_tasks("correlated", horizon=50, outcomes=outcomes, correlation=0, row_effect=0.6).sample(0, range(40))
    plain = make_tasks("synthetic", horizon=50, outcomes=outcomes).sample(0, range(40))
    assert np.allclose(tasks.means, plain.means, atol=1e-5)
    left = (tasks.outcomes - tasks.means).astype(np.float64)
    if outcomes == "gaussian":
        assert abs(left.var() - 1) < 0.05
        assert abs((left[..., 0] * left[..., 5]).mean() - 0.6) < 0.1
    else:
        assert abs(left.mean()) < 0.02
        assert (left[..., 0] * left[..., 5]).mean() > 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"correlation": -0.1}, "correlation must be at least 0, got -0.1"),
        ({"correlation": 1.1}, "correlation must be at most 1, got 1.1"),
        ({"row_effect": 1}, "row_effect must be below 1"),
        ({"outcomes": "categorical"}, "unknown outcomes 'categorical'; known: bernoulli, gaussian"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_tasks("correlated", **options)
