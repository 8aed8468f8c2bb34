"""The posterior of coefficients that walk, or that actions share, for binary outcomes: elliptical slice sampling.

The prior is the Gaussian process of :mod:`gents_gym.models.process`. Its Laplace approximation q is a Gaussian process
too. A chain begins with a draw of q and takes steps of elliptical slice sampling (Murray, Adams and MacKay, 2010) with
q in the place of the prior, which leave the posterior unchanged whatever q is. As q is close, few steps suffice.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, ndtr, ndtri, ndtri_exp

from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.conjugate import Rngs
from gents_gym.models.ledger import Ledger
from gents_gym.models.process import draw_paths, spread_pushes
from gents_gym.types import RewardFn, Truth

ROUNDS = 20  # how often a step's arc is cut before it stays where it is
NEWTON = 50  # iterations at the most
TOLERANCE = 1e-8  # of the mode, in logits


class Laplace(NamedTuple):
    """The Laplace approximation in the n cells that were observed; pads have decision -1 and design 0."""

    decision: np.ndarray  # (B, n)
    action: np.ndarray  # (B, n)
    design: np.ndarray  # derivatives of logits by standardised coefficients, (B, n, K)
    outcome: np.ndarray  # (B, n)
    mode: np.ndarray  # logits, (B, n)
    weight: np.ndarray  # W, the curvature of -log p(y | logit) at the mode, (B, n)
    inverse: np.ndarray  # (I + W^½ C W^½)⁻¹ with C the logits' prior covariance, (B, n, n)

    @property
    def error(self) -> np.ndarray:
        """The outcomes less their chances at the mode, (B, n); 0 at pads."""
        return np.where(self.decision >= 0, self.outcome - expit(self.mode), 0.0)


@dataclass(eq=False)
class ChainPosterior:
    """The :class:`gents_gym.models.posterior.Posterior` of binary outcomes whose coefficients walk or correlate."""

    truth: Truth
    ledger: Ledger
    n_steps: int  # of the chain behind a draw
    n_draws: int  # behind an expectation
    mean: np.ndarray  # of the prior, (B, A, K)
    scale: np.ndarray  # standard deviations of the prior, (B, A, K)
    laplace: Laplace | None = None  # made when needed

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Forget the approximation: outcomes have arrived."""
        self.laplace = None

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the average reward over draws, (B, C, K) to (B, C, A)."""
        return drawn_rewards(rows, self.draw(self.n_draws, rngs), reward_fn).mean(axis=1)

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the variance of mean rewards over draws, (B, C, K) to (B, C, A)."""
        return drawn_rewards(rows, self.draw(self.n_draws, rngs), reward_fn).var(axis=1)

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return the ends of independent chains at the current decision, (B, M, A, K)."""
        path = self._draw_path(self.ledger.time + 1, draws, rngs)
        return self.mean[:, None] + self.scale[:, None] * path[:, :, -1]

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return chances of outcomes under drawn coefficients, (B, M, T', K) to (B, M, T', A)."""
        path = self._draw_path(first + rows.shape[2], rows.shape[1], rngs)
        path = path[:, :, first:] if path.shape[2] > 1 else path  # coefficients that stay have one entry
        around = ((rows[:, :, :, None] * self.scale[:, None, None]) * path).sum(axis=-1)
        logits = rows @ self.mean[:, None].swapaxes(-1, -2) + around
        return draw_chances(self.truth, self.ledger, logits, first, rngs)

    def _draw_path(self, end: int, draws: int, rngs: Rngs) -> np.ndarray:
        """Return standardised coefficients of ``end`` decisions at the chains' ends, (B, M, T or 1, A, K)."""
        if self.laplace is None:
            self.laplace = self._approximate()
        laplace, n_rows = self.laplace, end if self.truth.rate else 1
        centre = self._spread(np.broadcast_to(laplace.error[:, None], (len(rngs), 1, laplace.error.shape[1])), n_rows)
        path = self._propose(draws, n_rows, rngs)  # deviations from the centre, as all paths here
        for _ in range(self.n_steps):
            other = self._propose(draws, n_rows, rngs)
            angle = self._slice(self._logits(path), self._logits(other), rngs)[..., None, None, None]
            path = np.cos(angle) * path + np.sin(angle) * other
        return centre + path

    def _slice(self, here: np.ndarray, there: np.ndarray, rngs: Rngs) -> np.ndarray:
        """Return the angle of a step on the ellipse through two points, logits (B, M, n) each, (B, M)."""
        draws = here.shape[1]
        numbers = np.stack([rng.random((2 + ROUNDS, draws)) for rng in rngs], axis=1)  # (rounds, B, M)
        level = self._log_ratio(here) + np.log(numbers[0])
        angle = 2 * np.pi * numbers[1]
        low, high, open_ = angle - 2 * np.pi, angle.copy(), np.ones(angle.shape, np.bool_)
        for uniform in numbers[2:]:
            moved = np.cos(angle)[..., None] * here + np.sin(angle)[..., None] * there
            open_ &= self._log_ratio(moved) <= level
            if not open_.any():
                return angle
            low, high = np.where(angle < 0, angle, low), np.where(angle < 0, high, angle)
            angle = np.where(open_, low + uniform * (high - low), angle)
        return np.where(open_, 0.0, angle)

    def _log_ratio(self, moved: np.ndarray) -> np.ndarray:
        """Return log p(y | logits) less what q has in its place, up to a constant, (B, M, n) to (B, M)."""
        laplace = self._found
        logits = laplace.mode[:, None] + moved
        fit = laplace.outcome[:, None] * logits - np.logaddexp(0, logits)
        approximate = laplace.error[:, None] * moved - 0.5 * laplace.weight[:, None] * moved**2
        return np.where(laplace.decision[:, None] >= 0, fit - approximate, 0.0).sum(axis=-1)

    def _propose(self, draws: int, n_rows: int, rngs: Rngs) -> np.ndarray:
        """Return draws of q around its centre, (B, M, T or 1, A, K): draws of the prior, moved by what was observed."""
        laplace, shape = self._found, (draws, n_rows, *self.mean.shape[1:])
        path = np.stack([draw_paths(self.truth, rng, shape) for rng in rngs])
        noise = np.stack([rng.standard_normal((draws, laplace.mode.shape[1])) for rng in rngs])
        root = np.sqrt(laplace.weight)[:, None]  # (B, 1, n)
        left = -(root * self._logits(path) + noise) @ laplace.inverse
        return path + self._spread(root * left, n_rows)

    def _logits(self, path: np.ndarray) -> np.ndarray:
        """Return what standardised coefficients add to the logits of observed cells, (B, M, T, A, K) to (B, M, n)."""
        laplace = self._found
        task, there = np.arange(len(path))[:, None], np.maximum(laplace.decision, 0) if path.shape[2] > 1 else 0
        return (path[task, :, there, laplace.action] * laplace.design[:, :, None]).sum(axis=-1).swapaxes(1, 2)

    def _spread(self, pushes: np.ndarray, n_rows: int) -> np.ndarray:
        """Return how pushes at observed cells move all coefficients, (B, M, n) to (B, M, T, A, K)."""
        laplace, (n_tasks, draws, _) = self._found, pushes.shape
        source = pushes.swapaxes(1, 2)[..., None] * laplace.design[:, :, None]  # (B, n, M, K)
        total = np.zeros((n_tasks, draws, n_rows, *self.mean.shape[1:]))
        task, slot = np.nonzero(laplace.decision >= 0)
        there = laplace.decision[task, slot] if n_rows > 1 else np.zeros_like(task)
        at = task, slice(None), there, laplace.action[task, slot]
        np.add.at(total, at, source[task, slot])  # type: ignore[arg-type]  # a slice among indices is fine
        return spread_pushes(self.truth, total)

    @property
    def _found(self) -> Laplace:
        assert self.laplace is not None
        return self.laplace

    def _approximate(self) -> Laplace:
        """Return the Laplace approximation, by Newton's method in the observed cells."""
        seen = self.ledger.seen[:, : self.ledger.time]
        n = int((seen >= 0).sum(axis=1).max(initial=0))
        at = np.argsort(seen < 0, axis=1, kind="stable")[:, :n]  # observed decisions first, in their order
        task = np.arange(len(seen))[:, None]
        action, there = np.maximum(seen[task, at], 0), seen[task, at] >= 0
        rows, decision = self.ledger.rows[task, at].astype(np.float64), np.where(there, at, -1)
        design = np.where(there[..., None], rows * self.scale[task, action], 0.0)
        prior = (rows * self.mean[task, action]).sum(axis=-1)  # (B, n)
        outcome = self.ledger.outcomes[task, at].astype(np.float64)
        covariance = (design @ design.swapaxes(1, 2)) * self._correlations(at, action)
        mode = prior.copy()
        for _ in range(NEWTON):
            chance = expit(mode)
            weight = np.where(there, chance * (1 - chance), 0.0)
            root = np.sqrt(weight)
            inverse = np.linalg.inv(np.eye(n) + root[:, :, None] * covariance * root[:, None])
            target = weight * (mode - prior) + np.where(there, outcome - chance, 0.0)  # (B, n)
            inner = root * (covariance @ target[..., None])[..., 0]
            push = target - root * (inverse @ inner[..., None])[..., 0]
            new = prior + (covariance @ push[..., None])[..., 0]
            done = np.abs(new - mode).max(initial=0) < TOLERANCE
            mode = new
            if done:
                break
        return Laplace(decision, action, design, outcome, mode, weight, inverse)

    def _correlations(self, at: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the correlations of standardised coefficients of cells, (B, n) decisions and actions to (B, n, n)."""
        c, same = self.truth.correlation, action[:, :, None] == action[:, None]
        faded = np.power(1 - self.truth.rate, np.abs(at[:, :, None] - at[:, None])) if self.truth.rate else 1.0
        return faded * (c + (1 - c) * same)

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> "ChainPosterior":
        """Return a copy of the tasks at ``tasks``, whose ledger is ``ledger``."""
        return replace(self, ledger=ledger, mean=self.mean[tasks], scale=self.scale[tasks], laplace=None)

    def join(self, other: "ChainPosterior") -> "ChainPosterior":
        """Return the posterior of these actions and, behind them, the other's, of which nothing was observed."""
        mean, scale = (np.concatenate(parts, axis=1) for parts in ((self.mean, other.mean), (self.scale, other.scale)))
        return replace(self, mean=mean, scale=scale, laplace=None)


def drawn_rewards(rows: np.ndarray, coefficients: np.ndarray, reward_fn: RewardFn) -> np.ndarray:
    """Return mean rewards given coefficients, (B, C, K) and (B, M, A, K) to (B, M, C, A)."""
    chances = expit(rows[:, None] @ coefficients.swapaxes(-1, -2))
    return BERNOULLI.expected_reward(reward_fn, chances)


def draw_chances(truth: Truth, ledger: Ledger, logits: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
    """Return the chances of outcomes given drawn row effects, (B, M, T', A) to the same; row 0 is decision ``first``.

    An outcome is 1 if √r η_t + √(1 - r) ε_ta lies below Φ⁻¹ of its chance, with η_t and ε_ta ~ N(0, 1). A row has at
    most one observed outcome, whose chance does not depend on r, so row effects do not change the posterior of
    coefficients. Given these and an outcome, the sum is a truncated normal number; given the sum, η_t is normal.
    """
    if not truth.row_effect:
        return expit(logits)
    r, (draws, n_rows) = truth.row_effect, logits.shape[1:3]
    effects = np.stack([rng.standard_normal((draws, n_rows)) for rng in rngs])  # (B, M, T')
    uniform = np.stack([1 - rng.random((draws, n_rows)) for rng in rngs])
    seen = ledger.seen[:, first : ledger.time]  # (B, t)
    task, row = np.nonzero(seen >= 0)
    sign = 2.0 * ledger.outcomes[task, first + row, None] - 1  # (n, 1)
    tail = log_expit(sign * logits[task, :, row, seen[task, row]])  # the log-chance of what was observed, (n, M)
    total = sign * ndtri_exp(tail + np.log(uniform[task, :, row]))
    effects[task, :, row] = np.sqrt(r) * total + np.sqrt(1 - r) * effects[task, :, row]
    return ndtr((ndtri(expit(logits)) - np.sqrt(r) * effects[..., None]) / np.sqrt(1 - r))
