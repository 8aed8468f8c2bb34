"""The exact p*: Bayesian logistic regression with known Gaussian priors; histories in, posterior draws out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from gents_gym.checks import InputError, check_array, check_integer
from gents_gym.newton import LogisticProblems
from gents_gym.types import History

FREEDOM = 6.0  # of the Student proposals: their tails are heavier than any posterior's
FEATURE_DIM = 2  # size of φ_Z
SPREAD = 0.25  # standard deviation of U_Z, U_X and U_cross around 1


def paper_prior(features: np.ndarray, n_slopes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the coefficients (intercept first) given φ_Z, (..., 2) to (..., 1+n_slopes) each.

    Both settings of the paper: intercept ~ N(1·φ_Z, 1 + 0.25²|φ_Z|²), slope_j ~ N(1 + φ_Z,j, 0.25²(1 + φ_Z,j²)) for
    the first two, N(1, 0.25²) for the others, all independent.
    """
    features = np.asarray(features, np.float64)
    if features.shape[-1] != FEATURE_DIM:
        rule = f"action_features must be φ_Z, {FEATURE_DIM} entries, for p* (where φ is hidden, exact-twin knows it)"
        raise InputError(f"{rule}, got {features.shape[-1]}")
    mean = np.ones((*features.shape[:-1], 1 + n_slopes))
    variance = np.full_like(mean, SPREAD**2)
    mean[..., 0] = features.sum(axis=-1)
    variance[..., 0] = 1 + SPREAD**2 * (features**2).sum(axis=-1)
    mean[..., 1 : 1 + FEATURE_DIM] += features
    variance[..., 1 : 1 + FEATURE_DIM] *= 1 + features**2
    return mean, variance


@dataclass(frozen=True)
class ExactModel:
    """The paper's p* for the synthetic setting, or for the news setting with its φ given; an ``Imputer``.

    Posterior draws come from independence Metropolis–Hastings with Student proposals around the Laplace
    approximation. In the settings of the paper the proposals are near the posterior, so a short chain forgets its
    start. Features or contexts far beyond those settings' make them worse, and want more steps.
    """

    n_steps: int = 16  # steps of the chain; in the paper's settings each accepts about three proposals in four
    n_weighted: int = 256  # weighted proposals behind an expectation or a marginal likelihood
    context_map: Callable[[np.ndarray], np.ndarray] | None = None  # φ_X, (..., D) to (..., D'); None: the identity

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_weighted", self.n_weighted, 1)

    def impute(
        self, history: History, contexts: np.ndarray, rngs: Sequence[np.random.Generator], past: bool = True
    ) -> np.ndarray:
        """Return a completed table (B, T', A): parameters from their posterior, then the missing outcomes.

        Args:
            history: What was observed, t rows.
            contexts: (B, T', D).
            rngs: One generator per task.
            past: Whether the first t contexts are the history's own; if not, all are new.
        """
        contexts = check_array("contexts", contexts, "(B, T', D)", (len(history), -1, history.context_dim))
        coefficients = self.draw(history, rngs)[:, 0]  # (B, A, K)
        chances = expit(self._rows(contexts) @ coefficients.swapaxes(1, 2))  # (B, T', A)
        uniform = np.stack([rng.random(chances.shape[1:]) for rng in rngs])
        table = (uniform < chances).astype(np.float32)
        return history.fill_in(table) if past else table

    def draw(self, history: History, rngs: Sequence[np.random.Generator], n_draws: int = 1) -> np.ndarray:
        """Return independent posterior draws of the coefficients, intercept first, (B, M, A, K)."""
        posterior = self._posterior(history)
        n_steps = self.n_steps
        shape = (n_draws * n_steps, *posterior.shape)  # (M·S, A, K)
        draws = []
        drawn = [_proposal_numbers(rng, shape) for rng in rngs]
        proposals, weights = posterior.propose(*(np.stack(part, axis=1) for part in zip(*drawn, strict=True)))
        log_uniform = np.log(np.stack([rng.random(shape[:2]) for rng in rngs], axis=1))  # (M·S, B, A)
        for first in range(0, len(proposals), n_steps):
            here = slice(first, first + n_steps)
            draws.append(_last_state(proposals[here], weights[here], log_uniform[here]))
        return np.stack(draws, axis=1)

    def probability(self, history: History, context: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Return the posterior predictive P(Y=1) of every action, (B, D) to (B, A)."""
        context = check_array("context", context, "(B, D)", (len(history), history.context_dim))
        posterior = self._posterior(history)
        drawn = [_proposal_numbers(rng, (self.n_weighted, *posterior.shape)) for rng in rngs]
        proposals, weights = posterior.propose(*(np.stack(part, axis=1) for part in zip(*drawn, strict=True)))
        chances = expit(np.einsum("sbak,bk->sba", proposals, self._rows(context)))
        share = np.exp(weights - logsumexp(weights, axis=0))
        return (share * chances).sum(axis=0)

    def log_marginal(
        self, action_features: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return log p(Y | X, Z) of N single actions' rows, by importance sampling, (N,).

        Args:
            action_features: (N, F).
            contexts: (N, R, D).
            outcomes: (N, R).
            rng: The source of the proposals.
        """
        rows = self._rows(contexts)
        mean, variance = paper_prior(action_features[:, None], rows.shape[2] - 1)  # (N, 1, K)
        posterior = _Posterior(rows, np.asarray(outcomes, np.float64)[..., None], None, mean, variance)
        weights = [
            posterior.propose(*(part[:, :, None] for part in _proposal_numbers(rng, (1, *mean[:, 0].shape))))[1]
            for _ in range(self.n_weighted)
        ]
        found = logsumexp(np.concatenate(weights), axis=0)[:, 0] - np.log(self.n_weighted)
        return found + posterior.log_constant[:, 0]

    def _rows(self, contexts: np.ndarray) -> np.ndarray:
        mapped = contexts if self.context_map is None else self.context_map(contexts)
        return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1).astype(np.float64)

    def _posterior(self, history: History) -> "_Posterior":
        rows = self._rows(history.contexts)
        mean, variance = paper_prior(history.action_features, rows.shape[2] - 1)
        return _Posterior(rows, history.table(), history.observed(), mean, variance)


class _Posterior:
    """The B·A posteriors given rows, with Student proposals around their modes."""

    def __init__(
        self,
        rows: np.ndarray,  # (B, t, K)
        outcomes: np.ndarray,  # (B, t, A)
        observed: np.ndarray | None,  # (B, t, A), or None for all
        mean: np.ndarray,  # (B, A, K)
        variance: np.ndarray,  # (B, A, K)
    ) -> None:
        size = mean.shape[-1]
        self.shape = mean.shape[1:]  # (A, K)
        self._problems = LogisticProblems(rows, outcomes, np.eye(size) / variance[..., None], mean, observed)
        self._mode, chances = self._problems.solve()
        factor = np.linalg.cholesky(self._problems.hessian(chances))  # (B, A, K, K): L with LLᵀ the precision
        self._root = np.linalg.inv(factor).swapaxes(-1, -2)  # L⁻ᵀ, a square root of the covariance
        log_precision = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        # What exp(-loss) over the Student density without its constants lacks to be p(Y, β) over its density.
        self.log_constant = (
            -0.5 * size * np.log(2 * np.pi)
            - 0.5 * np.log(variance).sum(axis=-1)
            - 0.5 * log_precision
            - gammaln((FREEDOM + size) / 2)
            + gammaln(FREEDOM / 2)
            + 0.5 * size * np.log(FREEDOM * np.pi)
        )  # (B, A)

    def propose(self, normal: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return proposals (S, B, A, K) and their log weights (S, B, A), up to ``log_constant``.

        Args:
            normal: Standard normals, (S, B, A, K).
            squares: Chi-squares of ``FREEDOM`` degrees, (S, B, A).
        """
        student = normal * np.sqrt(FREEDOM / squares)[..., None]
        proposals = self._mode + (self._root @ student[..., None])[..., 0]
        size = normal.shape[-1]
        tails = 0.5 * (FREEDOM + size) * np.log1p((student**2).sum(axis=-1) / FREEDOM)
        fit = np.stack([-self._problems.loss(each)[0] for each in proposals])
        return proposals, fit + tails


def _proposal_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(shape), rng.chisquare(FREEDOM, shape[:-1])


def _last_state(proposals: np.ndarray, weights: np.ndarray, log_uniform: np.ndarray) -> np.ndarray:
    """Return where the chain over the S proposals ends, (S, B, A, K) to (B, A, K)."""
    state, weight = proposals[0], weights[0]
    for proposal, new_weight, threshold in zip(proposals[1:], weights[1:], log_uniform[1:], strict=True):
        accepted = threshold < new_weight - weight
        state = np.where(accepted[..., None], proposal, state)
        weight = np.where(accepted, new_weight, weight)
    return state
