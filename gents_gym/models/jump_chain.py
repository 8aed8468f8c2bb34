"""The posterior of coefficients that jump once, for binary outcomes: a chain over the time and the coefficients.

A chain begins with a time drawn by Laplace approximations of the evidence, and with coefficients drawn around their
modes. A step of Metropolis and Hastings proposes another time, with new coefficients of the actions whose rows it
splits differently. Then it proposes new coefficients of each action and side, given the time. Neither changes the
posterior, however good the approximations are.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from gents_gym.models.chain import draw_chances, drawn_rewards
from gents_gym.models.conjugate import Rngs
from gents_gym.models.jump import JumpingPosterior
from gents_gym.numerics.multinomial import MultinomialProblems
from gents_gym.numerics.student import Student, draw_numbers, stretch_numbers
from gents_gym.types import RewardFn


@dataclass(frozen=True, eq=False)
class BinaryPhases:
    """The :class:`gents_gym.models.jump.Phases` of binary outcomes: each side is a Bayesian logistic regression."""

    mean: np.ndarray  # of the prior, (K,)
    variance: np.ndarray  # of the prior, (K,)
    decisions: np.ndarray  # (n,), rising
    rows: np.ndarray  # (n, K)
    outcomes: np.ndarray  # (n,)

    @cached_property
    def student(self) -> Student:
        """Proposals after and before each place, (2, n+1)."""
        n, shape = len(self.rows), (2, len(self.rows) + 1, len(self.mean))
        row = np.nonzero(self._side(np.arange(n + 1)))[2]
        counts = np.stack([n - np.arange(n + 1), np.arange(n + 1)])
        center, variance = (np.broadcast_to(part, shape) for part in (self.mean, self.variance))
        return Student.fit(MultinomialProblems(self.rows[row], self.outcomes[row], counts, center, variance))

    @cached_property
    def peaks(self) -> np.ndarray:
        """Log p(y, β) at the modes after and before each place, up to a constant, (2, n+1)."""
        return self._log_density(self.student.mode, np.arange(len(self.rows) + 1))

    @cached_property
    def evidence(self) -> np.ndarray:
        """Laplace's approximation of the log-density of all outcomes, for each place, (n+1,)."""
        volumes = np.log(np.diagonal(self.student.root, axis1=-2, axis2=-1)).sum(axis=-1)
        found: np.ndarray = (self.peaks + volumes).sum(axis=0)
        return found

    def places(self, times: np.ndarray) -> np.ndarray:
        """Return the number of rows before each of the decisions ``times``."""
        return np.searchsorted(self.decisions, times)

    def propose(self, place: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients after and before places (M,), (2, M, K), and their log weights, (2, M).

        A weight is p(y, β) over the proposal's density, relative to Laplace's approximation of p(y).
        """
        numbers, tails = stretch_numbers(*draw_numbers(rng, (2, len(place), len(self.mean))))
        mode, root = (part[:, place] for part in self.student)
        found = mode + (root @ numbers[..., None])[..., 0]
        return found, self._log_density(found, place) - self.peaks[:, place] + tails

    def _log_density(self, coefficients: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Return log p(y, β) after and before places (M,), up to a constant, (2, M, K) to (2, M)."""
        fit = log_expit((2 * self.outcomes - 1) * (coefficients @ self.rows.T))  # (2, M, n)
        penalty = 0.5 * ((coefficients - self.mean) ** 2 / self.variance).sum(axis=-1)
        found: np.ndarray = np.where(self._side(place), fit, 0.0).sum(axis=-1) - penalty
        return found

    def _side(self, place: np.ndarray) -> np.ndarray:
        """Return which rows come after and before places (M,), (2, M, n)."""
        after = np.arange(len(self.rows)) >= place[:, None]
        return np.stack([after, ~after])


@dataclass(eq=False, kw_only=True)
class JumpChainPosterior(JumpingPosterior[BinaryPhases]):
    """The posterior of binary outcomes; draws are the ends of chains of their own."""

    n_steps: int  # of the chain behind a draw
    n_draws: int  # behind an expectation

    def _make_phases(self, prior: tuple[np.ndarray, np.ndarray], data: tuple[np.ndarray, ...]) -> BinaryPhases:
        return BinaryPhases(*prior, *data)

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the average reward over draws, (B, C, K) to (B, C, A)."""
        return drawn_rewards(rows, self.draw(self.n_draws, rngs), reward_fn).mean(axis=1)

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the variance of mean rewards over draws, (B, C, K) to (B, C, A)."""
        return drawn_rewards(rows, self.draw(self.n_draws, rngs), reward_fn).var(axis=1)

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return chances of outcomes under drawn coefficients, (B, M, T', K) to (B, M, T', A)."""
        return draw_chances(self.truth, self.ledger, self._draw_predictors(rows, first, rngs), first, rngs)

    def _draw_task(self, task: int, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        phases, shares = self._phases(task), self._times(task)
        state = State.propose(phases, rng.choice(len(shares), draws, p=shares), rng)
        for _ in range(self.n_steps):
            other = State.propose(phases, rng.choice(len(shares), draws, p=shares), rng)
            split = other.place != state.place  # (A, M)
            gain = np.where(split, other.weight - state.weight, 0.0).sum(axis=(0, 1))
            accepted = np.log(rng.random(draws)) < gain  # (M,)
            time = np.where(accepted, other.time, state.time)
            state = state.replace(other, split & accepted)._replace(time=time)
            other = State.propose(phases, time, rng)
            state = state.replace(other, np.log(rng.random(other.weight.shape)) < other.weight - state.weight)
        return state.time, self.ledger.time + rng.geometric(self.truth.rate, draws), state.coefficients.swapaxes(1, 2)


class State(NamedTuple):
    """The states of M chains of a task."""

    time: np.ndarray  # of the jump, (M,); 0: it did not come yet
    place: np.ndarray  # where it splits each action's rows, (A, M)
    coefficients: np.ndarray  # after and before it, (2, A, M, K)
    weight: np.ndarray  # of the coefficients, as logarithms, (2, A, M)

    @classmethod
    def propose(cls, phases: list[BinaryPhases], time: np.ndarray, rng: np.random.Generator) -> "State":
        """Return states with these times and coefficients drawn around their modes."""
        place = np.stack([each.places(time) for each in phases])
        drawn = zip(*(each.propose(at, rng) for each, at in zip(phases, place, strict=True)), strict=True)
        return cls(time, place, *(np.stack(part, axis=1) for part in drawn))

    def replace(self, other: "State", where: np.ndarray) -> "State":
        """Return these states with the other's coefficients of some actions and sides, booleans of (2, A, M)."""
        coefficients = np.where(where[..., None], other.coefficients, self.coefficients)
        place = np.where(where, other.place, self.place)
        return State(self.time, place, coefficients, np.where(where, other.weight, self.weight))
