import itertools
import math

import numpy as np
import pytest

from gents_gym.numerics.cubature import hermite_rule, normal_cubature


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_it_is_exact_up_to_degree_five(size):
    nodes, weights = normal_cubature(size)
    assert nodes.shape == (1 + 2 * size + 2**size, size)
    assert (weights > 0).all()
    for degree in range(6):
        for powers in itertools.combinations_with_replacement(range(size), degree):
            counts = np.bincount(powers, minlength=size)
            exact = math.prod(0 if n % 2 else math.prod(range(1, n, 2)) for n in counts)  # moments of standard normals
            assert weights @ np.prod(nodes**counts, axis=1) == pytest.approx(exact, abs=1e-9)


def test_of_one_variable_it_is_gausss_rule():
    nodes, weights = normal_cubature(1)
    wanted, shares = np.polynomial.hermite_e.hermegauss(3)
    for node, share in zip(wanted, shares / shares.sum(), strict=True):
        assert weights[np.isclose(nodes[:, 0], node)].sum() == pytest.approx(share)


def test_of_seven_nodes_gausss_rule_is_exact_up_to_degree_thirteen():
    nodes, weights = hermite_rule(7)
    for power in range(14):
        exact = 0 if power % 2 else math.prod(range(1, power, 2))
        assert weights @ nodes**power == pytest.approx(exact, rel=1e-9, abs=1e-7)
