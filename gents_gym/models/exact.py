"""The exact p*: Bayesian regression with the true prior, in closed form or by Monte Carlo chains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer, check_number
from gents_gym.likelihoods import Likelihood
from gents_gym.models.coefficients import CoefficientBelief, CoefficientModel
from gents_gym.models.conjugate import ConjugatePosterior, conjugate_marginal
from gents_gym.models.contexts import CONTEXT_MODELS, Sources
from gents_gym.models.jump import JumpPosterior, jump_marginal
from gents_gym.models.ledger import Ledger
from gents_gym.models.posterior import Posterior, SampledPosterior, sampled_marginal
from gents_gym.models.process import ProcessPosterior, walk_marginal
from gents_gym.types import TaskInfo, Truth


@dataclass(frozen=True)
class ExactModel:
    """p* of a setting that publishes its :class:`gents_gym.types.Truth`.

    Gaussian outcomes have a posterior in closed form. Posterior draws for others come from independence
    Metropolis-Hastings with Student proposals around the Laplace approximation. In the paper's settings each step
    accepts about three proposals in four, and with three categories three in five, so a chain forgets its start: draws
    are within 0.0001 of the posterior in total variation. Features or contexts far outside those settings make
    proposals worse and need more steps.
    """

    truth: Truth
    n_steps: int = 16  # chain steps per draw, for each of the C-1 linear predictors of an outcome
    n_weighted: int = 256  # weighted proposals per expectation or marginal likelihood

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_weighted", self.n_weighted, 1)
        check_number("the truth's noise", self.truth.noise, 0, above=True)
        if self.likelihood.support is not None and not self.truth.is_plain:
            rule = "model 'exact' needs gaussian outcomes if coefficients move or actions share them"
            raise InputError(f"{rule}, got {self.likelihood} ones: model 'reference' is for bernoulli ones")
        if self.truth.jumps and (self.truth.correlation or self.truth.row_effect):
            rule = "correlation and row_effect must be 0 for a jump in model 'exact'"
            raise InputError(f"{rule}, got {self.truth.correlation} and {self.truth.row_effect}")

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        return self.truth.likelihood

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> "ExactBelief":
        """Return the belief of B new tasks."""
        return ExactBelief(self, info, rngs)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the true features of contexts, (..., D) to (..., D'); None if they are the contexts."""
        return None if self.truth.context_map is None else self.truth.context_map(contexts)

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> None:
        """Return None: p* has no hidden layer."""

    def log_marginal(
        self, action_features: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return log p(Y | X, Z) of N single actions' rows, (N,); see :meth:`estimate_marginal`."""
        return self.estimate_marginal(action_features, contexts, outcomes, rng)[0]

    def estimate_marginal(
        self, action_features: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(Y | X, Z) of N single actions' rows, and its standard errors, (N,) each.

        For Gaussian outcomes the errors are 0; for others both are estimated by importance sampling.

        Args:
            action_features: (N, F).
            contexts: (N, R, D).
            outcomes: (N, R).
            rng: The source of the proposals.
        """
        prior, rows, outcomes = self.prior(action_features[:, None]), self.design(contexts), np.asarray(outcomes)
        if self.likelihood.support is None:
            if self.truth.rate:
                marginal = jump_marginal if self.truth.jumps else walk_marginal
                found = marginal(self.truth, prior[0][:, 0], prior[1][:, 0], rows, outcomes)
            else:  # single actions share nothing
                found = conjugate_marginal(ConjugatePosterior.prior(*prior, self.truth.noise), rows, outcomes)
            return found, np.zeros_like(found)
        return sampled_marginal(*prior, rows, outcomes, self.n_weighted, rng)

    def design(self, contexts: np.ndarray) -> np.ndarray:
        """Return (1, φ_X(X)) in double precision, (..., D) to (..., K)."""
        return design_rows(self.truth, contexts)

    def prior(self, action_features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the coefficients, (B, A, F) to (B, A, Q) each; a category's are contiguous."""
        return flat_prior(self.truth, action_features)

    def posterior(self, action_features: np.ndarray, ledger: Ledger) -> Posterior:
        """Return the posterior of B·A actions (B, A, F) without observations."""
        prior, support = self.prior(action_features), self.likelihood.support
        if not self.truth.is_plain:
            if self.truth.jumps:
                return JumpPosterior(self.truth, ledger, *prior)
            return ProcessPosterior.prior(self.truth, ledger, *prior)
        if support is None:
            return ConjugatePosterior.prior(*prior, self.truth.noise)
        n_steps = self.n_steps * (len(support) - 1)
        return SampledPosterior.prior(self.likelihood, n_steps, self.n_weighted, ledger, *prior)


def design_rows(truth: Truth, contexts: np.ndarray) -> np.ndarray:
    """Return (1, φ_X(X)) in double precision, (..., D) to (..., K)."""
    mapped = contexts if truth.context_map is None else truth.context_map(contexts)
    return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1).astype(np.float64)


def flat_prior(truth: Truth, action_features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the coefficients, (B, A, F) to (B, A, Q) each; a category's are contiguous."""
    mean, variance = truth.prior(action_features)
    shape = (*action_features.shape[:2], -1)
    return mean.reshape(shape), variance.reshape(shape)


class PublishedModel(CoefficientModel, Protocol):
    """A model of coefficients that knows p*."""

    @property
    def truth(self) -> Truth:
        """P*."""
        ...


class ExactBelief(CoefficientBelief):
    """What p* believes of B tasks.

    Future contexts come from the true distribution unless "own", "seen" or "given" is named. Entries known ahead, such
    as time, are used by default and with "given".
    """

    def __init__(self, model: PublishedModel, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        super().__init__(model, info, rngs)
        self._spread = model.truth.context_spread

    def _imagine(self, contexts: str | None, end: int, draws: int) -> np.ndarray:
        """Return the contexts so far and imagined ones after them, (B, M, T', D)."""
        t, spread = self._ledger.time, self._spread
        own = self._ledger.contexts[:, : t + 1]
        shape = (draws, end - t - 1, own.shape[2])
        if contexts is not None:
            check_choice("context model of p*:", contexts, ["own", "seen", "given"])
        if contexts is None or (contexts == "given" and self._ledger.known is not None):
            each = zip(own, self._rngs, strict=True)
            new = np.stack([_draw_contexts(mine, shape, spread, rng) for mine, rng in each])
            self._ledger.insert_known(new, t + 1)
        else:
            sources = Sources(0, t + 1, self._ledger.n_known, 0.0)
            picks = CONTEXT_MODELS[contexts](sources, shape[1], draws, self._rngs)
            new = self._ledger.contexts[np.arange(len(own))[:, None, None], -1 - picks]
        return np.concatenate([np.broadcast_to(own[:, None], (len(own), draws, *own.shape[1:])), new], axis=2)


def _draw_contexts(
    seen: np.ndarray, shape: tuple[int, int, int], spread: float, rng: np.random.Generator
) -> np.ndarray:
    """Return future contexts, (M, n, D), given the task's (t, D) so far.

    They are √(1 - s²) X̄ + s X, with X̄ drawn from its posterior.
    """
    normal = rng.standard_normal(shape, np.float32)
    if spread == 1:
        return normal
    pull = 1 - spread**2
    total = spread**2 + len(seen) * pull
    centre = rng.standard_normal((shape[0], 1, shape[2]), np.float32) * (spread / np.sqrt(total))
    centre += np.sqrt(pull) * seen.sum(axis=0) / total
    return (np.sqrt(pull) * centre + spread * normal).astype(np.float32)
