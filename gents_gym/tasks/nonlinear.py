"""A setting that is not linear in what agents see: outcomes depend on interactions and bends of Z and X."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import pi, sqrt

import numpy as np

from gents_gym.likelihoods import BERNOULLI
from gents_gym.tasks.logistic import FEATURE_DIM, NOISE, count_predictors, draw_numbers, outcomes_given
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Truth

SIZE = 0.5  # of the prior means' bends in Z, and the standard deviation of coefficients around them
MEAN_SIZE = sqrt(2 / pi)  # E|x| of a standard normal x


def bend(numbers: np.ndarray) -> np.ndarray:
    """Return |x| centred and scaled so that it is standardised if x is standard normal, elementwise."""
    found: np.ndarray = (np.abs(numbers) - MEAN_SIZE) / sqrt(1 - MEAN_SIZE**2)
    return found


def nonlinear_features(contexts: np.ndarray) -> np.ndarray:
    """Return φ_X: the entries of X, their products in pairs, and their bends, (..., D) to (..., 2D + D(D-1)/2)."""
    left, right = np.triu_indices(contexts.shape[-1], 1)
    return np.concatenate([contexts, contexts[..., left] * contexts[..., right], bend(contexts)], axis=-1)


def nonlinear_prior(features: np.ndarray, n_context: int, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the coefficients (intercept first) given Z, (..., 2) to (..., K) each.

    The means are sin(2 Z_1) for the intercept, Z_2 / 2 for the entries of X, Z_1 Z_2 / 2 for their products and half
    the bend of Z_1 for their bends. With ``n_rows``, the same for each of so many rows of coefficients,
    (..., n_rows, K).
    """
    features = np.asarray(features, np.float64)
    one, two = features[..., :1], features[..., 1:2]
    n_pairs = n_context * (n_context - 1) // 2
    parts = [(np.sin(2 * one), 1), (SIZE * two, n_context), (SIZE * one * two, n_pairs), (SIZE * bend(one), n_context)]
    mean = np.concatenate([np.repeat(part, times, axis=-1) for part, times in parts], axis=-1)
    variance = np.full_like(mean, SIZE**2)
    if n_rows is None:
        return mean, variance
    return np.stack([mean] * n_rows, axis=-2), np.stack([variance] * n_rows, axis=-2)


@dataclass(frozen=True)
class Nonlinear(Synthetic):
    """Outcomes of predictors that are linear in nothing that agents see.

    Z ~ N(0, I_2), X ~ N(0, I_D), and W = β·(1, φ_X(X)) with φ_X the entries of X, their products in pairs and their
    bends |X_j|, standardised: 14 features of four entries. β is drawn for each action of each task: N(μ(Z), ½² I), with
    μ bent and with an interaction of Z's entries (:func:`nonlinear_prior`). Outcomes given W are as in
    :class:`Synthetic`. φ_X is fixed, so p* is a regression on features that it knows, and its loss is the reference.
    Regret is measured against the policy class "mlp" if outcomes are binary, else against "least-squares".
    """

    context_dim: int = 4  # D

    @property
    def oracle(self) -> str | None:
        """The policy class that regret is measured against; None: the one of the likelihood, which is linear."""
        return "mlp" if self.likelihood == BERNOULLI else None

    @cached_property
    def truth(self) -> Truth:
        """p*, the same object at every call."""
        n_each = count_predictors(self.likelihood)
        prior = partial(nonlinear_prior, n_context=self.context_dim, n_rows=n_each if n_each > 1 else None)
        return Truth(prior, self.likelihood, self.context_map, self.context_spread, NOISE)

    @property
    def context_map(self) -> Callable[[np.ndarray], np.ndarray]:
        """φ_X."""
        return nonlinear_features

    @property
    def n_slopes(self) -> int:
        """D', the size of φ_X."""
        return 2 * self.context_dim + self.context_dim * (self.context_dim - 1) // 2

    def _draw(self, rngs: list[np.random.Generator], n_actions: int, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw Z (B, A, 2), X (B, T, D), Y (B, T, A) and its parameters (B, T, A, ...)."""
        n_each = count_predictors(self.likelihood)
        shapes = [(n_actions, FEATURE_DIM), (n_actions * n_each, 1 + self.n_slopes), (n_rows, self.context_dim)]
        parts, noise = draw_numbers(rngs, shapes, n_rows, n_actions, self.context_spread, self.likelihood)
        features, normals, contexts = parts
        mean, variance = nonlinear_prior(np.repeat(features, n_each, axis=1), self.context_dim)  # (B, A·(C-1), K)
        coefficients = (mean + np.sqrt(variance) * normals).astype(np.float32)
        predictors = nonlinear_features(contexts) @ coefficients[..., 1:].swapaxes(1, 2) + coefficients[:, None, :, 0]
        return features, contexts, *outcomes_given(predictors.astype(np.float32), noise, self.likelihood)
