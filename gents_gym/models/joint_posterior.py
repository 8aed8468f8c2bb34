"""The joint posterior of all actions of a task: a filter over a task effect and each action's own part."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gents_gym.likelihoods import GAUSSIAN, Likelihood
from gents_gym.models.conjugate import Rngs
from gents_gym.models.filter_form import FilterKernel, Form, normal_rule
from gents_gym.models.ledger import Ledger
from gents_gym.types import RewardFn

JITTER = 1e-9  # added to a covariance's diagonal, so that rounding does not make it indefinite


@dataclass(eq=False)
class JointPosterior:
    """The :class:`gents_gym.models.posterior.Posterior` of β_a = μ_a + L_a (√s u + √(1 - s) e_a) for all actions a.

    The standard normals u of the task and e_a of each action are jointly Gaussian given outcomes. The state holds them
    in the order u, 1, e_1, …, e_A; the 1 gives x·μ in linear predictors.
    """

    form: Form  # how outcomes are predicted and absorbed
    kernel: FilterKernel  # the kernel of this form
    likelihood: Likelihood
    share: np.ndarray  # s, (K,)
    row_effect: float  # the share of Gaussian noise that a row's actions have in common
    ledger: Ledger
    prior_mean: np.ndarray  # μ, (B, A, K)
    prior_root: np.ndarray  # L, (B, A, K, K)
    mean: Tensor  # (B, (A+1)·K + 1) float64
    covariance: Tensor  # (B, (A+1)·K + 1, (A+1)·K + 1)

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Learn outcomes (n,) in rows (n, K), at most one of each task."""
        loads = torch.from_numpy(self._loads(task, action, rows))
        state = self.mean[task], self.covariance[task]
        with torch.no_grad():
            mean, covariance, _ = self.form.absorb(*state, loads, torch.from_numpy(outcome.astype(np.float64)), None)
        self.mean[task], self.covariance[task] = mean, covariance

    def _loads(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the linear predictors of actions (n,) in rows (n, K) as vectors on the state, (n, (A+1)·K + 1)."""
        size, n = rows.shape[1], len(task)
        along = (rows[:, None] @ self.prior_root[task, action])[:, 0]  # Lᵀx, (n, K)
        loads = np.zeros((n, self.mean.shape[1]))
        loads[:, :size] = np.sqrt(self.share) * along
        loads[:, size] = (rows * self.prior_mean[task, action]).sum(axis=1)
        own = 1 + size + action[:, None] * size + np.arange(size)
        loads[np.arange(n)[:, None], own] = np.sqrt(1 - self.share) * along
        return loads

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x·β, (B, C, K) to (B, C, A) each."""
        n_tasks, shape = len(rows), (*rows.shape[:2], self.prior_mean.shape[1])
        task, context, action = (part.reshape(-1) for part in np.indices(shape))
        loads = self._loads(task, action, rows[task, context]).reshape(n_tasks, -1, self.mean.shape[1])  # (B, C·A, S)
        mean = (loads @ self.mean.numpy()[..., None])[..., 0]
        variance = ((loads @ self.covariance.numpy()) * loads).sum(axis=-1)
        return mean.reshape(shape), np.maximum(variance, 0).reshape(shape)

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return mean rewards, (B, C, K) to (B, C, A)."""
        moments = [torch.from_numpy(part.reshape(-1, 1)) for part in self.predict(rows)]
        one = torch.ones(len(moments[0]), 1, dtype=torch.float64)
        with torch.no_grad():
            predicted = self.form.predict(moments[0], moments[1][..., None], one)
            parameters = self.form.outcome_parameters(predicted).numpy()
        shape = (*rows.shape[:2], self.prior_mean.shape[1])
        return self.likelihood.expected_reward(reward_fn, parameters.reshape(*shape, *parameters.shape[1:]))

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the variance of E[R(Y) | β], (B, C, K) to (B, C, A)."""
        mean, variance = self.predict(rows)
        nodes, weights = normal_rule(1)  # (n, 1), (n,)
        predictors = mean[..., None] + np.sqrt(variance)[..., None] * nodes[:, 0]  # (B, C, A, n)
        rewards = self.likelihood.expected_reward(reward_fn, self.kernel.given(predictors[..., None]))
        return np.maximum((rewards**2) @ weights - (rewards @ weights) ** 2, 0)

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return independent draws of the coefficients, (B, M, A, K)."""
        n_tasks, n_actions, size = self.prior_mean.shape
        covariance = self.covariance.numpy() + JITTER * np.eye(self.mean.shape[1])
        normal = np.stack([rng.standard_normal((draws, self.mean.shape[1])) for rng in rngs])
        state = self.mean.numpy()[:, None] + normal @ np.linalg.cholesky(covariance).swapaxes(1, 2)  # (B, M, S)
        shared, own = state[:, :, None, :size], state[:, :, 1 + size :].reshape(n_tasks, draws, n_actions, size)
        parts = np.sqrt(self.share) * shared + np.sqrt(1 - self.share) * own
        return self.prior_mean[:, None] + (self.prior_root[:, None] @ parts[..., None])[..., 0]

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return the parameters of outcomes under drawn coefficients, (B, M, T, K) to (B, M, T, A, ...)."""
        predictors = rows @ self.draw(rows.shape[1], rngs).swapaxes(-1, -2)  # (B, M, T, A)
        parameters = self.kernel.given(predictors[..., None])
        if self.row_effect and self.likelihood == GAUSSIAN:
            self._share_noise(parameters, first, rngs)
        return parameters

    def _share_noise(self, parameters: np.ndarray, first: int, rngs: Rngs) -> None:
        """Draw the common noise of a row's cells, given what was observed there, and add it to the means."""
        r, noise, (draws, n_rows) = self.row_effect, parameters[0, 0, 0, 0, 1], parameters.shape[1:3]
        normal = np.stack([rng.standard_normal((draws, n_rows)) for rng in rngs])
        seen = self.ledger.seen[:, first : self.ledger.time]  # (B, t)
        past = parameters[:, :, : seen.shape[1], :, 0]
        played = np.take_along_axis(past, np.maximum(seen, 0)[:, None, :, None], axis=3)[..., 0]  # (B, M, t)
        known = np.zeros((len(seen), 1, n_rows), np.bool_)
        known[:, 0, : seen.shape[1]] = seen >= 0
        left = np.zeros(normal.shape)
        left[:, :, : seen.shape[1]] = self.ledger.outcomes[:, None, first : self.ledger.time] - played
        common = np.where(known, r * left + np.sqrt(r * (1 - r) * noise) * normal, np.sqrt(r * noise) * normal)
        parameters[..., 0] += common[..., None]
        parameters[..., 1] *= 1 - r

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> "JointPosterior":
        """Return a copy for only these tasks, with ``ledger`` as its ledger."""
        mean, covariance = self.mean[tasks], self.covariance[tasks]
        prior_mean, prior_root = self.prior_mean[tasks], self.prior_root[tasks]
        return replace(
            self, ledger=ledger, mean=mean, covariance=covariance, prior_mean=prior_mean, prior_root=prior_root
        )

    def join(self, other: "JointPosterior") -> "JointPosterior":
        """Return the posterior of these actions followed by the other's, which have no observations."""
        more = other.prior_mean.shape[1] * other.prior_mean.shape[2]
        mean = torch.cat([self.mean, torch.zeros(len(self.mean), more, dtype=torch.float64)], 1)
        covariance = torch.nn.functional.pad(self.covariance, (0, more, 0, more))
        covariance[:, -more:, -more:] = torch.eye(more, dtype=torch.float64)
        prior_mean = np.concatenate([self.prior_mean, other.prior_mean], axis=1)
        prior_root = np.concatenate([self.prior_root, other.prior_root], axis=1)
        return replace(self, mean=mean, covariance=covariance, prior_mean=prior_mean, prior_root=prior_root)


def joint_prior(n_tasks: int, n_actions: int, size: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return mean and covariance of the state without observations, (B, S) and (B, S, S)."""
    width = (1 + n_actions) * size + 1
    mean, covariance = torch.zeros(n_tasks, width, dtype=dtype), torch.eye(width, dtype=dtype).repeat(n_tasks, 1, 1)
    mean[:, size] = 1
    covariance[:, size, size] = 0
    return mean, covariance
