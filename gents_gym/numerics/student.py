"""Draws Student proposals around posterior modes, for importance weights and Metropolis-Hastings chains."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from gents_gym.numerics.multinomial import MultinomialProblems

FREEDOM = 6.0  # degrees of freedom: tails heavier than those of any posterior under a Gaussian prior
AT_ONCE = 1 << 14  # numbers per evaluation of proposals: few calls for one task, and small arrays for many


class Student(NamedTuple):
    """Student distributions around the modes of posteriors, for drawing proposals."""

    mode: np.ndarray  # (..., Q)
    root: np.ndarray  # an upper triangular square root of the inverse Hessian at the mode, (..., Q, Q)

    @classmethod
    def fit(cls, problems: MultinomialProblems) -> "Student":
        """Return the proposals for posteriors whose negative log densities are the objectives of ``problems``."""
        mode, chances = problems.solve()
        factor = np.linalg.cholesky(problems.hessian(chances))  # L, with LLᵀ the Hessian
        return cls(mode, np.linalg.inv(factor).swapaxes(-1, -2))

    def propose(
        self, problems: MultinomialProblems, normal: np.ndarray, squares: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return proposals (S, ..., Q) and their log weights (S, ...), up to a constant.

        Args:
            problems: The posteriors.
            normal: Standard normals, (S, ..., Q).
            squares: Chi-squares of ``FREEDOM`` degrees, (S, ...).
        """
        student, tails = stretch_numbers(normal, squares)
        proposals = self.mode + np.einsum("...pq,...q->...p", self.root, student)
        size = max(AT_ONCE // problems.work, 1)
        fit = [-problems.loss(proposals[first : first + size])[0] for first in range(0, len(proposals), size)]
        return proposals, np.concatenate(fit) + tails

    def log_constant(self, variance: np.ndarray) -> np.ndarray:
        """Return that constant, (...), if log weights are of p(Y, β), with a prior of variances (..., Q)."""
        size = self.mode.shape[-1]
        return (
            -0.5 * size * np.log(2 * np.pi)
            - 0.5 * np.log(variance).sum(axis=-1)
            + np.log(np.diagonal(self.root, axis1=-2, axis2=-1)).sum(axis=-1)
            - gammaln((FREEDOM + size) / 2)
            + gammaln(FREEDOM / 2)
            + 0.5 * size * np.log(FREEDOM * np.pi)
        )


def draw_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the random numbers for proposals (S, ..., Q): standard normals of that shape, and chi-squares (S, ...)."""
    return rng.standard_normal(shape), rng.chisquare(FREEDOM, shape[:-1])


def stretch_numbers(normal: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standard Student vectors (..., Q), and minus their log densities up to a constant, (...)."""
    student = normal * np.sqrt(FREEDOM / squares)[..., None]
    return student, 0.5 * (FREEDOM + normal.shape[-1]) * np.log1p((student**2).sum(axis=-1) / FREEDOM)


def last_state(proposals: np.ndarray, weights: np.ndarray, log_uniform: np.ndarray) -> np.ndarray:
    """Return the end of the chain over the S proposals, (S, ..., Q) to (..., Q).

    It is an independence Metropolis-Hastings chain, which starts at the first proposal.

    Args:
        proposals: (S, ..., Q).
        weights: Their log weights, (S, ...).
        log_uniform: Logarithms of uniform numbers, (S, ...).
    """
    state, weight = proposals[0], weights[0]
    for proposal, new_weight, threshold in zip(proposals[1:], weights[1:], log_uniform[1:], strict=True):
        accepted = threshold < new_weight - weight
        state = np.where(accepted[..., None], proposal, state)
        weight = np.where(accepted, new_weight, weight)
    return state
