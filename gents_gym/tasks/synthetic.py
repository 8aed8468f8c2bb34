"""The paper's synthetic setting, and its forms with Gaussian and categorical outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import check_choice, check_integer
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical, Likelihood
from gents_gym.tasks.logistic import FEATURE_DIM, LogisticSetting, draw_numbers, draw_outcomes, latents_shape
from gents_gym.types import ActionRows, Tasks

OUTCOMES: dict[str, Likelihood] = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "categorical": Categorical(3)}


@dataclass(frozen=True)
class Synthetic(LogisticSetting):
    """Outcomes of linear predictors with action-specific coefficients whose prior depends on the action's features.

    Z ~ N(0, I_2), X ~ N(0, I_D), W = U_const + U_Z·Z + U_X·X + X_{1:2}ᵀ diag(U_cross) Z, all U per action and
    independent: U_const ~ N(0, 1), the entries of U_Z, U_X and U_cross ~ N(1, 0.25²). The outcome is

    - "bernoulli": 1 with probability σ(W), else 0, as in the paper;
    - "gaussian": N(W, 1);
    - "categorical": 0, 1 or 2 with probabilities softmax(0, W_1, W_2), each W with its own coefficients; the reward is
      R(y) = y/2 unless another is given.
    """

    outcomes: str = "bernoulli"

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice("outcomes", self.outcomes, OUTCOMES)
        super().__post_init__()

    @property
    def likelihood(self) -> Likelihood:
        """What an outcome is."""
        return OUTCOMES[self.outcomes]

    @property
    def oracle(self) -> str | None:
        """The policy class that regret is measured against; None: the one of the likelihood."""
        return None

    @property
    def known_columns(self) -> tuple[int, ...]:
        """The entries of contexts that are known ahead."""
        return ()

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        rngs = self._task_streams(seed, indices, split)
        features, contexts, outcomes, parameters = self._draw(rngs, self.n_actions, self.horizon)
        return Tasks(
            features,
            contexts,
            outcomes,
            self.likelihood.expected_reward(self.reward_fn, parameters),
            reward_fn=self.reward_fn,
            likelihood=self.likelihood,
            truth=self.truth,
            oracle=self.oracle,  # type: ignore[arg-type]  # None: the likelihood decides
            known_columns=self.known_columns,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        n_rows = check_integer("n_rows", n_rows, 1)
        rngs = self._action_streams(seed, indices, n_rows, split)
        features, contexts, outcomes, _ = self._draw(rngs, 1, n_rows)
        return ActionRows(features[:, 0], contexts, outcomes[:, :, 0], self.reward_fn, likelihood=self.likelihood)

    def _draw(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), X (B, T, D), Y (B, T, A) and its parameters (B, T, A, ...)."""
        features, normals, contexts, noise = self._draw_numbers(rngs, n_actions, n_rows)
        return features, contexts, *draw_outcomes(features, normals, contexts, noise, self.likelihood)

    def _draw_numbers(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), the latents of the coefficients, X (B, T, D) and the outcomes' noise (B, T, A)."""
        latents = latents_shape(n_actions, self.context_dim, self.likelihood)
        shapes = [(n_actions, FEATURE_DIM), latents, (n_rows, self.context_dim)]
        parts, noise = draw_numbers(rngs, shapes, n_rows, n_actions, self.context_spread, self.likelihood)
        features, normals, contexts = parts
        return features, normals, contexts, noise
