"""The filter's form for categories: recursive multinomial logistic regression."""

from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from gents_gym.models.belief import Kernel
from gents_gym.models.filter_bernoulli import shrink
from gents_gym.models.filter_form import FilterState, Form, LinearKernel, Predicted
from gents_gym.models.linear_kernel import CATEGORICAL, MOST_LEARNED


class CategoricalForm(Form):
    """Outcomes have the probabilities softmax(0, a_1, …, a_{C-1}), where a_j = x·β_j and all β are jointly Gaussian.

    The binary form with more predictors: for a ~ N(s, V), E[softmax(0, a)] ≈ softmax(0, κ∘s), κ_j = (1 + πV_jj/8)^-½.
    With p and e_y without their first entries, K = diag(κ) and X = I ⊗ x,

        p = softmax(0, κ∘s),  m += PX·K(e_y − p),  P −= PX·K(diag(p) − ppᵀ)K·XᵀP.

    If the predictors vary a lot and against each other, that would take more than all of the variance; then P loses as
    much less as is needed. What it predicts is the logits (0, κ∘s).
    """

    def __init__(self, n_outcomes: int) -> None:
        """Take the number of categories, C."""
        super().__init__()
        self.n_predictors = n_outcomes - 1

    def predict(self, mean: Tensor, covariance: Tensor, x: Tensor) -> Predicted:
        """Return the logits, (N, C)."""
        return (self._read(mean, covariance, x)[3],)

    def absorb(
        self, mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
    ) -> tuple[Tensor, Tensor, Predicted]:
        """Return the moments after an outcome, and the logits before it."""
        directions, spread, kappa, logits = self._read(mean, covariance, x)
        chances = torch.softmax(logits, 1)[:, 1:]  # (N, Q)
        gain = kappa * (one_hot(outcome.long(), 1 + self.n_predictors)[:, 1:] - chances)
        among = torch.diag_embed(chances) - chances[:, :, None] * chances[:, None]
        weight = kappa[:, :, None] * among * kappa[:, None]  # (N, Q, Q)
        learned = (weight * spread).sum((1, 2))  # a bound on the share of the predictors' variance that goes
        weight = weight * (MOST_LEARNED / learned.clamp(min=MOST_LEARNED))[:, None, None]
        if where is not None:
            gain, weight = gain * where[:, None], weight * where[:, None, None]
        mean = mean + (directions * gain[:, None]).sum(2)
        turned = (directions[..., None] * weight[:, None]).sum(2)  # (N, Q·K, Q)
        covariance = covariance - (turned[:, :, None] * directions[:, None]).sum(3)
        return mean, covariance, (logits,)

    def outcome_parameters(self, predicted: Predicted) -> Tensor:
        """Return the probabilities of all outcomes, (N, C)."""
        return torch.softmax(predicted[0], -1)

    def log_prob(self, predicted: Predicted, outcomes: Tensor) -> Tensor:
        """Return the log-probabilities of outcomes."""
        return log_softmax(predicted[0], -1).gather(-1, outcomes.long()[..., None])[..., 0]

    def kernel(self, model: Any) -> Kernel:
        """Return the compiled kernel."""
        return CategoricalKernel(model)

    def _read(self, mean: Tensor, covariance: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return PX, (N, Q·K, Q), the predictors' covariance V, (N, Q, Q), κ, (N, Q), and the logits, (N, C)."""
        n, q = len(x), self.n_predictors
        directions = (covariance.view(n, -1, q, x.shape[1]) * x[:, None, None]).sum(3)
        spread = (directions.view(n, q, -1, q) * x[:, None, :, None]).sum(2)
        kappa = shrink(torch.diagonal(spread, dim1=1, dim2=2).clamp(min=0))
        centre = (mean.view(n, q, -1) * x[:, None]).sum(2)
        return directions, spread, kappa, torch.cat([torch.zeros_like(centre[:, :1]), kappa * centre], 1)


class CategoricalKernel(LinearKernel):
    """The categorical form in compiled loops."""

    code = CATEGORICAL

    def given(self, predictors: np.ndarray) -> np.ndarray:
        """Return the probabilities of all outcomes for known predictors, (..., Q) to (..., C)."""
        return softmax(np.concatenate([np.zeros_like(predictors[..., :1]), predictors], axis=-1), axis=-1)

    def predict(self, state: FilterState, contexts: np.ndarray) -> np.ndarray:
        """Return the probabilities of every action's outcomes, (B, C, D) to (B, C, A, ...)."""
        mean, spread = self.moments(state, contexts)
        own = np.maximum(np.diagonal(spread, axis1=-2, axis2=-1), 0)
        return self.given(mean / np.sqrt(1 + np.pi / 8 * own))
