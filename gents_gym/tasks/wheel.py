"""The wheel bandit of Riquelme, Tucker and Snoek (2018), whose high rewards are found only by exploration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_count, check_integer, check_memory, check_number
from gents_gym.likelihoods import GAUSSIAN, check_reward
from gents_gym.randomness import stream
from gents_gym.types import ActionRows, RewardFn, Tasks, identity

N_ACTIONS = 5
ORACLE = "estimator(estimator=sklearn.tree:DecisionTreeRegressor(random_state=0))"  # a wheel is not a linear function


@dataclass(frozen=True)
class Wheel:
    """Contexts in the unit disc, one safe action, and four actions that pay much in one quarter of the rim each.

    X is uniform in the unit disc. Action 0 has the mean ``mu1`` everywhere. Actions 1 to 4 have the mean ``mu2``, but
    ``mu3`` if ‖X‖ ≥ ``delta`` and X lies in the action's own quarter: (+, +), (+, -), (-, +) and (-, -) by the signs
    of X. Outcomes are Gaussian with the standard deviation ``sigma``. Action features are one-hot. All tasks have the
    same means as functions of X, so a model that learned from the train split knows where the high rewards are.
    """

    delta: float = 0.95  # where the rim begins; a share of 1 - δ² of contexts is on the rim, where rewards are high
    horizon: int = 2000  # T
    mu1: float = 1.2
    mu2: float = 1.0
    mu3: float = 50.0
    sigma: float = 0.01
    reward_fn: RewardFn = identity  # R

    def __post_init__(self) -> None:
        """Check the options."""
        if check_number("delta", self.delta, 0, above=True) >= 1:
            raise InputError(f"delta must be below 1, got {self.delta}")
        check_integer("horizon", self.horizon, 1)
        for name in ("mu1", "mu2", "mu3"):
            check_number(name, getattr(self, name))
        check_number("sigma", self.sigma, 0, above=True)
        check_reward(self.reward_fn, GAUSSIAN)

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        n_tasks = check_count("indices", indices)
        check_memory(4 * n_tasks * self.horizon * 4 * N_ACTIONS, tasks=n_tasks, horizon=self.horizon)
        rngs = [stream(seed, "task", index, split) for index in indices]
        contexts, outcomes, parameters = self._draw(rngs, self.horizon)
        return Tasks(
            np.broadcast_to(np.eye(N_ACTIONS, dtype=np.float32), (n_tasks, N_ACTIONS, N_ACTIONS)),
            contexts,
            outcomes,
            GAUSSIAN.expected_reward(self.reward_fn, parameters),
            oracle=ORACLE,
            reward_fn=self.reward_fn,
            likelihood=GAUSSIAN,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream: any of the five."""
        n_rows, n_actions = check_integer("n_rows", n_rows, 1), check_count("indices", indices)
        check_memory(4 * n_actions * n_rows * 4 * N_ACTIONS, actions=n_actions, rows=n_rows)
        rngs = [stream(seed, "actions", index, split) for index in indices]
        picked = np.array([rng.integers(N_ACTIONS) for rng in rngs], np.int64)  # (N,)
        contexts, outcomes, _ = self._draw(rngs, n_rows)
        features = np.eye(N_ACTIONS, dtype=np.float32)[picked]
        own = np.take_along_axis(outcomes, picked[:, None, None], axis=2)[..., 0]  # (N, R)
        return ActionRows(features, contexts, own, self.reward_fn, likelihood=GAUSSIAN)

    def _draw(self, rngs: Sequence[np.random.Generator], n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X (B, T, 2), Y (B, T, 5) and mean and variance of Y, (B, T, 5, 2)."""
        uniform = np.empty((len(rngs), n_rows, 2))
        noise = np.empty((len(rngs), n_rows, N_ACTIONS), np.float32)
        for i, rng in enumerate(rngs):
            uniform[i] = rng.random((n_rows, 2))
            noise[i] = GAUSSIAN.noise(rng, noise[i].shape)
        radius, angle = np.sqrt(uniform[..., 0]), 2 * np.pi * uniform[..., 1]
        contexts = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).astype(np.float32)
        parameters = np.empty((*noise.shape, 2), np.float32)
        parameters[..., 0], parameters[..., 1] = self.means(contexts), self.sigma**2
        return contexts, GAUSSIAN.sample(parameters, noise), parameters

    def means(self, contexts: np.ndarray) -> np.ndarray:
        """Return the mean outcomes in contexts, (..., 2) to (..., 5)."""
        means = np.full((*contexts.shape[:-1], N_ACTIONS), self.mu2)
        means[..., 0] = self.mu1
        quarter = 1 + 2 * (contexts[..., 0] <= 0) + (contexts[..., 1] <= 0)  # (...): the action whose own it is
        on_rim = np.linalg.norm(contexts, axis=-1) >= self.delta
        means[on_rim[..., None] & (quarter[..., None] == np.arange(N_ACTIONS))] = self.mu3
        return means
