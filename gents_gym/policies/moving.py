"""Policies that move with time: their slopes are polynomials of the time, the last entry of a context."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice, check_contexts, check_integer
from gents_gym.construct import make_policy
from gents_gym.types import Policy, PolicyClass, RewardFn, identity

MOST = 8  # the highest degree


def with_time(contexts: np.ndarray, degree: int) -> np.ndarray:
    """Return X and P_j(2t - 1)·(1, X) for Legendre's P_1, …, P_degree, (..., D+1) to (..., D + degree·(D+1)).

    The time t, the last entry of a context, is clipped to [0, 1].
    """
    x, time = contexts[..., :-1], np.clip(2 * contexts[..., -1:] - 1, -1, 1)  # (..., D), (..., 1)
    rows = np.concatenate([np.ones_like(time), x], axis=-1)
    bends = np.polynomial.legendre.legvander(time[..., 0], degree)[..., 1:]  # (..., degree)
    moved = (bends[..., None] * rows[..., None, :]).reshape(*contexts.shape[:-1], -1)
    return np.concatenate([x, moved], axis=-1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class MovingPolicy:
    """A policy fitted to contexts and their products with time."""

    fitted: Policy
    degree: int
    shape: tuple[int, int]  # (B, D)

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        contexts = check_contexts(context, *self.shape)
        found = self.fitted.scores(with_time(contexts, self.degree))
        return found if np.ndim(context) == 3 else found[:, 0]


@dataclass(frozen=True)
class Moving:
    """Another policy class, with intercept and slopes that are polynomials of the time, the last entry of contexts."""

    base: str = "least-squares"  # or "logistic"
    degree: int = 4  # degree of the polynomials
    reward_fn: RewardFn = identity  # R of the outcomes
    inner: PolicyClass = field(init=False, repr=False)  # the class that is fitted

    def __post_init__(self) -> None:
        """Make the class that is fitted."""
        check_choice("base of moving:", self.base.partition("(")[0], ["logistic", "least-squares"])
        if check_integer("degree", self.degree, 1) > MOST:
            raise InputError(f"degree must be at most {MOST}, got {self.degree}")
        object.__setattr__(self, "inner", make_policy(self.base, reward_fn=self.reward_fn))

    def fit(
        self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None, weights: np.ndarray | None = None
    ) -> MovingPolicy:
        """Fit one policy per task to contexts (B, T, D) and outcomes (B, T, A)."""
        last = warm_start.fitted if isinstance(warm_start, MovingPolicy) else None
        fitted = self.inner.fit(with_time(contexts, self.degree), outcomes, last, weights)  # type: ignore[call-arg]
        return MovingPolicy(fitted, self.degree, (len(contexts), contexts.shape[2]))
