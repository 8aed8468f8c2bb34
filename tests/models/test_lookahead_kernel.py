"""The compiled outlook against the same in a few plain lines, in double precision."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from gents_gym.models.lookahead_kernel import look_ahead_filter
from gents_gym.numerics.cubature import hermite_rule

COUNTS = np.array([1, 4, 256], np.float32)
NODES, WEIGHTS = hermite_rule(7)


def problem(n_tasks=3, n_actions=4, n_rows=9, size=3, seed=0):
    """Return a row and imagined rows, means and covariances of random actions."""
    rng = np.random.default_rng(seed)
    row, rows = rng.normal(size=(n_tasks, size)), rng.normal(size=(n_tasks, n_rows, size))
    mean = rng.normal(size=(n_tasks * n_actions, size))
    roots = 0.6 * rng.normal(size=(n_tasks * n_actions, size, size))
    return [part.astype(np.float32) for part in (row, rows, mean, roots @ roots.swapaxes(1, 2))]


def run(binary, scale, noise, given):
    rule = (NODES.astype(np.float32), WEIGHTS.astype(np.float32))
    return look_ahead_filter(binary, scale, noise, *given, COUNTS, *rule)


def plain(mean, covariance, rows):
    """Return P(Y=1) in rows (C, K)."""
    spread = np.einsum("ck,kj,cj->c", rows, covariance, rows)
    return expit(rows @ mean / np.sqrt(1 + np.pi * spread / 8))


def after_binary(mean, covariance, row, count):
    """Yield the probability of each case after this many observations in the row, with the moments then."""
    direction = covariance @ row
    spread = row @ direction
    shrink = 1 / np.sqrt(1 + np.pi * spread / 8)
    chance = expit(shrink * row @ mean)
    h = shrink**2 * chance * (1 - chance)
    noise = 1 / h - spread  # one observation with such noise takes as much variance away
    g = count / (count * spread + noise)
    less = covariance - g * np.outer(direction, direction)
    if count == 1:
        yield chance, mean + direction * shrink * (1 - chance), less
        yield 1 - chance, mean - direction * shrink * chance, less
    else:
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            yield weight, mean + direction * np.sqrt(g) * node, less


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.9, -0.5)])
def test_binary_gains_are_those_of_the_formulas(scale):
    given = problem()
    gains, _ = run(True, scale, 0.0, given)
    row, rows, mean, covariance = (part.astype(np.float64) for part in given)
    for b in range(len(row)):
        own = slice(4 * b, 4 * b + 4)
        now = np.stack([plain(m, p, rows[b]) for m, p in zip(mean[own], covariance[own], strict=True)])  # (A, C)
        for a in range(4):
            for i, count in enumerate(COUNTS.astype(int)):
                most, centre = 0.0, 0.0
                for weight, m, p in after_binary(mean[4 * b + a], covariance[4 * b + a], row[b], count):
                    values = now.copy()
                    values[a] = plain(m, p, rows[b])
                    values = scale[0] + scale[1] * values
                    most, centre = most + weight * values.max(axis=0), centre + weight * values
                assert gains[b, a, i] == pytest.approx((most - centre.max(axis=0)).mean(), abs=1e-6)


def expected_maximum(centre, deviation, rival):
    """Return E[max(f, rival)] of f ~ N(centre, deviation²), by integration on both sides of the rival."""
    ends = sorted([centre - 9 * deviation, centre + 9 * deviation, rival])
    law = norm(centre, deviation)
    return sum(quad(lambda f: max(f, rival) * law.pdf(f), *ends[j : j + 2])[0] for j in (0, 1))


def test_gaussian_gains_are_expected_maxima():
    given, shift, unit, noise = problem(n_tasks=2, n_rows=4), 0.3, 1.7, 0.5
    gains, _ = run(False, (shift, unit), noise, given)
    row, rows, mean, covariance = (part.astype(np.float64) for part in given)
    for b in range(len(row)):
        now = shift + unit * rows[b] @ mean[4 * b : 4 * b + 4].T  # (C, A)
        for a in range(4):
            p = covariance[4 * b + a]
            for i, count in enumerate(COUNTS):
                precision = np.linalg.inv(p) + count / noise * np.outer(row[b], row[b])  # of the posterior
                moved = unit**2 * np.einsum("ck,kj,cj->c", rows[b], p - np.linalg.inv(precision), rows[b])
                rivals = np.delete(now, a, axis=1).max(axis=1)
                wanted = 0.0
                for centre, variance, rival in zip(now[:, a], moved, rivals, strict=True):
                    wanted += (expected_maximum(centre, np.sqrt(variance), rival) - max(centre, rival)) / len(now)
                assert gains[b, a, i] == pytest.approx(wanted, abs=2e-5, rel=2e-4)


def test_shares_count_the_rows_of_an_action_by_what_they_say():
    given = problem()
    _, shares = run(True, (0.0, 1.0), 0.0, given)
    row, rows, mean, covariance = given
    for b in range(len(row)):
        now = np.stack([plain(mean[4 * b + a], covariance[4 * b + a], rows[b]) for a in range(4)])  # (A, C)
        for a in range(4):
            p = covariance[4 * b + a]
            squares = (
                (rows[b] @ p @ row[b]) ** 2 / np.einsum("ck,kj,cj->c", rows[b], p, rows[b]) / (row[b] @ p @ row[b])
            )
            assert shares[b, a] == pytest.approx(((now.argmax(axis=0) == a) * squares).mean(), abs=1e-5)


def test_a_task_does_not_depend_on_the_batch():
    whole = problem(n_tasks=5)
    together = run(True, (0.0, 1.0), 0.0, whole)
    for b in range(5):
        own = slice(4 * b, 4 * b + 4)
        parts = [whole[0][b : b + 1], whole[1][b : b + 1], whole[2][own], whole[3][own]]
        alone = run(True, (0.0, 1.0), 0.0, parts)
        assert all(np.array_equal(one[b : b + 1], other) for one, other in zip(together, alone, strict=True))


@pytest.mark.parametrize("binary", [True, False])
def test_nothing_is_gained_where_nothing_is_left_to_learn(binary):
    row, rows, mean, covariance = problem()
    gains, shares = run(binary, (0.0, 1.0), 1.0, [row, rows, mean, 0 * covariance])
    assert np.abs(gains).max() < 1e-7  # rounding
    assert np.isfinite(shares).all()
