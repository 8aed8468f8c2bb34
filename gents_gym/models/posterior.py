"""Defines the posterior of coefficients that the exact model needs, and samples it for binary and categorical outcomes.

Sizes: B tasks, A actions, K entries of a row, Q coefficients of an action: K, or (C-1)·K for C categories.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import expit, logsumexp

from gents_gym.likelihoods import BERNOULLI, Likelihood
from gents_gym.models.ledger import Ledger
from gents_gym.numerics.multinomial import MultinomialProblems, softmax_with_zero
from gents_gym.numerics.student import Student, draw_numbers, last_state
from gents_gym.types import RewardFn

GROUP = 256  # proposals for marginal likelihoods that are held in memory at once
Rngs = Sequence[np.random.Generator]


class Posterior(Protocol):
    """What is known of the coefficients of B·A actions; all randomness of task i comes from ``rngs[i]``."""

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Learn outcomes (n,) in rows (n, K), at most one of each task; the ledger holds them already."""
        ...

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return mean rewards, (B, C, K) to (B, C, A)."""
        ...

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the variance of E[R(Y) | β] over the coefficients β, (B, C, K) to (B, C, A)."""
        ...

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return independent draws of the coefficients, (B, M, A, Q)."""
        ...

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return the parameters of outcomes under drawn coefficients, (B, M, T, K) to (B, M, T, A, ...).

        Row 0 belongs to decision ``first``.
        """
        ...

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> Self:
        """Return a copy for only these tasks, with ``ledger`` as its ledger."""
        ...

    def join(self, other: Self) -> Self:
        """Return the posterior of these actions followed by the other's."""
        ...


@dataclass(eq=False)
class SampledPosterior:
    """The :class:`Posterior` of binary and categorical outcomes, given what a ledger holds.

    Draws are the ends of independence Metropolis-Hastings chains; expectations are over weighted proposals. An action's
    proposals are fitted again after one of its outcomes has arrived.
    """

    likelihood: Likelihood
    n_steps: int  # steps of a chain
    n_weighted: int  # proposals per expectation
    ledger: Ledger
    means: np.ndarray  # of the prior, (B, A, Q)
    variances: np.ndarray  # of the prior, (B, A, Q)
    student: Student  # of (B, A) posteriors
    stale: np.ndarray  # actions whose proposals have to be fitted, (B, A)

    @classmethod
    def prior(
        cls,
        likelihood: Likelihood,
        n_steps: int,
        n_weighted: int,
        ledger: Ledger,
        means: np.ndarray,
        variances: np.ndarray,
    ) -> "SampledPosterior":
        """Return the prior with means and variances (B, A, Q)."""
        student = Student(means.copy(), np.sqrt(variances)[..., None] * np.eye(means.shape[-1]))
        stale = np.zeros(means.shape[:-1], np.bool_)
        return cls(likelihood, n_steps, n_weighted, ledger, means, variances, student, stale)

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Note which actions have new outcomes."""
        self.stale[task, action] = True

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return posterior mean rewards, (B, C, K) to (B, C, A)."""
        rewards, shares = self._weighted_rewards(rows, reward_fn, rngs)
        return (shares * rewards).sum(axis=0)

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the posterior variance of mean rewards, (B, C, K) to (B, C, A)."""
        rewards, shares = self._weighted_rewards(rows, reward_fn, rngs)
        means = (shares * rewards).sum(axis=0)
        return (shares * (rewards - means) ** 2).sum(axis=0)

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return the ends of independent chains, (B, M, A, Q)."""
        shape = (self.n_steps, *self.means.shape[1:])  # (S, A, Q)
        numbers = [[draw_numbers(rng, shape) for _ in range(draws)] for rng in rngs]
        stacked = (np.concatenate([np.stack([own[m][i] for own in numbers], 1) for m in range(draws)]) for i in (0, 1))
        proposals, weights = self._propose(*stacked)  # (M·S, B, A, Q), (M·S, B, A)
        uniform = [[rng.random(shape[:2]) for _ in range(draws)] for rng in rngs]
        log_uniform = np.log(np.concatenate([np.stack([own[m] for own in uniform], 1) for m in range(draws)]))
        parts = [slice(first, first + self.n_steps) for first in range(0, len(weights), self.n_steps)]
        return np.stack([last_state(proposals[part], weights[part], log_uniform[part]) for part in parts], axis=1)

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return probabilities under drawn coefficients, (B, M, T, K) to (B, M, T, A, ...)."""
        return self.parameters(rows, self.draw(rows.shape[1], rngs))

    def parameters(self, rows: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return probabilities given coefficients, (..., T, K) and (..., A, Q) to (..., T, A, ...)."""
        parts = np.split(coefficients, coefficients.shape[-1] // rows.shape[-1], axis=-1)  # C-1 of (..., A, K)
        logits = np.stack([rows @ part.swapaxes(-1, -2) for part in parts])  # (C-1, ..., T, A)
        if self.likelihood == BERNOULLI:
            return expit(logits[0], out=logits[0])
        return np.moveaxis(softmax_with_zero(logits)[0], 0, -1)

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> "SampledPosterior":
        """Return a copy for only these tasks, with ``ledger`` as its ledger."""
        student = Student(*(part[tasks] for part in self.student))
        means, variances, stale = (part[tasks] for part in (self.means, self.variances, self.stale))
        return replace(self, ledger=ledger, means=means, variances=variances, student=student, stale=stale)

    def join(self, other: "SampledPosterior") -> "SampledPosterior":
        """Return the posterior of these actions followed by the other's."""
        parts = [(one.means, one.variances, one.stale, *one.student) for one in (self, other)]
        means, variances, stale, *student = (np.concatenate(pair, axis=1) for pair in zip(*parts, strict=True))
        return replace(self, means=means, variances=variances, stale=stale, student=Student(*student))

    def _weighted_rewards(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> tuple[np.ndarray, np.ndarray]:
        """Return mean rewards under S weighted draws, (S, B, C, A), and the draws' weights, (S, B, 1, A)."""
        drawn = [draw_numbers(rng, (self.n_weighted, *self.means.shape[1:])) for rng in rngs]
        proposals, weights = self._propose(*(np.stack(part, axis=1) for part in zip(*drawn, strict=True)))
        rewards = self.likelihood.expected_reward(reward_fn, self.parameters(rows, proposals))
        return rewards, np.exp(weights - logsumexp(weights, axis=0))[:, :, None]

    def _propose(self, normal: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return proposals (S, B, A, Q) and their log weights (S, B, A)."""
        if self.stale.any():
            for part, fitted in zip(self.student, Student.fit(self._problems(self.stale)), strict=True):
                part[self.stale] = fitted
            self.stale[:] = False
        return self.student.propose(self._problems(), normal, squares)

    def _problems(self, wanted: np.ndarray | None = None) -> MultinomialProblems:
        """Return the posteriors, (B, A), or only those that ``wanted`` (B, A) picks, (n,)."""
        seen = self.ledger.seen[:, : self.ledger.time]
        task, decision = np.nonzero(seen >= 0)
        problem = task * self.stale.shape[1] + seen[task, decision]
        picked = ... if wanted is None else wanted
        if wanted is not None:
            kept = wanted.ravel()[problem]
            task, decision, problem = task[kept], decision[kept], problem[kept]
        counts = np.bincount(problem, minlength=self.stale.size).reshape(self.stale.shape)
        order = np.argsort(problem, kind="stable")
        at = task[order], decision[order]
        rows, outcomes = self.ledger.rows[at].astype(np.float64), self.ledger.outcomes[at]
        return MultinomialProblems(rows, outcomes, counts[picked], self.means[picked], self.variances[picked])


def sampled_marginal(
    mean: np.ndarray, variance: np.ndarray, rows: np.ndarray, outcomes: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(Y | X) of N single actions by importance sampling, and its standard errors, (N,) each.

    Args:
        mean: Mean of the prior, (N, 1, Q).
        variance: Variance of the prior, (N, 1, Q).
        rows: (N, R, K).
        outcomes: (N, R).
        count: S, the number of proposals.
        rng: The source of the proposals.
    """
    n_actions, n_rows, size = rows.shape
    counts = np.full((n_actions, 1), n_rows)
    problems = MultinomialProblems(rows.reshape(-1, size), outcomes.ravel(), counts, mean, variance)
    student = Student.fit(problems)
    parts = []
    for first in range(0, count, GROUP):
        numbers = [draw_numbers(rng, (1, *mean.shape)) for _ in range(min(GROUP, count - first))]
        parts.append(student.propose(problems, *(np.concatenate(part) for part in zip(*numbers, strict=True)))[1])
    weights = np.concatenate(parts)[..., 0]  # (S, N)
    total = logsumexp(weights, axis=0)  # (N,)
    shares = np.exp(weights - total)  # (S, N)
    error = np.sqrt(np.maximum((shares**2).sum(axis=0) - 1 / count, 0))  # by the delta method
    return total - np.log(count) + student.log_constant(variance)[:, 0], error
