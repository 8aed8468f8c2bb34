"""A Bernoulli bandit without contexts, whose action features are informative about success probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from gents_gym.checks import check_count, check_integer, check_memory
from gents_gym.likelihoods import BERNOULLI, check_reward
from gents_gym.randomness import stream
from gents_gym.tasks.logistic import FEATURE_DIM, SPREAD, paper_prior
from gents_gym.types import ActionRows, RewardFn, Tasks, Truth, identity


def bernoulli_prior(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the two coefficients whose sum is an action's W given Z, (..., 2) to (..., 2) each.

    The only context is a constant 1, so W is the sum of intercept and slope. They are independent, each with half the
    mean and half the variance of W.
    """
    mean, variance = paper_prior(features, FEATURE_DIM)
    return np.repeat(mean[..., :1] / 2, 2, axis=-1), np.repeat(variance[..., :1] / 2, 2, axis=-1)


@dataclass(frozen=True)
class Bernoulli:
    """Each action has one success probability throughout the task, which its features only hint at.

    Z ~ N(0, I_2), W = U_const + U_Z·Z with U_const ~ N(0, 1) and the entries of U_Z ~ N(1, 0.25²), all per action and
    independent; the outcome is 1 with probability σ(W). This is the synthetic setting without contexts: the context is
    a constant 1.
    """

    n_actions: int = 10  # A
    horizon: int = 500  # T
    reward_fn: RewardFn = identity  # R

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_reward(self.reward_fn)

    @cached_property
    def truth(self) -> Truth:
        """p*; with a context spread of 0, all contexts are the same."""
        return Truth(bernoulli_prior, context_spread=0.0)

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        n_tasks = check_count("indices", indices)
        n_bytes = 4 * n_tasks * self.horizon * 3 * self.n_actions
        check_memory(n_bytes, tasks=n_tasks, horizon=self.horizon, n_actions=self.n_actions)
        rngs = [stream(seed, "task", index, split) for index in indices]
        features, contexts, outcomes, chances = _draw(rngs, self.horizon, self.n_actions)
        return Tasks(
            features,
            contexts,
            outcomes,
            BERNOULLI.expected_reward(self.reward_fn, chances),
            reward_fn=self.reward_fn,
            likelihood=BERNOULLI,
            truth=self.truth,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        n_rows, n_actions = check_integer("n_rows", n_rows, 1), check_count("indices", indices)
        check_memory(4 * n_actions * n_rows * 4, actions=n_actions, rows=n_rows)
        rngs = [stream(seed, "actions", index, split) for index in indices]
        features, contexts, outcomes, _ = _draw(rngs, n_rows, 1)
        return ActionRows(features[:, 0], contexts, outcomes[:, :, 0], self.reward_fn, likelihood=BERNOULLI)


def _draw(rngs: Sequence[np.random.Generator], n_rows: int, n_actions: int) -> tuple[np.ndarray, ...]:
    """Return Z (B, A, 2), X (B, T, 1), Y (B, T, A) and P(Y=1), (B, T, A)."""
    normal = np.empty((len(rngs), n_actions, 2 * FEATURE_DIM + 1), np.float32)
    noise = np.empty((len(rngs), n_rows, n_actions), np.float32)
    for i, rng in enumerate(rngs):
        rng.standard_normal(out=normal[i], dtype=np.float32)
        noise[i] = BERNOULLI.noise(rng, noise[i].shape)
    features, slopes, constant = np.split(normal, [FEATURE_DIM, 2 * FEATURE_DIM], axis=-1)
    chances = expit(constant[..., 0] + ((1 + SPREAD * slopes) * features).sum(axis=-1))  # (B, A)
    chances = np.broadcast_to(chances[:, None], noise.shape)
    return features, np.ones((len(rngs), n_rows, 1), np.float32), BERNOULLI.sample(chances, noise), chances
