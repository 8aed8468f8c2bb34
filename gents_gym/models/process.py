"""The exact posterior of coefficients that walk or are correlated across actions, for Gaussian outcomes.

Standardised coefficients w = (β - μ) / √V of decisions t, s and actions a, b have the covariance

    ρ^|t-s| · (c + (1 - c)·[a = b]),

with ρ = 1 - rate and c the correlation. So the outcomes of all cells form a Gaussian process, and conditioning on the
observed ones is exact, in whatever order they arrive. The result equals that of a Kalman filter with backward sampling.
"""

from dataclasses import dataclass, replace

import numpy as np

from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.conjugate import RULE, SHARES, Rngs
from gents_gym.models.ledger import Ledger
from gents_gym.types import RewardFn, Truth

GROWTH = 64  # initial capacity in cells


@dataclass(eq=False)
class ProcessPosterior:
    """The :class:`gents_gym.models.posterior.Posterior` of coefficients that walk or correlate.

    For n observed cells with covariance C = LLᵀ it keeps L⁻¹ and L⁻¹(y - E[y]). One more cell costs O(n²).
    """

    truth: Truth
    ledger: Ledger
    mean: np.ndarray  # μ, (B, A, K)
    scale: np.ndarray  # √V, (B, A, K)
    inverse: np.ndarray  # L⁻¹ in the order of arrival, (B, ≥n, ≥n); 0 if a task has fewer
    solved: np.ndarray  # L⁻¹(y - E[y]), (B, ≥n)
    cells: np.ndarray  # the observed decisions in the order of arrival, (B, ≥n); then -1

    @classmethod
    def prior(cls, truth: Truth, ledger: Ledger, mean: np.ndarray, variance: np.ndarray) -> "ProcessPosterior":
        """Return the prior of coefficients with means and variances (B, A, K)."""
        n_tasks = len(mean)
        inverse, solved = np.zeros((n_tasks, GROWTH, GROWTH)), np.zeros((n_tasks, GROWTH))
        return cls(truth, ledger, mean, np.sqrt(variance), inverse, solved, np.full((n_tasks, GROWTH), -1))

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Learn all new outcomes of ``task`` in the ledger."""
        for at in self._news(task):
            self._append(at, *self._first_new(at))

    def _news(self, task: np.ndarray) -> list[np.ndarray]:
        """Return which of the tasks have at least one new outcome, at least two, and so on."""
        held = (self.ledger.seen[task, : self.ledger.time] >= 0).sum(axis=1)
        new = held - (self.cells[task] >= 0).sum(axis=1)
        return [task[new > i] for i in range(int(new.max(initial=0)))]

    def _first_new(self, task: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first new decision of each task, and its slot, (n,) each."""
        arrived = np.zeros((len(task), self.ledger.time + 1), np.bool_)
        np.put_along_axis(arrived, self.cells[task], True, axis=1)  # -1 is the last entry, which is unused
        new = (self.ledger.seen[task, : self.ledger.time] >= 0) & ~arrived[:, :-1]
        return new.argmax(axis=1), (self.cells[task] >= 0).sum(axis=1)

    def _append(self, task: np.ndarray, decision: np.ndarray, slot: np.ndarray) -> None:
        """Learn the outcome of one decision of each task."""
        self._grow(int(slot.max()) + 1)
        n, action = int(slot.max()), self.ledger.seen[task, decision]
        cell = self.ledger.rows[task, decision].astype(np.float64) * self.scale[task, action]  # (n, K)
        old = self.inverse[task, :n, :n]
        across = (self._design(n)[task] @ cell[..., None])[..., 0] * self._factor(n, decision, action, task)
        reach = (old @ across[..., None])[..., 0]  # L⁻¹k
        root = np.sqrt((cell**2).sum(axis=1) + self.truth.noise - (reach**2).sum(axis=1))
        self.inverse[task, slot, :n] = -(reach[:, None] @ old)[:, 0] / root[:, None]
        self.inverse[task, slot, slot] = 1 / root
        error = self._errors(task, decision, action) - (reach * self.solved[task, :n]).sum(axis=1)
        self.solved[task, slot], self.cells[task, slot] = error / root, decision

    def _errors(self, task: np.ndarray, decision: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return y - E[y], (n,)."""
        rows = self.ledger.rows[task, decision].astype(np.float64)
        return self.ledger.outcomes[task, decision] - (rows * self.mean[task, action]).sum(axis=1)

    def _design(self, n: int) -> np.ndarray:
        """Return the derivatives of the first n cells' means by their standardised coefficients, (B, n, K)."""
        task, at = np.arange(len(self.cells))[:, None], self.cells[:, :n]
        rows, action = self.ledger.rows[task, at].astype(np.float64), self.ledger.seen[task, at]
        return np.where((at >= 0)[..., None], rows * self.scale[task, action], 0.0)

    def _factor(self, n: int, decision: np.ndarray, action: np.ndarray, task: np.ndarray) -> np.ndarray:
        """Return the correlation of standardised coefficients of a cell and the first n, (m,) each to (m, n)."""
        at = self.cells[task, :n]
        same = self.ledger.seen[task[:, None], at] == action[:, None]
        c = self.truth.correlation
        return self._fade(np.abs(at - decision[:, None])) * (c + (1 - c) * same)

    def _fade(self, apart: np.ndarray) -> np.ndarray:
        """Return ρ to the power of the number of decisions in between."""
        return np.power(1 - self.truth.rate, apart) if self.truth.rate else np.ones(apart.shape)

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x·β at the current decision, (B, C, K) to (B, C, A) each."""
        n, (n_tasks, n_actions, _) = self._count(), self.mean.shape
        task, action = (part.reshape(-1) for part in np.indices((n_tasks, n_actions)))
        now = np.full(len(task), self.ledger.time)
        factor = self._factor(n, now, action, task).reshape(n_tasks, 1, n_actions, n)
        cells = rows[:, :, None] * self.scale[:, None]  # (B, C, A, K)
        flat = cells.reshape(n_tasks, -1, cells.shape[-1])  # (B, C·A, K)
        across = (flat @ self._design(n).swapaxes(1, 2)).reshape(*cells.shape[:3], n) * factor
        reach = across.reshape(*flat.shape[:2], n) @ self.inverse[:, :n, :n].swapaxes(1, 2)  # (B, C·A, n)
        moved = (reach @ self.solved[:, :n, None]).reshape(cells.shape[:3])
        variance = (cells**2).sum(axis=-1) - (reach**2).sum(axis=-1).reshape(cells.shape[:3])
        return rows @ self.mean.swapaxes(1, 2) + moved, np.maximum(variance, 0)

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return mean rewards under the posterior predictive, (B, C, K) to (B, C, A)."""
        mean, variance = self.predict(rows)
        return GAUSSIAN.expected_reward(reward_fn, np.stack([mean, variance + self.truth.noise], axis=-1))

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the posterior variance of E[R(Y) | β], (B, C, K) to (B, C, A), by a rule over x·β."""
        mean, variance = self.predict(rows)
        nodes = mean[..., None] + np.sqrt(variance)[..., None] * RULE  # (B, C, A, nodes)
        around = np.stack([nodes, np.full_like(nodes, self.truth.noise)], axis=-1)
        rewards = GAUSSIAN.expected_reward(reward_fn, around)
        return (rewards - (rewards @ SHARES)[..., None]) ** 2 @ SHARES

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return independent draws of the coefficients of the current decision, (B, M, A, K)."""
        path, _ = self._draw_path(self.ledger.time + 1, draws, rngs)
        return self.mean[:, None] + self.scale[:, None] * path[:, :, -1]

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return parameters of outcomes under drawn coefficients, (B, M, T', K) to (B, M, T', A, 2).

        Row 0 belongs to decision ``first``. The noise that all actions of a row share is part of the mean.
        """
        path, common = self._draw_path(first + rows.shape[2], rows.shape[1], rngs)
        path = path[:, :, first:] if path.shape[2] > 1 else path  # coefficients that stay have one entry
        around = ((rows[:, :, :, None] * self.scale[:, None, None]) * path).sum(axis=-1)
        mean = rows @ self.mean[:, None].swapaxes(-1, -2) + around + common[:, :, first:, None]
        return np.stack([mean, np.full_like(mean, (1 - self.truth.row_effect) * self.truth.noise)], axis=-1)

    def _draw_path(self, end: int, draws: int, rngs: Rngs) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised coefficients of ``end`` decisions, (B, M, T or 1, A, K), and shared noise, (B, M, T).

        A draw from the prior is corrected by the difference between the observed outcomes and those that it implies.
        """
        truth, n = self.truth, self._count()
        n_rows = end if truth.rate else 1
        path = np.stack([draw_paths(truth, rng, (draws, n_rows, *self.mean.shape[1:])) for rng in rngs])
        common = np.stack([rng.standard_normal((draws, end)) for rng in rngs]) * np.sqrt(truth.row_effect * truth.noise)
        own = np.stack([rng.standard_normal((draws, n)) for rng in rngs])
        task, at = np.arange(len(path))[:, None], self.cells[:, :n]
        action, design = self.ledger.seen[task, at], self._design(n)
        there = np.where(at >= 0, at, 0) if truth.rate else np.zeros_like(at)
        drawn = (path[task, :, there, action] * design[:, :, None]).sum(axis=-1).swapaxes(1, 2)  # (B, M, n)
        drawn += common[task, :, np.maximum(at, 0)].swapaxes(1, 2)
        drawn += np.sqrt((1 - truth.row_effect) * truth.noise) * own
        inverse = self.inverse[:, :n, :n]
        left = self.solved[:, None, :n] - drawn @ inverse.swapaxes(1, 2)  # (B, M, n)
        weights = left @ inverse  # C⁻¹(y - ỹ)
        source = weights.swapaxes(1, 2)[..., None] * design[:, :, None]  # (B, n, M, K)
        tasks, slots = np.nonzero(at >= 0)
        if truth.rate:
            pushes = np.zeros_like(path)
            pushes[tasks, :, at[tasks, slots], action[tasks, slots]] = source[tasks, slots]
        else:
            pushes = np.einsum("bnmk,bna->bmak", source, action[..., None] == np.arange(path.shape[3]))[:, :, None]
        common[tasks, :, at[tasks, slots]] += truth.row_effect * truth.noise * weights[tasks, :, slots]
        return path + spread_pushes(truth, pushes), common

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> "ProcessPosterior":
        """Return a copy for only these tasks, with ``ledger`` as its ledger."""
        parts = {name: getattr(self, name)[tasks] for name in ("mean", "scale", "inverse", "solved", "cells")}
        return replace(self, ledger=ledger, **parts)

    def join(self, other: "ProcessPosterior") -> "ProcessPosterior":
        """Return the posterior of these actions followed by the other's, which have no observations."""
        mean, scale = (np.concatenate(parts, axis=1) for parts in ((self.mean, other.mean), (self.scale, other.scale)))
        return replace(self, mean=mean, scale=scale)

    def _count(self) -> int:
        """Return n, the largest number of outcomes of a task."""
        return int((self.cells >= 0).sum(axis=1).max())

    def _grow(self, size: int) -> None:
        """Grow the capacity to ``size`` cells."""
        if size > (room := self.cells.shape[1]):
            more = max(size, 2 * room) - room
            self.inverse = np.pad(self.inverse, ((0, 0), (0, more), (0, more)))
            self.solved = np.pad(self.solved, ((0, 0), (0, more)))
            self.cells = np.pad(self.cells, ((0, 0), (0, more)), constant_values=-1)


def draw_paths(truth: Truth, rng: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Return standardised coefficients of T decisions under the prior, of shape (M, T, A, K)."""
    kept, c, (draws, n_rows, n_actions, size) = 1 - truth.rate, truth.correlation, shape
    steps = rng.standard_normal((draws, n_rows, n_actions + (c > 0), size))
    if n_rows > 1:
        steps[:, 1:] *= np.sqrt(1 - kept**2)
        steps = _faded(steps, kept, 1)
    return steps if c == 0 else np.sqrt(1 - c) * steps[:, :, 1:] + np.sqrt(c) * steps[:, :, :1]


def spread_pushes(truth: Truth, pushes: np.ndarray) -> np.ndarray:
    """Return the effect of changes at single cells on all coefficients, (B, M, T, A, K) to the same."""
    if pushes.shape[2] > 1:
        kept = 1 - truth.rate
        backward = _faded(pushes[:, :, ::-1], kept, 2)[:, :, ::-1]
        pushes = _faded(pushes, kept, 2) + backward - pushes
    c = truth.correlation
    return pushes if c == 0 else (1 - c) * pushes + c * pushes.sum(axis=3, keepdims=True)


def walk_marginal(
    truth: Truth, mean: np.ndarray, variance: np.ndarray, rows: np.ndarray, outcomes: np.ndarray
) -> np.ndarray:
    """Return log p(Y | X) of N single actions whose coefficients walk, by a Kalman filter, (N,).

    Args:
        truth: p*.
        mean: Mean of the prior, (N, K).
        variance: Variance of the prior, (N, K).
        rows: (N, R, K), one for each decision.
        outcomes: (N, R).
    """
    kept, spread = 1 - truth.rate, variance[:, None] * np.eye(mean.shape[1])  # V, (N, K, K)
    m, p, found = mean, spread, np.zeros(len(rows))
    for x, y in zip(rows.swapaxes(0, 1), outcomes.T, strict=True):
        direction = (p @ x[..., None])[..., 0]
        surprise, total = y - (x * m).sum(axis=1), (direction * x).sum(axis=1) + truth.noise
        found += GAUSSIAN.log_prob(np.stack([np.zeros_like(total), total], axis=-1), surprise)
        m = mean + kept * (m + direction * (surprise / total)[:, None] - mean)
        p = p - direction[:, :, None] * direction[:, None] / total[:, None, None]
        p = spread + kept**2 * (p - spread)
    return found


def _faded(steps: np.ndarray, kept: float, axis: int) -> np.ndarray:
    """Return the sums of the steps so far, of which ``kept`` is left with each step."""
    from scipy.signal import lfilter  # its import takes a second

    return np.asarray(lfilter([1.0], [1.0, -kept], steps, axis=axis))
