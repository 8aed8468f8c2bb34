"""Samples p* of binary outcomes whose coefficients move or correlate, by a chain with a known error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_integer
from gents_gym.likelihoods import BERNOULLI, Likelihood
from gents_gym.models.chain import ChainPosterior
from gents_gym.models.exact import ExactBelief, design_rows, flat_prior
from gents_gym.models.jump_chain import JumpChainPosterior
from gents_gym.models.ledger import Ledger
from gents_gym.types import TaskInfo, Truth


@dataclass(frozen=True)
class ReferenceModel:
    """p* of binary outcomes of a setting that publishes its :class:`gents_gym.types.Truth`, in which things move.

    There is no closed form, so it is not called exact. A draw is the end of a chain of its own, of
    :mod:`gents_gym.models.chain` or, for a jump, :mod:`gents_gym.models.jump_chain`. An expectation averages over
    independent draws, and :meth:`error` is its Monte-Carlo error.
    """

    truth: Truth
    n_steps: int = 8  # of the chain behind a draw
    n_draws: int = 64  # behind an expectation

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_draws", self.n_draws, 2)
        if self.likelihood != BERNOULLI:
            rule = "model 'reference' is for bernoulli outcomes (others have model 'exact')"
            raise InputError(f"{rule}, got {self.likelihood} ones")
        if self.truth.jumps and self.truth.correlation:
            rule = "correlation must be 0 for a jump in model 'reference'"
            raise InputError(f"{rule}, got {self.truth.correlation}")

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        return self.truth.likelihood

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> ExactBelief:
        """Return the belief of B new tasks."""
        return ExactBelief(self, info, rngs)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return nature's features of contexts, (..., D) to (..., D'); None if they are the contexts."""
        return None if self.truth.context_map is None else self.truth.context_map(contexts)

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> None:
        """Return None: p* has no hidden layer."""

    def design(self, contexts: np.ndarray) -> np.ndarray:
        """Return (1, φ_X(X)) in double precision, (..., D) to (..., K)."""
        return design_rows(self.truth, contexts)

    def posterior(self, action_features: np.ndarray, ledger: Ledger) -> ChainPosterior | JumpChainPosterior:
        """Return the posterior of B·A actions (B, A, F) that nothing is observed of yet."""
        mean, variance = flat_prior(self.truth, action_features)
        if self.truth.jumps:
            prior = self.truth, ledger, mean, variance
            return JumpChainPosterior(*prior, n_steps=self.n_steps, n_draws=self.n_draws)
        return ChainPosterior(self.truth, ledger, self.n_steps, self.n_draws, mean, np.sqrt(variance))

    def error(self, belief: ExactBelief, contexts: np.ndarray) -> np.ndarray:
        """Return the standard errors of what a belief of this model expects, in the shapes of its ``expected``."""
        return np.sqrt(belief.variance(contexts) / (self.n_draws - 1))
