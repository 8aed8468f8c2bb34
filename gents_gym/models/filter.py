"""The ``filter`` model: a prior predicted from the action's features, then recursive regression over its history."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gents_gym.checks import InputError, check_integer, check_memory
from gents_gym.likelihoods import BERNOULLI, Categorical, Likelihood, make_likelihood
from gents_gym.models.belief import Kernel, RowByRow
from gents_gym.models.context_kernel import context_network, context_weights, map_contexts
from gents_gym.models.filter_bernoulli import BernoulliForm
from gents_gym.models.filter_categorical import MOST_OUTCOMES, CategoricalForm
from gents_gym.models.filter_form import Form, Predicted
from gents_gym.models.filter_gaussian import GaussianForm
from gents_gym.models.filter_state import LONG_AGO, AnyState, DriftingState, FilterState, forget
from gents_gym.models.sequence import SequenceModel, check_sequences

FORGETTING = 0.3  # initial λ, per standard deviation of the time
FAR = 4.0  # standard deviations of Z beyond which the prior's spread stays constant


@dataclass(frozen=True)
class FilterConfig:
    """Sizes of a filter model, and what its outcomes are."""

    action_dim: int  # F
    context_dim: int  # D
    context_features: int = 0  # size of the learned φ̂(X); 0: the context itself
    context_width: int = 100  # hidden width of φ̂, two hidden layers
    prior_width: int = 0  # hidden width of a network added to the prior's maps; 0: only maps of (Z, Z²)
    head_width: int = 0  # hidden width of a residual head on the logit; 0: none
    forgetting: int = 0  # 1: coefficients drift with time, the last entry of contexts; 0: they stay
    likelihood: str = "bernoulli"  # or "gaussian", or "categorical(C)"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, least in (("action_dim", 1), ("context_dim", 1), ("context_width", 1)):
            check_integer(name, getattr(self, name), least)
        for name in ("context_features", "prior_width", "head_width"):
            check_integer(name, getattr(self, name), 0)
        if check_integer("forgetting", self.forgetting, 0) > 1:
            raise InputError(f"forgetting must be 0 or 1, got {self.forgetting}")
        if self.forgetting and self.context_features:
            raise InputError(f"context_features must be 0 with forgetting, got {self.context_features}")
        likelihood = make_likelihood(self.likelihood)
        if likelihood != BERNOULLI and self.head_width:
            raise InputError(f"head_width must be 0 for {self.likelihood} outcomes, got {self.head_width}")
        if isinstance(likelihood, Categorical) and likelihood.n_outcomes > MOST_OUTCOMES:
            raise InputError(f"a filter's outcomes must be at most {MOST_OUTCOMES} categories, got {self.likelihood}")
        size = self.context_features or self.context_dim
        weights = size * (size + self.action_dim) + self.prior_width**2 + self.head_width**2 + context_weights(self)
        names = ("prior_width", "head_width", "context_dim", "context_features", "context_width")
        check_memory(4 * weights, **{name: getattr(self, name) for name in names})


class FilterModel(SequenceModel):
    """Bayesian regression on x = (1, φ̂(X)), with a prior that depends on Z and a posterior that is kept Gaussian.

    The coefficients start at N(μ(Z), Σ(Z)), with μ linear in (1, Z) and Σ = LLᵀ, the logarithm of L's diagonal
    linear in (1, Z, Z²), with Z clipped there at ±4 standard deviations. How an outcome is predicted and absorbed
    depends on the likelihood: logistic, linear or multinomial logistic regression. The linear one is exact; the other
    two match moments approximately. Three parts are optional, with a size of 0 by default: a learned φ̂, a network that
    corrects the prior, and a residual head that sees (logit, its spread, Z, X). Everything works on standardised
    contexts and features.

    With ``forgetting``, the last entry of a context is the time, which is not a feature. Between rows that are d apart
    in time, the belief about the coefficients returns to the prior by κ = exp(-λd):

        m → μ + κ(m − μ),  P → Σ + κ²(P − Σ),

    as if they walked randomly with the prior as their distribution at all times. λ is learned with the rest.
    """

    kind = "filter"
    config_class = FilterConfig

    def __init__(self, config: FilterConfig) -> None:
        """Make a model with a standard normal prior."""
        super().__init__(config)
        self.form = _make_form(make_likelihood(config.likelihood))
        self.context_map = context_network(config)  # φ̂; if it is not learned, it is empty, which is the identity
        self.size = 1 + (config.context_features or config.context_dim - config.forgetting)  # K
        size = self.form.n_predictors * self.size  # Q·K
        self.prior_mean = nn.Parameter(torch.zeros(size, 1 + config.action_dim))  # map of (1, Z)
        self.prior_scale = nn.Parameter(torch.zeros(size, 1 + 2 * config.action_dim))  # log diagonal, map of (1, Z, Z²)
        self.prior_lower = nn.Parameter(torch.zeros(size, size))  # L = diag(exp(scale)) (I + strictly lower part)
        self.prior_bend = _zero_ended(config.action_dim, config.prior_width, 2 * size) if config.prior_width else None
        self.log_forgetting = nn.Parameter(torch.tensor(FORGETTING).log()) if config.forgetting else None
        self.ordered = config.forgetting > 0
        head_inputs = 2 + config.action_dim + config.context_dim
        self.head = _zero_ended(head_inputs, config.head_width, 1) if config.head_width else None

    def start(self, action_features: Tensor) -> AnyState:
        """Return the prior of N actions, (N, F)."""
        mean, root, z = self.prior(action_features)
        covariance = root @ root.mT
        if self.log_forgetting is None:
            return FilterState(mean, covariance, z)
        return DriftingState(mean, covariance, z, mean, covariance, torch.full_like(mean[:, 0], LONG_AGO))

    def prior(self, action_features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return μ, (N, Q·K), the root L of Σ, (N, Q·K, Q·K), and scaled Z, (N, F), of N actions, (N, F)."""
        z = self.scale_features(action_features)
        one, near = torch.ones_like(z[:, :1]), z.clamp(-FAR, FAR)
        mean = torch.cat([one, z], 1) @ self.prior_mean.T  # (N, Q·K)
        scale = torch.cat([one, near, near**2], 1) @ self.prior_scale.T  # (N, Q·K)
        if self.prior_bend is not None:
            bend_mean, bend_scale = self.prior_bend(near).chunk(2, 1)
            mean, scale = mean + bend_mean, scale + bend_scale
        lower = torch.tril(self.prior_lower, -1) + torch.eye(len(self.prior_lower))
        return mean, scale.exp()[:, :, None] * lower, z

    def predict(self, state: AnyState, context: Tensor) -> Tensor:
        """Return the likelihood's parameters in the contexts, (N, D) to (N, ...)."""
        state, x = self._advance(state, self.rows(context))
        predicted = self.form.predict(state.mean, state.covariance, x)
        return self.form.outcome_parameters(self._correct(predicted, state.action_features, context))

    def append(self, state: AnyState, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> AnyState:
        """Return the state with outcomes absorbed, in the rows that ``where`` picks."""
        moved, x = self._advance(state, self.rows(context), where)
        mean, covariance, _ = self.form.absorb(moved.mean, moved.covariance, x, outcome, where)
        return moved._replace(mean=mean, covariance=covariance)

    def _advance(self, state: Any, rows: Tensor, where: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the state at the time of the rows (N, K) or (N, K+1), if ``where`` picks them, and x, (N, K)."""
        if self.log_forgetting is None:
            return state, rows
        time = rows[:, -1] if where is None else torch.where(where, rows[:, -1], state.time)
        return forget(state, time, self.log_forgetting.exp()), rows[:, :-1]

    def features(self, action_features: Tensor, context: Tensor) -> Tensor:
        """Return (x, x·μ(Z)): the features that the model is linear in, and the prior's predictors, (N, K+Q)."""
        x = self.rows(context)[:, : self.size]
        prior = self.start(action_features).mean.view(len(x), -1, self.size)  # (N, Q, K)
        return torch.cat([x, (x[:, None] * prior).sum(2)], 1)

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences, (N, T) or at the entries ``at``; one scan over time."""
        check_sequences(action_features, contexts, outcomes)
        state = self.start(action_features)
        z = state.action_features
        rows = self.rows(contexts)  # (N, T, K), or with the time appended, (N, T, K+1)
        steps = []
        for t in range(contexts.shape[1]):
            state, x = self._advance(state, rows[:, t])
            mean, covariance, predicted = self.form.absorb(state.mean, state.covariance, x, outcomes[:, t], None)
            state = state._replace(mean=mean, covariance=covariance)
            steps.append(predicted)
        whole = tuple(torch.stack(parts, 1) for parts in zip(*steps, strict=True))  # (N, T, ...) each
        if at is not None:
            whole, contexts, outcomes = tuple(part[:, at] for part in whole), contexts[:, at], outcomes[:, at]
        each = z[:, None].expand(-1, contexts.shape[1], -1)
        return self.form.log_prob(self._correct(whole, each, contexts), outcomes)

    def rows(self, contexts: Tensor) -> Tensor:
        """Return x = (1, φ̂(X)), (..., D) to (..., K); with forgetting the time is appended."""
        mapped = self.context_map(self.scale_contexts(contexts))
        return torch.cat([torch.ones_like(mapped[..., :1]), mapped], -1)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X), (..., D) to (..., K-1); None if it is not learned."""
        return map_contexts(self, contexts)[..., 1:] if self.config.context_features else None

    def kernel(self) -> Kernel:
        """Return the compiled kernel; models with a residual head or a subclass's own methods go row by row instead."""
        is_plain = type(self) is FilterModel and self.head is None
        return self.form.kernel(self) if is_plain else RowByRow(self, self.likelihood)

    def _correct(self, predicted: Predicted, action_features: Tensor, context: Tensor) -> Predicted:
        """Return the prediction with the head's correction of the logit, if there is a head."""
        if self.head is None:
            return predicted
        logit, spread = predicted
        near = (action_features, self.scale_contexts(context))
        return logit + self.head(torch.cat([logit[..., None], spread.sqrt()[..., None], *near], -1))[..., 0], spread


def _make_form(likelihood: Likelihood) -> Form:
    """Return the form of the filter for a likelihood."""
    if isinstance(likelihood, Categorical):
        return CategoricalForm(likelihood.n_outcomes)
    return BernoulliForm() if likelihood == BERNOULLI else GaussianForm()


def _zero_ended(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Return a network with two hidden layers that starts as the zero function."""
    last = nn.Linear(width, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)
