"""Estimates against enumeration and closed forms."""

import itertools
import math

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.theory.estimates import (
    Step,
    corrected_entropy,
    count_actions,
    divergence,
    estimate,
    one_step,
    plug_in_entropy,
    pooled_ratio,
)

# P(π* = a, Y^(0) = y, Y^(1) = z), by (a, y, z): the oracle tends to play what comes out as 1.
PROBLEM = {(0, 1, 0): 7, (0, 1, 1): 2, (0, 0, 0): 1, (1, 0, 1): 4, (1, 1, 1): 2, (1, 0, 0): 2, (1, 1, 0): 2}
TOTAL = sum(PROBLEM.values())


def chance(event):
    return sum(weight for case, weight in PROBLEM.items() if event(*case)) / TOTAL


def enumerate_step():
    """Return Δ and I(π*; (Y^(A), A)) for A independent of (π*, Y) with the law of π*."""
    plays = [chance(lambda a, *_, one=one: a == one) for one in (0, 1)]
    earned = chance(lambda a, *y: y[a] == 1)
    regret = earned - sum(plays[one] * chance(lambda a, *y, one=one: y[one] == 1) for one in (0, 1))
    gain = 0.0
    for action, best, outcome in itertools.product((0, 1), repeat=3):
        joint = sum(w for (a, *y), w in PROBLEM.items() if a == best and y[action] == outcome) / TOTAL
        alone = plays[best] * sum(w for (_, *y), w in PROBLEM.items() if y[action] == outcome) / TOTAL
        gain += plays[action] * joint * math.log(joint / alone) if joint else 0
    return regret, gain


def draw(size, seed=0):
    """Return plays and outcomes of independent draws of the problem."""
    cases = np.array(list(PROBLEM))
    rng = np.random.default_rng(seed)
    picked = cases[rng.choice(len(cases), size, p=np.array([*PROBLEM.values()]) / TOTAL)]
    return picked[..., 0], picked[..., 1:].astype(np.float32)


def test_information_and_regret_by_enumeration():
    cases = np.array([case for case, weight in PROBLEM.items() for _ in range(weight)] * 50)
    n = len(cases)
    step = one_step(cases[:, 0], cases[:, 1:].astype(np.float32))
    regret, gain = enumerate_step()
    assert step.regret == pytest.approx(regret * n / (n - 1))
    assert step.gain == pytest.approx(gain - 1 / (2 * n))  # the correction for two actions
    assert 0 < regret**2 / gain < 2 / 2  # A/2


def test_estimates_from_few_draws_are_right_on_average():
    step = one_step(*draw((20_000, 30)))
    regret, gain = enumerate_step()
    for found, true in ((step.regret, regret), (step.square, regret**2)):
        assert abs(found.mean() - true) < 4 * found.std() / np.sqrt(len(found))
    assert step.gain.mean() == pytest.approx(gain, rel=0.02)
    ratio = pooled_ratio(step)
    assert abs(ratio.mean - regret**2 / gain) < 4 * ratio.error + 0.02 * ratio.mean


def test_a_ratio_needs_information():
    noise = np.array([1.0, -1.0, 0.5, -0.5])
    assert pooled_ratio(Step(noise, noise**2, noise)) is None
    assert pooled_ratio(Step(np.ones(4), np.full(4, 0.5), np.full(4, 0.25))) == (2.0, 0.0)
    with pytest.raises(InputError, match="draws must be at least 4"):
        one_step(np.zeros(3, np.int64), np.zeros((3, 2)))


def test_divergence_of_known_distributions():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    kl, variation = divergence(1e7 * p, 1e7 * q)
    assert kl == pytest.approx(0.5 * math.log(2.5) + 0.3 * math.log(1.5) + 0.2 * math.log(1 / 3), rel=1e-5)
    assert variation == pytest.approx(0.4)
    assert divergence(1e7 * p, 1e7 * p) == (0, 0)
    kl, variation = divergence(np.array([4, 0]), np.array([0, 4]))
    assert kl == pytest.approx(0.8 * math.log(9))  # (4.5, 0.5)/5 against its reverse
    assert variation == 1


def test_entropy_of_known_distributions():
    assert plug_in_entropy(np.full(8, 3)) == pytest.approx(math.log(8))
    assert plug_in_entropy(np.array([[5, 0], [1, 1]])) == pytest.approx([0, math.log(2)])
    law = np.array([0.5, 0.25, 0.125, 0.125])
    counts = np.random.default_rng(0).multinomial(40, law, 4000)
    true = -(law * np.log(law)).sum()
    assert plug_in_entropy(counts).mean() < true - 0.02
    assert corrected_entropy(counts).mean() == pytest.approx(true, abs=0.005)


def test_counts_and_means():
    assert count_actions(np.array([[0, 2, 2], [1, 1, 1]]), 3).tolist() == [[1, 0, 2], [0, 3, 0]]
    assert estimate(np.array([1.0, 3.0])) == (2.0, 1.0)
    assert math.isnan(estimate(np.array([1.0])).error)
