import numpy as np
import pytest
from numpy.polynomial.legendre import legval
from sklearn.linear_model import LinearRegression, LogisticRegression

from gents_gym import InputError, make_policy
from gents_gym.policies.moving import with_time

B, T, A, D = 2, 60, 2, 3


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(B, T, D)).astype(np.float32)
    x[..., -1] = np.arange(T) / T
    return x, (rng.random((B, T, A)) < 0.5).astype(np.float32)


def expand(x, degree):
    """X, followed by products of (1, X) with Legendre polynomials of the time."""
    time, rows = 2 * x[:, -1] - 1, np.column_stack([np.ones(len(x)), x[:, :-1]])
    bends = [legval(time, np.eye(degree + 1)[j])[:, None] * rows for j in range(1, degree + 1)]
    return np.column_stack([x[:, :-1], *bends])


@pytest.mark.parametrize("degree", [1, 3])
def test_least_squares_that_move_are_scikit_learns_on_products_with_time(tables, degree):
    x, y = tables
    policy = make_policy("moving", degree=degree).fit(x, y)
    for b in range(B):
        assert np.allclose(with_time(x, degree)[b], expand(x[b].astype(np.float64), degree), atol=1e-5)
        for a in range(A):
            theirs = LinearRegression().fit(expand(x[b], degree), y[b, :, a]).predict(expand(x[b], degree))
            assert np.allclose(policy.scores(x)[b, :, a], theirs, atol=1e-3)
    assert np.allclose(policy.scores(x[:, 5]), policy.scores(x)[:, 5], atol=1e-6)


def test_logistic_policies_that_move(tables):
    x, y = tables
    policy = make_policy("moving(base=logistic, degree=2)").fit(x, y, np.ones(0))
    theirs = LogisticRegression().fit(expand(x[0], 2), y[0, :, 0]).predict_proba(expand(x[0], 2))[:, 1]
    assert np.allclose(policy.scores(x)[0, :, 0], theirs, atol=2e-3)
    again = make_policy("moving(base=logistic, degree=2)").fit(x, y, policy)
    assert np.allclose(again.scores(x), policy.scores(x), atol=2e-3)


def test_rows_without_weight_do_not_count(tables):
    x, y = tables
    weights = np.ones_like(y)
    weights[:, 40:] = 0
    some, few = (
        make_policy("moving(degree=1)").fit(*given) for given in ((x, y, None, weights), (x[:, :40], y[:, :40]))
    )
    assert np.allclose(some.scores(x), few.scores(x), atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree must be at least 1, got 0"),
        ({"degree": 9}, "degree must be at most 8, got 9"),
        ({"base": "mlp"}, "unknown base of moving: 'mlp'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_policy("moving", **options)
