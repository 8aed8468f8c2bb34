"""Implements the filter for binary outcomes: recursive logistic regression."""

from typing import Any

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.belief import Kernel
from gents_gym.models.filter_form import FilterKernel, Form, Predicted
from gents_gym.models.filter_kernel import absorb_filter, impute_filter
from gents_gym.models.filter_state import AnyState, DriftingState
from gents_gym.types import Outlook, TaskInfo


class BernoulliForm(Form):
    """P(Y=1) = σ(a) for a predictor a = x·β ~ N(s, v), with E[σ(a)] ≈ σ(κs), κ = (1 + πv/8)^-½.

    Outcomes are absorbed by matching moments under that approximation:

        p = σ(κ·x·m),  m += Px·κ(y − p),  P −= κ²p(1 − p)·(Px)(Px)ᵀ.

    These are the gradient and the curvature of log p in x·m, so p is a density along the whole sequence and is trained
    as one. A prediction is the logit κs and v.
    """

    def predict(self, mean: Tensor, covariance: Tensor, x: Tensor) -> Predicted:
        """Return logit and spread v, (N,) each."""
        _, _, *predicted = _read(mean, covariance, x)
        return tuple(predicted)

    def absorb(
        self, mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
    ) -> tuple[Tensor, Tensor, Predicted]:
        """Return the moments after an outcome, and logit and spread before it."""
        direction, kappa, logit, spread = _read(mean, covariance, x)
        chance = torch.sigmoid(logit)
        gain = kappa * (outcome - chance)
        weight = kappa * kappa * chance * (1 - chance)
        if where is not None:
            gain, weight = gain * where, weight * where
        mean = mean + direction * gain[:, None]
        covariance = covariance - (direction * weight[:, None])[:, :, None] * direction[:, None]
        return mean, covariance, (logit, spread)

    def outcome_parameters(self, predicted: Predicted) -> Tensor:
        """Return P(Y=1), (N,)."""
        return torch.sigmoid(predicted[0])

    def log_prob(self, predicted: Predicted, outcomes: Tensor) -> Tensor:
        """Return the log-probabilities of outcomes."""
        return -binary_cross_entropy_with_logits(predicted[0], outcomes, reduction="none")

    def kernel(self, model: Any) -> Kernel:
        """Return the compiled kernel."""
        return BernoulliKernel(model)


class BernoulliKernel(FilterKernel):
    """The binary form in compiled loops."""

    def given(self, predictors: np.ndarray) -> np.ndarray:
        """Return P(Y=1) for known predictors, (..., 1) to (...)."""
        return np.asarray(expit(predictors[..., 0]))

    def look_ahead(
        self, state: AnyState, row: np.ndarray, rows: np.ndarray, counts: np.ndarray, info: TaskInfo
    ) -> Outlook | None:
        """Return the value of further observations, by the compiled loop; None if states drift."""
        if isinstance(state, DriftingState):
            return None
        losing, winning = (float(reward) for reward in info.reward_fn(BERNOULLI.support))
        return self.run_ahead(True, (losing, winning - losing), 0.0, state, row, rows, counts)

    def predict(self, state: AnyState, contexts: np.ndarray) -> np.ndarray:
        """Return P(Y=1) of every action, (B, C, D) to (B, C, A); other tasks do not change its rounding."""
        mean, spread = self.moments(state, contexts)
        return self.given(mean / np.sqrt(1 + (np.pi / 8) * spread[..., 0]))

    def absorb(
        self,
        state: AnyState,
        task: np.ndarray,
        action: np.ndarray,
        rows: np.ndarray,
        outcome: np.ndarray,
        shape: tuple[int, int],
    ) -> AnyState:
        """Absorb the outcomes in place, only in the states of the played actions."""
        mean, covariance = state.mean.numpy(), state.covariance.numpy()
        where = task * shape[1] + action
        absorb_filter(self.meet(state, where, rows), where, outcome.copy(), mean, covariance)
        return state

    def generate(
        self, state: AnyState, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A), by the compiled loop."""
        rows, drift = self.drift(state, rows)
        return impute_filter(rows, played, seen, state.mean.numpy(), state.covariance.numpy(), noise, *drift)


def shrink(spread: Tensor) -> Tensor:
    """Return κ = (1 + πv/8)^-½."""
    return torch.rsqrt(1 + (torch.pi / 8) * spread)


def _read(mean: Tensor, covariance: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the direction Px, (N, K), and κ, the logit and the spread xᵀPx, (N,) each."""
    direction = (covariance * x[:, None]).sum(2)  # bmm is slower for such small matrices
    spread = (direction * x).sum(1)
    kappa = shrink(spread)
    return direction, kappa, (mean * x).sum(1) * kappa, spread
