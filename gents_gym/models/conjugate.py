"""The posterior of coefficients for Gaussian outcomes with known noise: Bayesian linear regression in closed form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.likelihoods import GAUSSIAN, NODES
from gents_gym.models.ledger import Ledger
from gents_gym.types import RewardFn

RULE = NODES[::4]  # nodes of the quadrature rule for variances: four per standard deviation
SHARES = np.exp(-0.5 * RULE**2) / np.exp(-0.5 * RULE**2).sum()
Rngs = Sequence[np.random.Generator]


@dataclass(eq=False)
class ConjugatePosterior:
    """N(m, SSᵀ) for each of B·A actions, whose outcomes are N(x·β, σ²); see :class:`gents_gym.models.exact.Posterior`.

    An upper triangular root S replaces the covariance. Carlson's update costs O(K²) per outcome, no variance falls
    below 0, a draw is m + S times normals, and the order in which outcomes arrive affects only rounding.
    """

    mean: np.ndarray  # m, (B, A, K)
    root: np.ndarray  # S, (B, A, K, K)
    noise: float  # σ²

    @classmethod
    def prior(cls, mean: np.ndarray, variance: np.ndarray, noise: float) -> "ConjugatePosterior":
        """Return the prior: independent coefficients with means and variances (B, A, K)."""
        return cls(mean.copy(), np.sqrt(variance)[..., None] * np.eye(mean.shape[-1]), noise)

    def learn(self, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray) -> None:
        """Learn outcomes (n,) in rows (n, K), at most one of each task."""
        mean, root = self.mean[task, action], self.root[task, action]  # (n, K), (n, K, K)
        reach = (rows[:, None] @ root)[:, 0]  # Sᵀx, (n, K)
        after = self.noise + np.cumsum(reach**2, axis=1)  # (n, K); the last is the variance of the prediction
        before = np.concatenate([np.full((len(after), 1), self.noise), after[:, :-1]], axis=1)
        moved = np.cumsum(root * reach[:, None], axis=2)  # (n, K, K); the last column is SSᵀx
        surprise = (outcome - (rows * mean).sum(axis=1)) / after[:, -1]
        self.mean[task, action] = mean + moved[..., -1] * surprise[:, None]
        root *= np.sqrt(before / after)[:, None]
        root[..., 1:] -= moved[..., :-1] * (reach / np.sqrt(before * after))[:, None, 1:]
        self.root[task, action] = root

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x·β, (B, C, K) to (B, C, A) each."""
        reach = rows[:, :, None, None] @ self.root[:, None]  # (B, C, A, 1, K)
        return rows @ self.mean.swapaxes(1, 2), (reach[..., 0, :] ** 2).sum(axis=-1)

    def expected(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return mean rewards under the posterior predictive, (B, C, K) to (B, C, A)."""
        mean, variance = self.predict(rows)
        return GAUSSIAN.expected_reward(reward_fn, np.stack([mean, variance + self.noise], axis=-1))

    def variance(self, rows: np.ndarray, reward_fn: RewardFn, rngs: Rngs) -> np.ndarray:
        """Return the posterior variance of E[R(Y) | β], (B, C, K) to (B, C, A), by a rule over x·β."""
        mean, variance = self.predict(rows)
        nodes = mean[..., None] + np.sqrt(variance)[..., None] * RULE  # (B, C, A, nodes)
        rewards = GAUSSIAN.expected_reward(reward_fn, self._around(nodes))
        return (rewards - (rewards @ SHARES)[..., None]) ** 2 @ SHARES

    def draw(self, draws: int, rngs: Rngs) -> np.ndarray:
        """Return independent draws of the coefficients, (B, M, A, K)."""
        normal = np.stack([rng.standard_normal((draws, *self.mean.shape[1:])) for rng in rngs])
        return self.mean[:, None] + (self.root[:, None] @ normal[..., None])[..., 0]

    def sample(self, rows: np.ndarray, first: int, rngs: Rngs) -> np.ndarray:
        """Return the parameters of outcomes under drawn coefficients, (B, M, T', K) to (B, M, T', A, 2)."""
        return self.parameters(rows, self.draw(rows.shape[1], rngs))

    def parameters(self, rows: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return the parameters of outcomes given coefficients, (..., T', K) and (..., A, K) to (..., T', A, 2)."""
        return self._around(rows @ coefficients.swapaxes(-1, -2))

    def pick(self, tasks: np.ndarray, ledger: Ledger) -> "ConjugatePosterior":
        """Return a copy of the tasks at ``tasks``."""
        return replace(self, mean=self.mean[tasks], root=self.root[tasks])

    def join(self, other: "ConjugatePosterior") -> "ConjugatePosterior":
        """Return the posterior of these actions followed by the other's."""
        mean, root = (np.concatenate(parts, axis=1) for parts in ((self.mean, other.mean), (self.root, other.root)))
        return replace(self, mean=mean, root=root)

    def _around(self, mean: np.ndarray) -> np.ndarray:
        """Return the parameters of outcomes around their means, (...) to (..., 2)."""
        return np.stack([mean, np.full_like(mean, self.noise)], axis=-1)


def conjugate_marginal(prior: ConjugatePosterior, rows: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Return log p(Y | X) of N single actions, as the sum of one-step predictions, (N,).

    Args:
        prior: The prior of (N, 1) actions; it learns all rows.
        rows: (N, R, K).
        outcomes: (N, R).
    """
    every, found = np.arange(len(rows)), np.zeros(len(rows))
    for x, y in zip(rows.swapaxes(0, 1), outcomes.T, strict=True):
        mean, variance = (part[:, 0, 0] for part in prior.predict(x[:, None]))
        found += GAUSSIAN.log_prob(np.stack([mean, variance + prior.noise], axis=-1), y)
        prior.learn(every, np.zeros_like(every), x, y)
    return found
