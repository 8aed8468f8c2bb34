"""Implements the filter for real outcomes: recursive Bayesian linear regression, which is exact."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gents_gym.models.belief import Kernel
from gents_gym.models.filter_form import Form, LinearKernel, Predicted
from gents_gym.models.filter_state import AnyState, DriftingState
from gents_gym.models.linear_kernel import GAUSSIAN
from gents_gym.types import Outlook, TaskInfo, identity

LEAST_NOISE = 1e-4  # least noise of outcomes with variance 1: with less, single precision cannot hold the posterior


class GaussianForm(Form):
    """Y = x·β + N(0, σ²), where σ² is fitted and the same for all actions; outcomes are standardised first.

    With v = xᵀPx + σ² the posterior is

        m += Px (y − x·m)/v,  P −= (Px)(Px)ᵀ/v.

    A prediction is x·m and v, for standardised outcomes.
    """

    outcome_scaling: Tensor  # (2,): what is subtracted from an outcome, and what the result is multiplied by

    def __init__(self) -> None:
        """Start with noise of variance 1 and no scaling."""
        super().__init__()
        self.log_noise = nn.Parameter(torch.zeros(()))
        self.register_buffer("outcome_scaling", torch.tensor([0.0, 1.0]))

    @property
    def noise(self) -> Tensor:
        """σ² of standardised outcomes."""
        return LEAST_NOISE + self.log_noise.exp()

    def set_noise(self, noise: float) -> None:
        """Set σ² of standardised outcomes, at least to the smallest allowed value."""
        with torch.no_grad():
            self.log_noise.fill_(math.log(max(noise - LEAST_NOISE, 1e-3 * LEAST_NOISE)))

    def scale_outcomes(self, outcomes: Tensor) -> Tensor:
        """Return standardised outcomes."""
        return (outcomes - self.outcome_scaling[0]) * self.outcome_scaling[1]

    def predict(self, mean: Tensor, covariance: Tensor, x: Tensor) -> Predicted:
        """Return mean and variance, (N,) each."""
        return self._read(mean, covariance, x)[1:]

    def absorb(
        self, mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
    ) -> tuple[Tensor, Tensor, Predicted]:
        """Return the moments after an outcome, and mean and variance before it."""
        direction, centre, variance = self._read(mean, covariance, x)
        inverse = torch.rsqrt(variance)
        if where is not None:
            inverse = inverse * where
        scaled = direction * inverse[:, None]  # (N, K); its outer product with itself is exactly symmetric
        mean = mean + scaled * (inverse * (self.scale_outcomes(outcome) - centre))[:, None]
        covariance = covariance - scaled[:, :, None] * scaled[:, None]
        return mean, covariance, (centre, variance)

    def outcome_parameters(self, predicted: Predicted) -> Tensor:
        """Return mean and variance in the outcomes' own unit, (N, 2)."""
        centre, variance = predicted
        shift, scale = self.outcome_scaling
        return torch.stack([centre / scale + shift, variance / scale**2], -1)

    def log_prob(self, predicted: Predicted, outcomes: Tensor) -> Tensor:
        """Return the log-densities of outcomes."""
        centre, variance = predicted
        squares = (self.scale_outcomes(outcomes) - centre) ** 2 / variance
        return self.outcome_scaling[1].log() - 0.5 * (torch.log(2 * torch.pi * variance) + squares)

    def kernel(self, model: Any) -> Kernel:
        """Return the compiled kernel."""
        return GaussianKernel(model)

    def _read(self, mean: Tensor, covariance: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the direction Px, (N, K), and mean and variance of the outcome, (N,) each.

        If nothing is left to learn, rounding can make xᵀPx negative. Then the direction is set to 0, so that errors do
        not grow.
        """
        direction = (covariance * x[:, None]).sum(2)  # bmm is slower for such small matrices
        spread = (direction * x).sum(1)
        sound = spread > 0
        return direction * sound[:, None], (mean * x).sum(1), spread * sound + self.noise


class GaussianKernel(LinearKernel):
    """The Gaussian form in compiled loops."""

    code = GAUSSIAN

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.noise, self.shift = model.form.noise.item(), model.form.outcome_scaling[0].item()
        self.unit = 1 / model.form.outcome_scaling[1].item()

    def given(self, predictors: np.ndarray) -> np.ndarray:
        """Return mean and variance for known predictors, (..., 1) to (..., 2)."""
        return self._scaled(predictors[..., 0], np.zeros_like(predictors[..., 0]))

    def predict(self, state: AnyState, contexts: np.ndarray) -> np.ndarray:
        """Return mean and variance of every action's outcome, (B, C, D) to (B, C, A, 2)."""
        mean, spread = self.moments(state, contexts)
        return self._scaled(mean[..., 0], np.maximum(spread[..., 0, 0], 0))

    def look_ahead(
        self, state: AnyState, row: np.ndarray, rows: np.ndarray, counts: np.ndarray, info: TaskInfo
    ) -> Outlook | None:
        """Return the value of further observations, by the compiled loop; None if R(y) ≠ y or states drift."""
        if info.reward_fn is not identity or isinstance(state, DriftingState):
            return None
        return self.run_ahead(False, (self.shift, self.unit), self.noise, state, row, rows, counts)

    def _scaled(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        return np.stack([self.shift + self.unit * mean, self.unit**2 * (spread + self.noise)], axis=-1)
