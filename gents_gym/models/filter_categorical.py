"""Implements the filter for categories: recursive multinomial logistic regression."""

from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import log_softmax

from gents_gym.models.belief import Kernel
from gents_gym.models.filter_form import Form, LinearKernel, Predicted, spread_nodes
from gents_gym.models.filter_state import AnyState
from gents_gym.models.linear_kernel import CATEGORICAL
from gents_gym.models.moments_kernel import LEAST_SPREAD
from gents_gym.numerics.cubature import normal_cubature

MOST_OUTCOMES = 9  # C; the rule has more than 2^(C-1) nodes


class CategoricalForm(Form):
    """Outcomes have the probabilities softmax(0, a_1, …, a_{C-1}), where a_j = x·β_j and all β are jointly Gaussian.

    With X = I ⊗ x the predictors are a ~ N(s, V), s = Xᵀm, V = XᵀPX = LLᵀ. A quadrature rule with nodes z_i and weights
    w_i approximates N(0, I), so p = Σ_i w_i softmax(0, s + Lz_i) approximates E[softmax(0, a)]. Given an outcome y, the
    nodes have weights proportional to w_i softmax(0, s + Lz_i)_y; with their mean z̄ and covariance C,

        m += PX·L⁻ᵀ·z̄,  P −= PX·L⁻ᵀ(I − C)L⁻¹·XᵀP.

    So moments are matched, and P stays positive. A prediction is log p.
    """

    def __init__(self, n_outcomes: int) -> None:
        """Take the number of categories, C."""
        super().__init__()
        self.n_predictors = n_outcomes - 1
        nodes, weights = (part.astype(np.float32) for part in normal_cubature(self.n_predictors))
        # Arrays, because constants are not part of a model's tensors.
        self.nodes, self.log_weights = nodes, np.log(weights)

    def predict(self, mean: Tensor, covariance: Tensor, x: Tensor) -> Predicted:
        """Return the log-probabilities of all outcomes, (N, C)."""
        return (self._read(mean, covariance, x)[1].logsumexp(1),)

    def absorb(
        self, mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
    ) -> tuple[Tensor, Tensor, Predicted]:
        """Return the moments after an outcome, and the log-probabilities before it."""
        directions, joint = self._read(mean, covariance, x)
        predicted = joint.logsumexp(1)  # (N, C)
        of_outcome = joint.gather(2, outcome.long()[:, None, None].expand(-1, len(self.nodes), 1))[..., 0]
        shares = torch.softmax(of_outcome, 1)  # (N, n)
        nodes = torch.from_numpy(self.nodes)
        centre = shares @ nodes  # z̄, (N, Q)
        squares = (nodes[:, :, None] * nodes[:, None]).reshape(len(nodes), -1)  # (n, Q²)
        among = (shares @ squares).view(len(x), *[self.n_predictors] * 2) - centre[:, :, None] * centre[:, None]
        weight = torch.eye(self.n_predictors) - among  # I - C
        if where is not None:
            centre, weight = centre * where[:, None], weight * where[:, None, None]
        mean = mean + (directions * centre[:, None]).sum(2)
        covariance = torch.baddbmm(covariance, directions @ weight, directions.mT, alpha=-1)
        return mean, covariance, (predicted,)

    def outcome_parameters(self, predicted: Predicted) -> Tensor:
        """Return the probabilities of all outcomes, (N, C)."""
        return torch.softmax(predicted[0], -1)

    def log_prob(self, predicted: Predicted, outcomes: Tensor) -> Tensor:
        """Return the log-probabilities of outcomes."""
        return predicted[0].gather(-1, outcomes.long()[..., None])[..., 0]

    def kernel(self, model: Any) -> Kernel:
        """Return the compiled kernel."""
        return CategoricalKernel(model)

    def _read(self, mean: Tensor, covariance: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return PX·L⁻ᵀ, (N, Q·K, Q), and the joint log-probabilities of nodes and outcomes, (N, n, C)."""
        n, q = len(x), self.n_predictors
        directions = (covariance.view(n, -1, q, x.shape[1]) * x[:, None, None]).sum(3)  # PX
        spread = (directions.view(n, q, -1, q) * x[:, None, :, None]).sum(2)  # V
        lower = _lower_root(spread)
        centre = (mean.view(n, q, -1) * x[:, None]).sum(2)  # s, (N, Q)
        predictors = centre[:, None] + (torch.from_numpy(self.nodes)[:, None] * lower[:, None]).sum(3)  # (N, n, Q)
        chances = log_softmax(torch.cat([torch.zeros_like(predictors[..., :1]), predictors], -1), -1)
        joint = chances + torch.from_numpy(self.log_weights)[:, None]
        return _divide(directions, lower), joint


class CategoricalKernel(LinearKernel):
    """The categorical form in compiled loops."""

    code = CATEGORICAL

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.rule = (model.form.nodes, np.exp(model.form.log_weights))

    def given(self, predictors: np.ndarray) -> np.ndarray:
        """Return the probabilities of all outcomes for known predictors, (..., Q) to (..., C)."""
        return softmax(np.concatenate([np.zeros_like(predictors[..., :1]), predictors], axis=-1), axis=-1)

    def predict(self, state: AnyState, contexts: np.ndarray) -> np.ndarray:
        """Return the probabilities of every action's outcomes, (B, C, D) to (B, C, A, ...)."""
        nodes, weights = self.rule
        chances = self.given(spread_nodes(*self.moments(state, contexts), nodes))  # (B, C, A, n, C)
        return (chances * weights[:, None]).sum(axis=-2)


def _lower_root(covariance: Tensor) -> Tensor:
    """Return lower triangular L with LLᵀ = V, (N, Q, Q); pivots that are too small become ``LEAST_SPREAD``.

    It works entry by entry, because LAPACK is slower for such small matrices and raises if one is not positive.
    """
    rows: list[list[Tensor]] = []
    for j in range(covariance.shape[1]):
        row: list[Tensor] = []
        for i in range(j + 1):
            left = covariance[:, j, i]
            for k in range(i):
                left = left - row[k] * (rows[i] if i < j else row)[k]
            row.append(left / rows[i][i] if i < j else left.clamp(min=LEAST_SPREAD).sqrt())
        rows.append(row)
    zero = torch.zeros_like(covariance[:, 0, 0])
    return torch.stack([torch.stack([*row, *[zero] * (len(rows) - len(row))], 1) for row in rows], 1)


def _divide(directions: Tensor, lower: Tensor) -> Tensor:
    """Return PX·L⁻ᵀ, (N, Q·K, Q), by substitution."""
    found: list[Tensor] = []
    for j in range(lower.shape[1]):
        left = directions[..., j]
        for i in range(j):
            left = left - found[i] * lower[:, j, i, None]
        found.append(left / lower[:, j, j, None])
    return torch.stack(found, 2)
