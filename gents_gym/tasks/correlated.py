"""The synthetic setting with correlated actions: a task effect on coefficients, a row effect on outcomes."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from gents_gym.checks import InputError, check_choice, check_number
from gents_gym.likelihoods import BERNOULLI
from gents_gym.tasks.logistic import draw_coefficients, outcomes_given, paper_prior
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Truth

CORRELATED_OUTCOMES = ("bernoulli", "gaussian")


@dataclass(frozen=True)
class Correlated(Synthetic):
    """:class:`Synthetic` tasks with correlated actions; each action alone has the same distribution as there.

    β ~ N(μ(Z), V(Z)) is the paper's prior of an action's coefficients, V is diagonal, and e = V^-½(β - μ) are those of
    the synthetic task's actions. With a task effect u ~ N(0, I), the same for all actions,

        β = μ + V^½ (√c u + √(1 - c) e),

    so c is the correlation of a coefficient of two actions. Row t has an effect η_t ~ N(0, 1): the noise of its
    outcomes is √r η_t + √(1 - r) ε_ta, or for binary outcomes a uniform number that is Φ of that. With both 0, tasks
    are those of the synthetic setting.
    """

    correlation: float = 0.5  # c
    row_effect: float = 0.0  # r

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice("outcomes", self.outcomes, CORRELATED_OUTCOMES)
        for name in ("correlation", "row_effect"):
            if check_number(name, getattr(self, name), 0) > 1:
                raise InputError(f"{name} must be at most 1, got {getattr(self, name)}")
        if self.row_effect == 1:
            raise InputError("row_effect must be below 1, because each outcome needs its own noise, got 1")
        super().__post_init__()

    @cached_property
    def truth(self) -> Truth:
        """p*, the same object at every call."""
        return replace(super().truth, correlation=self.correlation, row_effect=self.row_effect)

    def _draw(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), X (B, T, D), Y (B, T, A) and its parameters (B, T, A, ...)."""
        if n_actions == 1 or not (self.correlation or self.row_effect):
            return super()._draw(rngs, n_actions, n_rows)
        features, normals, contexts, noise = self._draw_numbers(rngs, n_actions, n_rows)
        intercepts, slopes = draw_coefficients(features, normals, self.n_slopes)
        own = np.concatenate([intercepts[..., None], slopes], axis=-1)  # (B, A, K)
        mean, variance = paper_prior(features, self.n_slopes)
        task_effects = np.stack([rng.standard_normal((1, own.shape[2])) for rng in rngs])  # (B, 1, K)
        row_effects = np.stack([rng.standard_normal((n_rows, 1)) for rng in rngs])  # (B, T, 1)
        shared = np.sqrt(variance * self.correlation) * task_effects
        coefficients = mean + np.sqrt(1 - self.correlation) * (own - mean) + shared
        predictors = contexts @ coefficients[..., 1:].swapaxes(1, 2) + coefficients[:, None, :, 0]  # (B, T, A)
        noise = self._share_noise(noise, row_effects)
        return features, contexts, *outcomes_given(predictors.astype(np.float32), noise, self.likelihood)

    def _share_noise(self, noise: np.ndarray, row_effects: np.ndarray) -> np.ndarray:
        """Return the noise (B, T, A) with row effects (B, T, 1) added; the distribution in a cell stays the same."""
        if not self.row_effect:
            return noise
        normal = ndtri(noise.astype(np.float64)) if self.likelihood == BERNOULLI else noise
        normal = np.sqrt(1 - self.row_effect) * normal + np.sqrt(self.row_effect) * row_effects
        return (ndtr(normal) if self.likelihood == BERNOULLI else normal).astype(np.float32)
