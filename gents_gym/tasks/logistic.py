"""Shared by the paper's two settings: it turns random numbers into tables with action-specific linear predictors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import expit, softmax

from gents_gym.checks import InputError, check_count, check_integer, check_memory, check_number
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical, Likelihood, check_reward
from gents_gym.randomness import stream
from gents_gym.types import RewardFn, Truth, half, identity

FEATURE_DIM = 2  # size of φ_Z, and of the part of φ_X in the cross term
SPREAD = 0.25  # standard deviation of U_Z, U_X and U_cross around 1
NOISE = 1.0  # variance of Gaussian outcomes around W
STREAM = 900  # bytes of a random generator's state


def paper_prior(features: np.ndarray, n_slopes: int, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the coefficients (intercept first) given φ_Z, (..., 2) to (..., 1+n_slopes) each.

    Both settings of the paper: intercept ~ N(1·φ_Z, 1 + 0.25²|φ_Z|²), slope_j ~ N(1 + φ_Z,j, 0.25²(1 + φ_Z,j²)) for
    the first two, N(1, 0.25²) for the others, all independent. With ``n_rows``, the result is repeated for that many
    rows of coefficients, (..., n_rows, 1+n_slopes).
    """
    features = np.asarray(features, np.float64)
    if features.shape[-1] != FEATURE_DIM:
        rule = f"action_features must be φ_Z, {FEATURE_DIM} entries, for p* (if φ is hidden, exact-twin knows it)"
        raise InputError(f"{rule}, got {features.shape[-1]}")
    mean = np.ones((*features.shape[:-1], 1 + n_slopes))
    variance = np.full_like(mean, SPREAD**2)
    mean[..., 0] = features.sum(axis=-1)
    variance[..., 0] = 1 + SPREAD**2 * (features**2).sum(axis=-1)
    mean[..., 1 : 1 + FEATURE_DIM] += features
    variance[..., 1 : 1 + FEATURE_DIM] *= 1 + features**2
    if n_rows is None:
        return mean, variance
    return np.stack([mean] * n_rows, axis=-2), np.stack([variance] * n_rows, axis=-2)


def latents_shape(n_actions: int, n_slopes: int, likelihood: Likelihood = BERNOULLI) -> tuple[int, int]:
    """Return the number of latent variables U_const, U_Z, U_X and U_cross: a row for each W of each action."""
    return n_actions * count_predictors(likelihood), 1 + FEATURE_DIM + n_slopes + FEATURE_DIM


def count_predictors(likelihood: Likelihood) -> int:
    """Return the number of W that an outcome depends on: one for each category except the first, otherwise one."""
    return likelihood.n_outcomes - 1 if isinstance(likelihood, Categorical) else 1


@dataclass(frozen=True)
class LogisticSetting:
    """The options of both settings.

    Contexts are independent N(0, I_D), as in the paper, with ``context_spread`` 1. With s below 1 they are √(1 - s²) X̄
    + s X, where X̄ ~ N(0, I_D) is fixed for each task: each is still N(0, I_D), but they are similar. With 0 they are
    all the same, which makes a bandit without contexts.
    """

    smallest_context: ClassVar[int] = FEATURE_DIM

    n_actions: int = 10  # A
    horizon: int = 500  # T
    context_dim: int = 5  # D
    context_spread: float = 1.0  # s
    reward_fn: RewardFn = None  # type: ignore[assignment]  # R; None: R(y) = y, or y/2 of categories

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_integer("context_dim", self.context_dim, self.smallest_context)
        if check_number("context_spread", self.context_spread, 0) > 1:
            raise InputError(f"context_spread must be at most 1, got {self.context_spread}")
        if self.reward_fn is None:
            object.__setattr__(self, "reward_fn", half if isinstance(self.likelihood, Categorical) else identity)
        check_reward(self.reward_fn, self.likelihood)

    @property
    def likelihood(self) -> Likelihood:
        """What an outcome is."""
        return BERNOULLI

    @cached_property
    def truth(self) -> Truth:
        """p*, the same object at every call."""
        n_rows = count_predictors(self.likelihood) if isinstance(self.likelihood, Categorical) else None
        prior = partial(paper_prior, n_slopes=self.n_slopes, n_rows=n_rows)
        return Truth(prior, self.likelihood, self.context_map, self.context_spread, NOISE)

    @property
    def context_map(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """φ_X, (..., D) to (..., D'); None: the identity."""
        return None

    @property
    def n_slopes(self) -> int:
        """D', the size of φ_X."""
        return self.context_dim

    def _task_streams(self, seed: int, indices: Sequence[int], split: str) -> list[np.random.Generator]:
        """Return the generator of each task. Raises if the tasks do not fit into memory."""
        n_tasks, sizes = check_count("indices", indices), {"n_actions": self.n_actions, "horizon": self.horizon}
        n_bytes = n_tasks * self._draw_bytes(int(self.n_actions), int(self.horizon))
        check_memory(n_bytes, tasks=n_tasks, **sizes, context_dim=self.context_dim)
        return [stream(seed, "task", index, split) for index in indices]

    def _action_streams(self, seed: int, indices: Sequence[int], n_rows: int, split: str) -> list[np.random.Generator]:
        """Return the generator of each single action. Raises if their rows do not fit into memory."""
        n_actions = check_count("indices", indices)
        n_bytes = n_actions * self._draw_bytes(1, n_rows)
        check_memory(n_bytes, actions=n_actions, rows=n_rows, context_dim=self.context_dim)
        return [stream(seed, "actions", index, split) for index in indices]

    def _draw_bytes(self, n_actions: int, n_rows: int) -> int:
        """Return the least number of bytes for a task's generator, latents, contexts, noise, outcomes and means."""
        rows, columns = latents_shape(n_actions, int(self.n_slopes), self.likelihood)
        return STREAM + 4 * (rows * columns + n_rows * (int(self.context_dim) + 3 * n_actions))


def draw_numbers(
    rngs: Sequence[np.random.Generator],
    shapes: Sequence[tuple[int, int]],
    n_rows: int,
    n_actions: int,
    spread: float,
    likelihood: Likelihood = BERNOULLI,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return normals, (B, *shape) for each of ``shapes``, and noise (B, T, A); task i's come only from ``rngs[i]``.

    The normals are independent, except the last ones, the contexts, whose ``spread`` may be below 1.
    """
    drawn = [*shapes, (1, shapes[-1][1])] if spread < 1 else shapes
    sizes = [rows * columns for rows, columns in drawn]
    normal = np.empty((len(rngs), sum(sizes)), np.float32)
    noise = np.empty((len(rngs), n_rows, n_actions), np.float32)
    for i, rng in enumerate(rngs):
        rng.standard_normal(out=normal[i], dtype=np.float32)
        noise[i] = likelihood.noise(rng, noise[i].shape)
    flat = np.split(normal, np.cumsum(sizes)[:-1], axis=1)
    parts = [part.reshape(len(rngs), *shape) for part, shape in zip(flat, drawn, strict=True)]
    if spread < 1:
        centre = parts.pop()
        parts[-1] *= spread
        parts[-1] += math.sqrt(1 - spread**2) * centre
    return parts, noise


def draw_outcomes(
    features: np.ndarray,
    latents: np.ndarray,
    contexts: np.ndarray,
    noise: np.ndarray,
    likelihood: Likelihood = BERNOULLI,
) -> tuple[np.ndarray, np.ndarray]:
    """Return Y, (B, T, A), and the parameters of its likelihood, (B, T, A, ...).

    W = U_const + U_Z·φ_Z + U_X·φ_X + φ_X,1:2ᵀ diag(U_cross) φ_Z. Y is Bernoulli(σ(W)), N(W, 1), or one of C categories
    with the probabilities softmax(0, W_1, …, W_{C-1}).

    Args:
        features: φ_Z, (B, A, 2).
        latents: Standard normals, (B, *:func:`latents_shape`), with an action's rows next to each other.
        contexts: φ_X, (B, T, D').
        noise: The random numbers for ``likelihood.sample``, (B, T, A).
        likelihood: What an outcome is.
    """
    if (n_each := count_predictors(likelihood)) > 1:
        features = np.repeat(features, n_each, axis=1)
    intercepts, slopes = draw_coefficients(features, latents, contexts.shape[2])
    with np.errstate(invalid="ignore"):  # some libraries' small products set this flag on finite numbers
        predictors = contexts @ slopes.swapaxes(1, 2)  # (B, T, A·(C-1))
    predictors += intercepts[:, None]
    return outcomes_given(predictors, noise, likelihood)


def outcomes_given(
    predictors: np.ndarray, noise: np.ndarray, likelihood: Likelihood = BERNOULLI
) -> tuple[np.ndarray, np.ndarray]:
    """Return Y, (B, T, A), and the parameters of its likelihood given W, which may be overwritten."""
    parameters = _parameters(predictors, likelihood)
    return likelihood.sample(parameters, noise), parameters


def _parameters(predictors: np.ndarray, likelihood: Likelihood) -> np.ndarray:
    """Return the likelihood's parameters given W, (B, T, A·(C-1)) to (B, T, A, ...); W may be overwritten."""
    if likelihood == BERNOULLI:
        return expit(predictors, out=predictors)  # allocating an array of this size costs more than the arithmetic
    if likelihood == GAUSSIAN:
        return np.stack([predictors, np.full_like(predictors, NOISE)], axis=-1)
    logits = predictors.reshape(*predictors.shape[:2], -1, count_predictors(likelihood))  # (B, T, A, C-1)
    return softmax(np.pad(logits, ((0, 0), (0, 0), (0, 0), (1, 0))), axis=-1)


def draw_coefficients(features: np.ndarray, latents: np.ndarray, n_slopes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the intercepts (B, A) and slopes (B, A, D') of W."""
    constant = latents[..., 0]  # (B, A)
    others = 1 + SPREAD * latents[..., 1:]  # (B, A, 2 + D' + 2)
    by_feature, by_context, cross = np.split(others, [FEATURE_DIM, FEATURE_DIM + n_slopes], axis=-1)
    slopes = by_context.copy()  # (B, A, D')
    slopes[..., :FEATURE_DIM] += cross * features
    return constant + (by_feature * features).sum(-1), slopes
