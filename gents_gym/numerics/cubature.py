"""Computes nodes and weights of quadrature rules for standard normal distributions."""

import numpy as np


def normal_cubature(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (n, Q) and positive weights (n,) that are exact for polynomials of degree 5 under N(0, I_Q).

    The nodes are the centre and, on the sphere of radius √(Q+2), the points on the axes and the corners of a cube: n =
    1 + 2Q + 2^Q. For Q = 1 it is Gauss's rule with three nodes.
    """
    axes = np.concatenate([np.eye(size), -np.eye(size)])
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * size, indexing="ij"), axis=-1).reshape(-1, size) / np.sqrt(size)
    nodes = np.sqrt(size + 2) * np.concatenate([np.zeros((1, size)), axes, corners])
    shares = [2 / (size + 2), *[1 / (size + 2) ** 2] * len(axes), *[(size / (size + 2)) ** 2 / 2**size] * len(corners)]
    return nodes, np.array(shares)


def hermite_rule(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights, (n,) each, of Gauss's rule for N(0, 1): exact for polynomials of degree 2n - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()
