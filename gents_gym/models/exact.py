"""The exact p*: Bayesian regression with nature's own prior; what was observed in, posterior draws out."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from gents_gym.checks import InputError, check_actions, check_array, check_choice, check_integer, check_rngs
from gents_gym.likelihoods import Likelihood
from gents_gym.models.belief import check_likelihood
from gents_gym.models.contexts import CONTEXT_MODELS, Sources
from gents_gym.models.ledger import KEPT, Ledger
from gents_gym.numerics.newton import LogisticProblems
from gents_gym.types import Completion, Feedback, TaskInfo, Truth

FREEDOM = 6.0  # of the Student proposals: their tails are heavier than any posterior's


@dataclass(frozen=True)
class ExactModel:
    """p* of a setting that publishes its :class:`gents_gym.types.Truth`.

    Posterior draws come from independence Metropolis-Hastings with Student proposals around the Laplace
    approximation. In the settings of the paper the proposals are near the posterior, so a short chain forgets its
    start. Features or contexts far beyond those settings' make them worse, and want more steps.
    """

    truth: Truth
    n_steps: int = 16  # steps of the chain; in the paper's settings each accepts about three proposals in four
    n_weighted: int = 256  # weighted proposals behind an expectation or a marginal likelihood

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_weighted", self.n_weighted, 1)

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        return self.truth.likelihood

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> "ExactBelief":
        """Return the belief of B new tasks."""
        return ExactBelief(self, info, rngs)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return nature's features of contexts, (..., D) to (..., D'); None where they are the contexts."""
        return None if self.truth.context_map is None else self.truth.context_map(contexts)

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> None:
        """Return None: p* has no hidden layer."""

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
        mean, variance = self.truth.prior(action_features[:, None])  # (N, 1, K)
        posterior = _Posterior(self.rows(contexts), np.asarray(outcomes, np.float64)[..., None], None, mean, variance)
        weights = [
            posterior.propose(*(part[:, :, None] for part in _proposal_numbers(rng, (1, *mean[:, 0].shape))))[1]
            for _ in range(self.n_weighted)
        ]
        found = logsumexp(np.concatenate(weights), axis=0)[:, 0] - np.log(self.n_weighted)
        return found + posterior.log_constant[:, 0]

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return (1, φ_X(X)) in double precision, (..., D) to (..., K)."""
        mapped = contexts if self.truth.context_map is None else self.truth.context_map(contexts)
        return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1).astype(np.float64)


class ExactBelief:
    """What p* believes of B tasks: the posterior of every action's coefficients, from all that was observed."""

    def __init__(self, model: ExactModel, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        check_likelihood(model.likelihood, info)
        self._model, self._info, self._rngs = model, info, check_rngs(rngs, len(info))
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        self._mean, self._variance = model.truth.prior(features)  # (B, A, K) each
        self._ledger = Ledger(info, lambda contexts: contexts)

    def expected(self, contexts: np.ndarray) -> np.ndarray:
        """Return posterior mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A)."""
        rewards, shares = self._weighted_rewards(contexts)
        means = (shares[:, :, None] * rewards).sum(axis=0)
        return means if np.ndim(contexts) == 3 else means[:, 0]

    def variance(self, contexts: np.ndarray) -> np.ndarray:
        """Return the posterior variance of mean rewards, in the shapes of :meth:`expected`."""
        rewards, shares = self._weighted_rewards(contexts)
        means = (shares[:, :, None] * rewards).sum(axis=0)
        found = (shares[:, :, None] * (rewards - means) ** 2).sum(axis=0)
        return found if np.ndim(contexts) == 3 else found[:, 0]

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task."""
        self._ledger.decide(context, action)

    def observe(self, feedback: Feedback) -> None:
        """Enter outcomes of open rows."""
        self._ledger.arrive(feedback, self._model.likelihood)

    def complete(
        self,
        context: np.ndarray,
        rows: int | None = None,
        draws: int = 1,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Completion:
        """Return completed tables: coefficients from their posterior, then the missing outcomes.

        Contexts to come are nature's own unless "seen" or "given" is named.
        """
        check_integer("draws", draws, 1)
        ledger, n_tasks = self._ledger, len(self._info)
        t, end = ledger.time, ledger.end(rows)
        ledger.face(context)
        imagined = self._imagine(contexts, end, draws)  # (B, M, T', D)
        coefficients = self.draw(draws)  # (B, M, A, K)
        if actions is not None:
            coefficients = np.take_along_axis(coefficients, np.asarray(actions)[:, None, :, None], axis=2)
        known = self._observed(actions)  # (B, t, A)
        first = 0 if rows is None else t
        chances = expit(self._model.rows(imagined[:, :, first:]) @ coefficients.swapaxes(2, 3))  # (B, M, T'-first, A)
        uniform = np.stack([rng.random(chances.shape[2:]) for rng in self._rngs for _ in range(draws)])
        drawn = (uniform.reshape(chances.shape) < chances).astype(np.float32)
        table = np.zeros((n_tasks, draws, end, chances.shape[3]), np.float32)
        table[:, :, first:] = drawn
        past = table[:, :, :t]
        np.copyto(past, ledger.outcomes[:, None, :t, None], where=known[:, None] > 0)
        features = self._model.context_features(imagined)
        if rows is None:
            return Completion(imagined, table, None, features, t)
        weights = np.ones_like(table)
        weights[:, :, :t] = known[:, None]
        return Completion(imagined, table, weights, features, t)

    def fork(self, tasks: np.ndarray) -> "ExactBelief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with random numbers of its own."""
        tasks = check_actions(tasks, len(tasks), len(self._info))
        other = copy.copy(self)
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        other._mean, other._variance = self._mean[tasks], self._variance[tasks]
        other._ledger = self._ledger.pick(tasks)
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), which nothing is observed of."""
        new = check_array("action_features", action_features, "(B, n, F)", (len(self._info), -1, -1))
        mean, variance = self._model.truth.prior(new)
        self._mean = np.concatenate([self._mean, mean], axis=1)
        self._variance = np.concatenate([self._variance, variance], axis=1)
        features = np.concatenate([self._info.action_features, new], axis=1)
        self._info = replace(self._info, action_features=features, n_actions=features.shape[1], texts=None)
        self._ledger.widen(features.shape[1])

    def state(self) -> dict[str, np.ndarray]:
        """Return all that was observed as plain arrays; the posterior follows from it."""
        return self._ledger.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state that :meth:`state` returned in the place of the present one."""
        if state.keys() != {*KEPT}:
            raise InputError(f"state must have {', '.join(KEPT)}, got {', '.join(sorted(state))}")
        self._ledger.restore(state)

    def draw(self, draws: int = 1) -> np.ndarray:
        """Return independent posterior draws of the coefficients, intercept first, (B, M, A, K)."""
        posterior, n_steps = self._posterior(), self._model.n_steps
        shape = (n_steps, *posterior.shape)  # (S, A, K)
        numbers = [[_proposal_numbers(rng, shape) for _ in range(draws)] for rng in self._rngs]
        stacked = (np.concatenate([np.stack([own[m][i] for own in numbers], 1) for m in range(draws)]) for i in (0, 1))
        proposals, weights = posterior.propose(*stacked)  # (M·S, B, A, K), (M·S, B, A)
        uniform = [[rng.random(shape[:2]) for _ in range(draws)] for rng in self._rngs]
        log_uniform = np.log(np.concatenate([np.stack([own[m] for own in uniform], 1) for m in range(draws)]))
        parts = [slice(first, first + n_steps) for first in range(0, draws * n_steps, n_steps)]
        return np.stack([_last_state(proposals[part], weights[part], log_uniform[part]) for part in parts], axis=1)

    def _weighted_rewards(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean rewards under S weighted draws, (S, B, C, A), and the draws' shares, (S, B, A)."""
        rows = self._model.rows(self._ledger.check_contexts(contexts))  # (B, C, K)
        posterior = self._posterior()
        drawn = [_proposal_numbers(rng, (self._model.n_weighted, *posterior.shape)) for rng in self._rngs]
        proposals, weights = posterior.propose(*(np.stack(part, axis=1) for part in zip(*drawn, strict=True)))
        chances = expit(np.einsum("sbak,bck->sbca", proposals, rows, optimize=True))
        rewards = self._model.likelihood.expected_reward(self._info.reward_fn, chances)
        return rewards, np.exp(weights - logsumexp(weights, axis=0))

    def _imagine(self, contexts: str | None, end: int, draws: int) -> np.ndarray:
        """Return the contexts so far and imagined ones behind them, (B, M, T', D)."""
        t, spread = self._ledger.time, self._model.truth.context_spread
        own = self._ledger.contexts[:, : t + 1]
        shape = (draws, end - t - 1, own.shape[2])
        if contexts is None:
            each = zip(own, self._rngs, strict=True)
            new = np.stack([_draw_contexts(mine, shape, spread, rng) for mine, rng in each])
        else:
            check_choice("context model of p*:", contexts, ["seen", "given"])
            sources = Sources(0, t + 1, self._ledger.n_known, 0.0)
            picks = CONTEXT_MODELS[contexts](sources, shape[1], draws, self._rngs)
            new = self._ledger.contexts[np.arange(len(own))[:, None, None], -1 - picks]
        return np.concatenate([np.broadcast_to(own[:, None], (len(own), draws, *own.shape[1:])), new], axis=2)

    def _observed(self, actions: np.ndarray | None = None) -> np.ndarray:
        """Return which cells of the rows so far were seen, (B, t, A) of 0 and 1."""
        columns = np.arange(self._info.n_actions)[None] if actions is None else np.asarray(actions)
        return (self._ledger.seen[:, : self._ledger.time, None] == columns[:, None]).astype(np.float64)

    def _posterior(self) -> "_Posterior":
        t, known = self._ledger.time, self._observed()
        rows = self._model.rows(self._ledger.contexts[:, :t])
        table = known * self._ledger.outcomes[:, :t, None]
        return _Posterior(rows, table, known, self._mean, self._variance)


def _draw_contexts(
    seen: np.ndarray, shape: tuple[int, int, int], spread: float, rng: np.random.Generator
) -> np.ndarray:
    """Return contexts to come, (M, n, D), given the task's (t, D) so far.

    They are √(1 - s²) X̄ + s X, with X̄ from its posterior.
    """
    normal = rng.standard_normal(shape, np.float32)
    if spread == 1:
        return normal
    pull = 1 - spread**2
    total = spread**2 + len(seen) * pull
    centre = rng.standard_normal((shape[0], 1, shape[2]), np.float32) * (spread / np.sqrt(total))
    centre += np.sqrt(pull) * seen.sum(axis=0) / total
    return (np.sqrt(pull) * centre + spread * normal).astype(np.float32)


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
