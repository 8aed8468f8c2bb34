"""The paper's synthetic setting: (seed, split, indices) in, logistic bandit tasks out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_integer, check_number, check_reward
from gents_gym.randomness import stream
from gents_gym.tasks.logistic import FEATURE_DIM, count_latents, draw_numbers, draw_outcomes
from gents_gym.types import ActionRows, RewardFn, Tasks, expected_reward, identity


@dataclass(frozen=True)
class Synthetic:
    """Logistic outcomes with action-specific coefficients whose prior depends on the action's features.

    Z ~ N(0, I_2), X ~ N(0, I_D), Y ~ Bernoulli(σ(W)) with
    W = U_const + U_Z·Z + U_X·X + X_{1:2}ᵀ diag(U_cross) Z, all U per action and independent:
    U_const ~ N(0, 1), the entries of U_Z, U_X and U_cross ~ N(1, 0.25²).

    Contexts are independent, as in the paper, with ``context_spread`` 1. With s below 1 they are
    √(1 - s²) X̄ + s X, where X̄ ~ N(0, I_D) is the task's own: each is still N(0, I_D), but they are alike, and
    with 0 all the same, a bandit without contexts.
    """

    n_actions: int = 10  # A
    horizon: int = 500  # T
    context_dim: int = 5  # D
    context_spread: float = 1.0  # s
    reward_fn: RewardFn = identity  # R, of outcomes in {0, 1}

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_integer("context_dim", self.context_dim, FEATURE_DIM)
        if check_number("context_spread", self.context_spread, 0) > 1:
            raise InputError(f"context_spread must be at most 1, got {self.context_spread}")
        check_reward(self.reward_fn)

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        rngs = [stream(seed, "task", index, split) for index in indices]
        features, contexts, outcomes, chances = self._draw(rngs, self.n_actions, self.horizon)
        means = expected_reward(self.reward_fn, chances)
        return Tasks(features, contexts, outcomes, means, oracle="logistic", reward_fn=self.reward_fn)

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        n_rows = check_integer("n_rows", n_rows, 1)
        rngs = [stream(seed, "actions", index, split) for index in indices]
        features, contexts, outcomes, _ = self._draw(rngs, 1, n_rows)
        return ActionRows(features[:, 0], contexts, outcomes[:, :, 0], self.reward_fn)

    def _draw(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), X (B, T, D), Y (B, T, A) and P(Y=1) (B, T, A), task i from ``rngs[i]`` alone."""
        latents_shape = (n_actions, count_latents(self.context_dim))
        shapes = [(n_actions, FEATURE_DIM), latents_shape, (n_rows, self.context_dim)]
        if self.context_spread < 1:
            shapes.append((1, self.context_dim))
        (features, latents, contexts, *centre), uniform = draw_numbers(rngs, shapes, n_rows, n_actions)
        if centre:
            contexts *= self.context_spread
            contexts += math.sqrt(1 - self.context_spread**2) * centre[0]
        return features, contexts, *draw_outcomes(features, latents, contexts, uniform)
