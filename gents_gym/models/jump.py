"""The posterior of coefficients that jump once: a sum over the time of the jump, exact for Gaussian outcomes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.special import logsumexp, xlog1py, xlogy

from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.conjugate import RULE, SHARES, Rngs
from gents_gym.models.ledger import Ledger
from gents_gym.types import RewardFn, Truth


class Phases(Protocol):
    """One action's n rows in the order of decisions, split into those before and after each of n+1 places."""

    @property
    def evidence(self) -> np.ndarray:
        """The log-density of all outcomes if the two sides of a place have different coefficients, (n+1,).

        It may leave out a constant, and it may be an approximation.
        """
        ...

    def places(self, times: np.ndarray) -> np.ndarray:
        """Return the number of rows before each of the decisions ``times``."""
        ...


P = TypeVar("P", bound=Phases)


@dataclass(frozen=True, eq=False)
class GaussianPhases:
    """The :class:`Phases` of Gaussian outcomes: each side is a Bayesian linear regression with the same prior."""

    mean: np.ndarray  # of the prior, (K,)
    variance: np.ndarray  # of the prior, (K,)
    noise: float
    decisions: np.ndarray  # (n,), rising
    rows: np.ndarray  # (n, K)
    outcomes: np.ndarray  # (n,)

    @cached_property
    def before(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of coefficients given the rows before each place, (n+1, K) and (n+1, K, K)."""
        return self._posteriors(*self._sums)

    @cached_property
    def after(self) -> tuple[np.ndarray, np.ndarray]:
        """The same given the rows after each place."""
        return self._posteriors(*(part[-1] - part for part in self._sums))

    @cached_property
    def evidence(self) -> np.ndarray:
        """The log-density of all outcomes if the two sides of a place have different coefficients, (n+1,)."""
        return self._quadratic(*self.before) + self._quadratic(*self.after)

    def places(self, times: np.ndarray) -> np.ndarray:
        """Return the number of rows before each of the decisions ``times``."""
        return np.searchsorted(self.decisions, times)

    @property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums of xxᵀ/σ² and x(y - xμ)/σ² over the first rows, (n+1, K, K) and (n+1, K)."""
        left = self.outcomes - self.rows @ self.mean
        squares, products = self.rows[:, :, None] * self.rows[:, None], self.rows * left[:, None]
        padded = (np.pad(part, ((1, 0), *[(0, 0)] * (part.ndim - 1))) for part in (squares, products))
        first, second = (np.cumsum(part, axis=0) / self.noise for part in padded)
        return first, second

    def _posteriors(self, squares: np.ndarray, products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        covariance = np.linalg.inv(squares + np.diag(1 / self.variance))
        return self.mean + (covariance @ products[..., None])[..., 0], covariance

    def draw(self, place: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Return coefficients after and before places (M,), from standard normals (2, M, K), of their shape."""
        mean, covariance = (np.stack(part)[:, place] for part in zip(self.after, self.before, strict=True))
        return mean + (np.linalg.cholesky(covariance) @ normal[..., None])[..., 0]

    def _quadratic(self, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return ½(log|P| + (m - μ)ᵀP⁻¹(m - μ)), the part of the rows' log-density that depends on the place."""
        moved = mean - self.mean
        fit = (moved * np.linalg.solve(covariance, moved[..., None])[..., 0]).sum(axis=-1)
        return 0.5 * (np.linalg.slogdet(covariance)[1] + fit)


@dataclass(eq=False)
class JumpingPosterior(ABC, Generic[P]):
    """A :class:`gents_gym.models.posterior.Posterior` of coefficients that jump once, all actions together.

    Given that the jump came just before decision j, the rows before j and from j on are separate regressions. The
    posterior is a mixture over j and over no jump so far, which is place 0: all rows come after it.
    """

    truth: Truth
    ledger: Ledger
    mean: np.ndarray  # of the prior, (B, A, K)
    spread: np.ndarray  # variance of the prior, (B, A, K)
    phases: dict[tuple[int, int], P] = field(default_factory=dict)  # by task and action; made when needed

    @abstractmethod
    def _make_phases(self, prior: tuple[np.ndarray, np.ndarray], data: tuple[np.ndarray, ...]) -> P:
        """Return the phases of an action, given the moments of its prior, and its decisions, rows and outcomes."""

    @abstractmethod
    def _draw_task(self, task: int, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a task's time of the jump, 0 if it did not come yet, and then its time in the future, (M,) each.

        The third part is the coefficients after and before it, (2, M, A, K).
        """

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Discard the cached results of actions whose outcomes have arrived."""
        for key in zip(task.tolist(), action.tolist(), strict=True):
            self.phases.pop(key, None)

    def _phases(self, task: int) -> list[P]:
        """Return the phases of a task's actions."""
        for action in range(self.mean.shape[1]):
            if (task, action) not in self.phases:
                at = np.flatnonzero(self.ledger.seen[task, : self.ledger.time] == action)
                rows, outcomes = (
                    part[task, at].astype(np.float64) for part in (self.ledger.rows, self.ledger.outcomes)
                )
                prior = self.mean[task, action], self.spread[task, action]
                self.phases[task, action] = self._make_phases(prior, (at, rows, outcomes))
        return [self.phases[task, action] for action in range(self.mean.shape[1])]

    def _times(self, task: int) -> np.ndarray:
        """Return the probabilities of no jump so far, and of a jump just before decision 1, …, t, (t+1,)."""
        times = np.arange(self.ledger.time + 1)
        weights = sum((each.evidence[each.places(times)] for each in self._phases(task)), jump_prior(self.truth, times))
        shares: np.ndarray = np.exp(weights - logsumexp(weights))
        return shares

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return independent draws of the coefficients of the current decision, (B, M, A, K)."""
        when, first, second = self._draw_phases(draws, rngs)
        return np.where((self.ledger.time < when)[..., None, None], first, second)

    def _draw_predictors(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return x·β under drawn coefficients, (B, M, T', K) to (B, M, T', A)."""
        when, early, late = self._draw_phases(rows.shape[1], rngs)
        decisions = first + np.arange(rows.shape[2])
        before, after = (rows @ part.swapaxes(-1, -2) for part in (early, late))  # (B, M, T', A)
        return np.where((decisions < when[..., None])[..., None], before, after)

    def _draw_phases(self, draws: int, rngs: Rngs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the time of the jump, (B, M), and coefficients before and after it, (B, M, A, K) each."""
        found = [self._draw_task(task, draws, rng) for task, rng in enumerate(rngs)]
        picked, ahead, sides = (np.stack(part) for part in zip(*found, strict=True))
        came = (picked > 0)[..., None, None]
        now, other = sides[:, 0], sides[:, 1]  # if no jump came, the other coefficients are those after it
        return np.where(picked, picked, ahead), np.where(came, other, now), np.where(came, now, other)

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> Self:
        """Return a copy of the tasks at ``tasks``, whose ledger is ``ledger``."""
        return replace(self, ledger=ledger, mean=self.mean[tasks], spread=self.spread[tasks], phases={})

    def join(self, other: Self) -> Self:
        """Return the posterior of these actions followed by the other's."""
        mean, spread = (np.concatenate(p, axis=1) for p in ((self.mean, other.mean), (self.spread, other.spread)))
        return replace(self, mean=mean, spread=spread, phases={})


@dataclass(eq=False)
class JumpPosterior(JumpingPosterior[GaussianPhases]):
    """The posterior of Gaussian outcomes, in closed form."""

    def _make_phases(self, prior: tuple[np.ndarray, np.ndarray], data: tuple[np.ndarray, ...]) -> GaussianPhases:
        return GaussianPhases(*prior, self.truth.noise, *data)

    def _draw_task(self, task: int, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t = self.ledger.time
        picked = rng.choice(t + 1, draws, p=self._times(task))
        ahead = t + rng.geometric(self.truth.rate, draws)
        normal = rng.standard_normal((2, draws, *self.mean.shape[1:]))
        each = enumerate(self._phases(task))
        sides = [phases.draw(phases.places(picked), normal[:, :, a]) for a, phases in each]  # A of (2, M, K)
        return picked, ahead, np.stack(sides, axis=2)

    def _mixtures(self, rows: np.ndarray) -> list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Return, by task and action, shares (n,), and means and variances of x·β in the rows, (n, C) each."""
        found = []
        times = np.arange(self.ledger.time + 1)
        for task, x in enumerate(rows):
            shares, mixtures = self._times(task), []
            for phases in self._phases(task):
                mean, covariance = phases.after
                weights = np.bincount(phases.places(times), shares, len(mean))
                mixtures.append((weights, mean @ x.T, np.einsum("ck,nkj,cj->nc", x, covariance, x)))
            found.append(mixtures)
        return found

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return mean rewards under the posterior predictive, (B, C, K) to (B, C, A)."""

        def average(shares: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
            parameters = np.stack([mean, variance + self.truth.noise], axis=-1)
            return shares @ GAUSSIAN.expected_reward(reward_fn, parameters)

        return np.stack([np.stack([average(*part) for part in parts], -1) for parts in self._mixtures(rows)])

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the posterior variance of E[R(Y) | β], (B, C, K) to (B, C, A), by a rule over x·β."""

        def spread(shares: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
            nodes = mean[..., None] + np.sqrt(variance)[..., None] * RULE  # (n, C, nodes)
            around = np.stack([nodes, np.full_like(nodes, self.truth.noise)], axis=-1)
            rewards = GAUSSIAN.expected_reward(reward_fn, around)
            first, second = (shares @ (rewards**power @ SHARES) for power in (1, 2))
            return np.maximum(second - first**2, 0)

        return np.stack([np.stack([spread(*part) for part in parts], -1) for parts in self._mixtures(rows)])

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return parameters of outcomes under drawn coefficients, (B, M, T', K) to (B, M, T', A, 2)."""
        mean = self._draw_predictors(rows, first, rngs)
        return np.stack([mean, np.full_like(mean, self.truth.noise)], axis=-1)


def jump_prior(truth: Truth, times: np.ndarray) -> np.ndarray:
    """Return the log-probability of a jump just before each of the decisions ``times``; at 0: of no jump."""
    last = times[-1]
    stays, jumps = np.where(times == 0, last, times - 1), times > 0
    return xlog1py(stays, -truth.rate) + xlogy(jumps, truth.rate)


def jump_marginal(
    truth: Truth, mean: np.ndarray, variance: np.ndarray, rows: np.ndarray, outcomes: np.ndarray
) -> np.ndarray:
    """Return log p(Y | X) of N single actions whose coefficients jump; arguments as for ``walk_marginal``."""
    times = np.arange(rows.shape[1])
    prior, found = jump_prior(truth, times), np.empty(len(rows))
    for i, (x, y) in enumerate(zip(rows, outcomes.astype(np.float64), strict=True)):
        phases = GaussianPhases(mean[i], variance[i], truth.noise, times, x, y)
        squares = ((y - x @ mean[i]) ** 2).sum() / truth.noise + np.log(variance[i]).sum() * 2
        constant = -0.5 * (squares + len(y) * np.log(2 * np.pi * truth.noise))
        found[i] = constant + logsumexp(prior + phases.evidence[phases.places(times)])
    return found
