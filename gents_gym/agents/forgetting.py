"""Bayesian linear regression that forgets: rows lose weight with every decision, or leave a window."""

from collections import deque
from typing import Any

import numpy as np

from gents_gym.agents.available import Available
from gents_gym.agents.linear import LinearPosterior, LinearPrior
from gents_gym.types import TaskInfo

Row = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # tasks, features, actions and rewards of n rows


def make_posterior(
    prior: LinearPrior, info: TaskInfo, discount: float = 1.0, window: int | None = None
) -> "LinearPosterior | ForgettingPosterior":
    """Return posteriors with the requested forgetting; without any, they use cheaper updates."""
    if discount == 1 and window is None:
        return LinearPosterior(prior, info)
    return ForgettingPosterior(prior, info, discount, window)


class ForgettingPosterior:
    """The posteriors of B·A coefficient vectors, with forgetting of old rows.

    A row has the weight γ^n after n further decisions of its task, whatever actions they played, and no weight after
    ``window`` further decisions. The prior always has full weight. A late row is weighted from its arrival on.
    """

    def __init__(self, prior: LinearPrior, info: TaskInfo, discount: float, window: int | None) -> None:
        """Start all posteriors at the prior."""
        self._info, self._noise, self._discount, self._window = info, prior.noise, discount, window
        self._tasks = np.arange(len(info))
        self._first = np.linalg.inv(prior.covariance)  # (K, K)
        self._pull = self._first @ prior.mean  # (K,)
        size = len(prior.mean)
        self._squares = np.zeros((len(info), info.n_actions, size, size))  # Σ γⁿ xxᵀ/σ²
        self._products = np.zeros((len(info), info.n_actions, size))  # Σ γⁿ x R(y)/σ²
        self._rows: deque[list[Row]] = deque()  # the rows in the window, by decision

    def predict(self, features: np.ndarray, live: Available | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and standard deviation of x·β, (B, K) to (B, A) each, or for the live actions, (B, n)."""
        x = np.ascontiguousarray(features)
        at: Any = ... if live is None else (self._tasks[:, None], live.actions)
        covariance = np.linalg.inv(self._first + self._squares[at])  # (B, A, K, K)
        direction = np.einsum("baij,bj->bai", covariance, x)
        mean = np.einsum("bak,bak->ba", direction, self._pull + self._products[at])
        variance = np.einsum("bak,bk->ba", direction, x)
        return mean, np.sqrt(np.maximum(variance, 0, out=variance))

    def fade(self) -> None:
        """Advance by one decision: all rows lose weight, and the oldest leave the window."""
        self._squares *= self._discount
        self._products *= self._discount
        if self._window is not None:
            self._rows.append([])
            if len(self._rows) > self._window:
                for row in self._rows.popleft():
                    self._add(row, -(self._discount**self._window) / self._noise)

    def update(
        self, features: np.ndarray, action: np.ndarray, outcome: np.ndarray, task: np.ndarray | None = None
    ) -> None:
        """Learn R of outcomes (n,) of actions (n,) with features (n, K), in tasks (n,); None: all tasks, in order."""
        rewards = np.array(self._info.reward_fn(outcome), np.float64)
        row = ((self._tasks if task is None else task).copy(), features.copy(), action.copy(), rewards)
        self._add(row, 1 / self._noise)
        if self._window is not None:
            self._rows[-1].append(row)

    def _add(self, row: Row, weight: float) -> None:
        task, x, action, reward = row
        self._squares[task, action] += weight * (x[:, :, None] * x[:, None])
        self._products[task, action] += weight * x * reward[:, None]
