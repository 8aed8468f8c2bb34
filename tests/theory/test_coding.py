"""A code's lengths are those of a probability distribution, and it learns."""

import itertools

import numpy as np
import pytest

from gents_gym.theory.coding import code_length


def test_lengths_are_those_of_a_distribution():
    rng = np.random.default_rng(0)
    rows, center, variance = rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), rng.uniform(0.5, 2, (3, 2))
    chances = [
        np.exp(-code_length(np.array(labels), rows, center, variance))
        for labels in itertools.product(range(3), repeat=4)
    ]
    assert sum(chances) == pytest.approx(1, rel=1e-9)


def test_labels_of_a_linear_policy_are_learned():
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(300, 3)), rng.normal(size=(4, 3))
    labels = (rows @ weights.T).argmax(axis=1)
    prior = np.zeros((4, 3)), np.ones((4, 3))
    length = code_length(labels, rows, *prior)
    assert length < 0.35 * 300 * np.log(4)
    assert length < 0.5 * code_length(rng.permutation(labels), rows, *prior)
