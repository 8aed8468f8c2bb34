"""The paper's synthetic setting: (seed, split, indices) in, logistic bandit tasks out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import check_integer
from gents_gym.randomness import stream
from gents_gym.tasks.logistic import FEATURE_DIM, LogisticSetting, count_latents, draw_numbers, draw_outcomes
from gents_gym.types import ActionRows, Tasks, expected_reward


@dataclass(frozen=True)
class Synthetic(LogisticSetting):
    """Logistic outcomes with action-specific coefficients whose prior depends on the action's features.

    Z ~ N(0, I_2), X ~ N(0, I_D), Y ~ Bernoulli(σ(W)) with
    W = U_const + U_Z·Z + U_X·X + X_{1:2}ᵀ diag(U_cross) Z, all U per action and independent:
    U_const ~ N(0, 1), the entries of U_Z, U_X and U_cross ~ N(1, 0.25²).
    """

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
        (features, latents, contexts), uniform = draw_numbers(rngs, shapes, n_rows, n_actions, self.context_spread)
        return features, contexts, *draw_outcomes(features, latents, contexts, uniform)
