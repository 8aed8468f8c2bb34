"""What the paper's two settings share: action-specific logistic outcomes; random numbers in, tables out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError, check_integer, check_number, check_reward
from gents_gym.types import RewardFn, identity

FEATURE_DIM = 2  # size of φ_Z, and of the part of φ_X that meets it in the cross term
SPREAD = 0.25  # standard deviation of U_Z, U_X and U_cross around 1


def count_latents(n_slopes: int) -> int:
    """Return how many latent variables an action has: U_const, U_Z, U_X and U_cross."""
    return 1 + FEATURE_DIM + n_slopes + FEATURE_DIM


@dataclass(frozen=True)
class LogisticSetting:
    """What both settings can be asked for.

    Contexts are independent N(0, I_D), as in the paper, with ``context_spread`` 1. With s below 1 they are
    √(1 - s²) X̄ + s X, where X̄ ~ N(0, I_D) is the task's own: each is still N(0, I_D), but they are alike, and
    with 0 all the same, a bandit without contexts.
    """

    smallest_context: ClassVar[int] = FEATURE_DIM

    n_actions: int = 10  # A
    horizon: int = 500  # T
    context_dim: int = 5  # D
    context_spread: float = 1.0  # s
    reward_fn: RewardFn = identity  # R, of outcomes in {0, 1}

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_integer("context_dim", self.context_dim, self.smallest_context)
        if check_number("context_spread", self.context_spread, 0) > 1:
            raise InputError(f"context_spread must be at most 1, got {self.context_spread}")
        check_reward(self.reward_fn)


def draw_numbers(
    rngs: Sequence[np.random.Generator],
    shapes: Sequence[tuple[int, int]],
    n_rows: int,
    n_actions: int,
    spread: float,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return normals, (B, *shape) for each of ``shapes``, and uniforms (B, T, A), task i's from ``rngs[i]`` alone.

    The normals are independent, but for the last ones, the contexts, whose ``spread`` may be below 1.
    """
    drawn = [*shapes, (1, shapes[-1][1])] if spread < 1 else shapes
    sizes = [rows * columns for rows, columns in drawn]
    normal = np.empty((len(rngs), sum(sizes)), np.float32)
    uniform = np.empty((len(rngs), n_rows, n_actions), np.float32)
    for i, rng in enumerate(rngs):
        rng.standard_normal(out=normal[i], dtype=np.float32)
        rng.random(out=uniform[i], dtype=np.float32)
    flat = np.split(normal, np.cumsum(sizes)[:-1], axis=1)
    parts = [part.reshape(len(rngs), *shape) for part, shape in zip(flat, drawn, strict=True)]
    if spread < 1:
        centre = parts.pop()
        parts[-1] *= spread
        parts[-1] += math.sqrt(1 - spread**2) * centre
    return parts, uniform


def draw_outcomes(
    features: np.ndarray, latents: np.ndarray, contexts: np.ndarray, uniform: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Y and P(Y=1), (B, T, A) each; Y takes the place of ``uniform``.

    Y ~ Bernoulli(σ(W)), W = U_const + U_Z·φ_Z + U_X·φ_X + φ_X,1:2ᵀ diag(U_cross) φ_Z.

    Args:
        features: φ_Z, (B, A, 2).
        latents: Standard normals, (B, A, :func:`count_latents`).
        contexts: φ_X, (B, T, D').
        uniform: (B, T, A).
    """
    intercepts, slopes = _coefficients(features, latents, contexts.shape[2])
    # In place from here on: fresh arrays of this size cost more than the arithmetic.
    chances = contexts @ slopes.swapaxes(1, 2)  # (B, T, A)
    chances += intercepts[:, None]
    expit(chances, out=chances)
    return np.less(uniform, chances, out=uniform), chances


def _coefficients(features: np.ndarray, latents: np.ndarray, n_slopes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the intercepts (B, A) and slopes (B, A, D') of the logits."""
    constant = latents[..., 0]  # (B, A)
    others = 1 + SPREAD * latents[..., 1:]  # (B, A, 2 + D' + 2)
    by_feature, by_context, cross = np.split(others, [FEATURE_DIM, FEATURE_DIM + n_slopes], axis=-1)
    slopes = by_context.copy()  # (B, A, D')
    slopes[..., :FEATURE_DIM] += cross * features
    return constant + (by_feature * features).sum(-1), slopes
