"""The synthetic setting with coefficients that change during a task: a random walk, or a jump at an unknown time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gents_gym.checks import InputError, check_choice, check_flag, check_number
from gents_gym.tasks.logistic import draw_coefficients, outcomes_given, paper_prior
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Truth

DRIFTS = ("walk", "jump")
DRIFTING_OUTCOMES = ("bernoulli", "gaussian")


def drop_time(contexts: np.ndarray) -> np.ndarray:
    """Return contexts without their last entry, (..., D+1) to (..., D): what outcomes depend on."""
    return contexts[..., :-1]


@dataclass(frozen=True)
class Drifting(Synthetic):
    """:class:`Synthetic` tasks whose coefficients change; at decision 0 they are those of the same synthetic task.

    β ~ N(μ(Z), V(Z)) is the paper's prior of an action's coefficients, and V is diagonal.

    - "walk": β_t = μ + (1 - rate)(β_{t-1} - μ) + √(1 - (1 - rate)²) V^½ ε_t, with ε_t ~ N(0, I) for each action. At
      every decision β_t has the prior's distribution.
    - "jump": before each decision but the first, with probability ``rate``, all actions get new coefficients from the
      prior. This happens at most once in a task.

    In both, coefficients at decision t have the correlation (1 - rate)^t with those at the start. With rate 0 they
    stay. The last entry of a context is the time t/T, which agents know ahead, and the oracle's policy class is
    ``moving``.
    """

    drift: str = "walk"  # or "jump"
    rate: float = 0.005  # rate of the drift per decision; its inverse is the period
    time: bool = True  # whether t/T is the last entry of contexts

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice("outcomes", self.outcomes, DRIFTING_OUTCOMES)
        check_choice("drift", self.drift, DRIFTS)
        if check_number("rate", self.rate, 0) > 1:
            raise InputError(f"rate must be at most 1, got {self.rate}")
        check_flag("time", self.time)
        super().__post_init__()

    @cached_property
    def truth(self) -> Truth:
        """p*, the same object at every call."""
        return replace(super().truth, drift=self.drift, rate=self.rate)

    @property
    def context_map(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """φ_X: contexts without the time."""
        return drop_time if self.time else None

    @property
    def oracle(self) -> str | None:
        """A policy class that moves with time, if coefficients move and policies see the time."""
        if not (self.rate and self.time):
            return None
        return "moving(base=logistic)" if self.outcomes == "bernoulli" else "moving"

    @property
    def known_columns(self) -> tuple[int, ...]:
        """The time."""
        return (self.context_dim,) if self.time else ()

    def _draw(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), X (B, T, D+1), Y (B, T, A) and its parameters (B, T, A, ...)."""
        if not self.rate:
            features, contexts, *drawn = super()._draw(rngs, n_actions, n_rows)
            return features, self._with_time(contexts), *drawn
        features, normals, contexts, noise = self._draw_numbers(rngs, n_actions, n_rows)
        intercepts, slopes = draw_coefficients(features, normals, self.n_slopes)
        start = np.concatenate([intercepts[..., None], slopes], axis=-1)  # (B, A, K)
        mean, variance = paper_prior(features, self.n_slopes)
        move = self._walk if self.drift == "walk" else self._jump
        predictors = np.empty(noise.shape, np.float32)
        for i, rng in enumerate(rngs):  # one at a time, because the coefficients of all decisions take much memory
            moved = move(rng, (start[i] - mean[i]) / np.sqrt(variance[i]), n_rows)  # (T, A, K)
            coefficients = mean[i] + np.sqrt(variance[i]) * moved
            predictors[i] = coefficients[..., 0] + (coefficients[..., 1:] @ contexts[i, :, :, None])[..., 0]
        return features, self._with_time(contexts), *outcomes_given(predictors, noise, self.likelihood)

    def _walk(self, rng: np.random.Generator, start: np.ndarray, n_rows: int) -> np.ndarray:
        """Return standardised coefficients of all decisions, (A, K) to (T, A, K)."""
        kept = 1 - self.rate
        steps = np.sqrt(1 - kept**2) * rng.standard_normal((n_rows, *start.shape), np.float32)
        steps[0] = start
        from scipy.signal import lfilter  # its import takes a second

        return lfilter([1.0], [1.0, -kept], steps.astype(np.float64), axis=0)

    def _jump(self, rng: np.random.Generator, start: np.ndarray, n_rows: int) -> np.ndarray:
        """Return standardised coefficients of all decisions, (A, K) to (T, A, K)."""
        when, after = rng.geometric(self.rate), rng.standard_normal(start.shape, np.float32)
        return np.where((np.arange(n_rows) < when)[:, None, None], start, after)

    def _with_time(self, contexts: np.ndarray) -> np.ndarray:
        """Return contexts with t/T appended, (B, T, D) to (B, T, D+1); rows beyond the horizon continue to count."""
        if not self.time:
            return contexts
        times = np.broadcast_to(np.arange(contexts.shape[1], dtype=np.float32) / self.horizon, contexts.shape[:2])
        return np.concatenate([contexts, times[..., None].astype(np.float32)], axis=-1)
