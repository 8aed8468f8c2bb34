import math

import numpy as np
import pytest
from scipy.stats import norm

from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training import urn
from gents_gym.training.urn import fit_urn


def polya(bank, alpha, length, rng):
    """Draw one task's contexts from the urn itself."""
    drawn = []
    for t in range(length):
        own = rng.random() < t / (alpha + t)
        drawn.append(drawn[rng.integers(t)] if own else bank[rng.integers(len(bank))])
    return np.array(drawn)


@pytest.mark.parametrize("alpha", [0.5, 5, 50])
def test_the_mass_behind_an_urn_is_recovered(alpha):
    rng = np.random.default_rng(0)
    bank = rng.normal(size=(1000, 5))
    found = fit_urn([polya(bank, alpha, 100, rng) for _ in range(50)], bank)
    assert abs(math.log(found / alpha)) < 0.35


def test_the_fit_is_the_maximum_of_the_likelihood_written_out():
    rng = np.random.default_rng(1)
    bank = rng.normal(size=(20, 2))
    tasks = [polya(bank, 2, 15, rng) + 0.05 * rng.normal(size=(15, 2)) for _ in range(12)]

    def density(x, centers, width):
        return norm.pdf(x, centers, width).prod(axis=1).mean()

    def among(width):
        return np.prod([density(x, np.delete(bank, i, 0), width) for i, x in enumerate(bank)])

    wide = max(urn.WIDTHS, key=among)
    alphas = np.geomspace(0.1, 100, 60)
    best = -np.inf
    for width in urn.WIDTHS[wide >= urn.WIDTHS]:
        score = np.zeros(60)
        for task in tasks:
            for t in range(1, 15):
                own, far = density(task[t], task[:t], width), density(task[t], bank, wide)
                score += np.log((t * own + alphas * far) / (t + alphas))
        if score.max() > best:
            best, expected = score.max(), alphas[score.argmax()]
    assert fit_urn(tasks, bank) == pytest.approx(expected, rel=0.13)  # a step of the grid


@pytest.mark.parametrize(("spread", "low", "high"), [(1.0, math.inf, math.inf), (0.3, 0, 0.5), (0.0, 0, 0.01)])
@pytest.mark.parametrize("size", [2, 8])
def test_contexts_that_are_alike_without_being_equal(spread, low, high, size):
    tasks = Synthetic(context_spread=spread, context_dim=size, horizon=100)
    bank = np.random.default_rng(0).normal(size=(1000, size))
    assert low <= fit_urn(list(tasks.sample(0, range(40), "train").contexts), bank) <= high


def test_what_is_not_known_is_the_bank():
    rng = np.random.default_rng(0)
    bank, task = rng.normal(size=(50, 3)), np.zeros((30, 3))
    assert fit_urn([], bank) == math.inf
    assert fit_urn([task], bank) == math.inf
    assert fit_urn([task[:1]] * 5, bank) == math.inf
    assert fit_urn([task] * 5, np.ones((50, 3))) == math.inf


def test_columns_that_never_vary_count_for_nothing():
    rng = np.random.default_rng(2)
    bank = rng.normal(size=(300, 3))
    tasks = [polya(bank, 4, 40, rng) for _ in range(20)]
    wider = [np.concatenate([task, np.ones((40, 2))], axis=1) for task in tasks]
    assert fit_urn(wider, np.concatenate([bank, np.ones((300, 2))], axis=1)) == fit_urn(tasks, bank)


def test_tasks_of_different_lengths():
    rng = np.random.default_rng(3)
    bank = rng.normal(size=(300, 3))
    found = fit_urn([polya(bank, 4, length, rng) for length in rng.integers(1, 120, size=50)], bank)
    assert abs(math.log(found / 4)) < 0.5
