"""The ``filter`` model: a prior read off the action's features, then a recursive logistic filter over its history."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from gents_gym.checks import check_integer
from gents_gym.models.belief import Kernel, RowByRow
from gents_gym.models.context_kernel import ContextRows, context_network, map_contexts
from gents_gym.models.filter_kernel import absorb_filter, impute_filter
from gents_gym.models.sequence import SequenceModel
from gents_gym.types import TaskInfo

NODES = 16  # of the rule behind the variance of a mean reward
FAR = 4.0  # standard deviations of Z beyond which the prior's spread stays as it is


@dataclass(frozen=True)
class FilterConfig:
    """Sizes of a filter model."""

    action_dim: int  # F
    context_dim: int  # D
    context_features: int = 0  # size of the learned φ̂(X); 0: the context itself
    context_width: int = 100  # hidden width of φ̂, two hidden layers
    prior_width: int = 0  # hidden width of a network that bends the prior's maps; 0: maps of (Z, Z²) alone
    head_width: int = 0  # hidden width of a residual head on the logit; 0: none

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, least in (("action_dim", 1), ("context_dim", 1), ("context_width", 1)):
            check_integer(name, getattr(self, name), least)
        for name in ("context_features", "prior_width", "head_width"):
            check_integer(name, getattr(self, name), 0)


class FilterState(NamedTuple):
    """What is known of N actions: coefficients ~ N(mean, covariance), (N, K) and (N, K, K), and scaled Z, (N, F)."""

    mean: Tensor
    covariance: Tensor
    action_features: Tensor


class FilterModel(SequenceModel):
    """Bayesian logistic regression on x = (1, φ̂(X)), its prior a function of Z, its posterior kept Gaussian.

    The coefficients start at N(μ(Z), Σ(Z)), with μ linear in (1, Z) and Σ = LLᵀ, the logarithm of L's diagonal
    linear in (1, Z, Z²), Z cut at ±4 of its standard deviations there. Each outcome is absorbed by matching moments
    under the approximation E[σ(a)] ≈ σ(κs) for a ~ N(s, v), κ = (1 + πv/8)^-½:

        p = σ(κ·x·m),  m += Px·κ(y − p),  P −= κ²p(1 − p)·(Px)(Px)ᵀ.

    That is the gradient and the curvature of log p in x·m, so p is a density along the whole sequence and is trained
    as such. By their sizes, which are 0 by default, φ̂ is learned, a network bends the prior, and a residual head
    sees (logit, v, Z, X). All of it works on standardised contexts and features.
    """

    kind = "filter"
    config_class = FilterConfig

    def __init__(self, config: FilterConfig) -> None:
        """Make a model with a standard normal prior."""
        super().__init__(config)
        self.context_map = context_network(config)  # φ̂; empty, which is the identity, where it is not learned
        size = 1 + (config.context_features or config.context_dim)  # K
        self.size = size
        self.prior_mean = nn.Parameter(torch.zeros(size, 1 + config.action_dim))  # of (1, Z)
        self.prior_scale = nn.Parameter(torch.zeros(size, 1 + 2 * config.action_dim))  # log diagonal, of (1, Z, Z²)
        self.prior_lower = nn.Parameter(torch.zeros(size, size))  # L = diag(exp(scale)) (I + strictly lower part)
        self.prior_bend = _zero_ended(config.action_dim, config.prior_width, 2 * size) if config.prior_width else None
        head_inputs = 2 + config.action_dim + config.context_dim
        self.head = _zero_ended(head_inputs, config.head_width, 1) if config.head_width else None

    def start(self, action_features: Tensor) -> FilterState:
        """Return the prior of N actions, (N, F)."""
        z = self.scale_features(action_features)
        one, near = torch.ones_like(z[:, :1]), z.clamp(-FAR, FAR)
        mean = torch.cat([one, z], 1) @ self.prior_mean.T  # (N, K)
        scale = torch.cat([one, near, near**2], 1) @ self.prior_scale.T  # (N, K)
        if self.prior_bend is not None:
            bend_mean, bend_scale = self.prior_bend(near).chunk(2, 1)
            mean, scale = mean + bend_mean, scale + bend_scale
        lower = torch.tril(self.prior_lower, -1) + torch.eye(self.size)
        root = scale.exp()[:, :, None] * lower  # (N, K, K)
        return FilterState(mean, root @ root.mT, z)

    def predict(self, state: FilterState, context: Tensor) -> Tensor:
        """Return P(Y=1) in the contexts, (N, D) to (N,)."""
        x = self.rows(context)
        spread = ((state.covariance * x[:, None]).sum(2) * x).sum(1)  # xᵀPx, (N,)
        base = (state.mean * x).sum(1) * _shrink(spread)
        return torch.sigmoid(base + self._residual(base, spread, state.action_features, context))

    def append(self, state: FilterState, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> FilterState:
        """Return the state with outcomes absorbed, in the rows that ``where`` picks."""
        mean, covariance, _, _ = _absorb(state.mean, state.covariance, self.rows(context), outcome, where)
        return state._replace(mean=mean, covariance=covariance)

    def features(self, action_features: Tensor, context: Tensor) -> Tensor:
        """Return (x, x·μ(Z)): the features that the model is linear in, and the prior's prediction, (N, K+1)."""
        x = self.rows(context)
        return torch.cat([x, (x * self.start(action_features).mean).sum(1, keepdim=True)], 1)

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences, (N, T) or at the entries ``at``; one scan over time."""
        mean, covariance, z = self.start(action_features)
        rows = self.rows(contexts)  # (N, T, K)
        bases, spreads = [], []
        for t in range(contexts.shape[1]):
            mean, covariance, base, spread = _absorb(mean, covariance, rows[:, t], outcomes[:, t], None)
            bases.append(base)
            spreads.append(spread)
        base, spread = torch.stack(bases, 1), torch.stack(spreads, 1)  # (N, T)
        if at is not None:
            base, spread, contexts, outcomes = base[:, at], spread[:, at], contexts[:, at], outcomes[:, at]
        each = z[:, None].expand(-1, contexts.shape[1], -1)
        logits = base + self._residual(base, spread, each, contexts)
        return -binary_cross_entropy_with_logits(logits, outcomes, reduction="none")

    def rows(self, contexts: Tensor) -> Tensor:
        """Return x = (1, φ̂(X)), (..., D) to (..., K)."""
        mapped = self.context_map(self.scale_contexts(contexts))
        return torch.cat([torch.ones_like(mapped[..., :1]), mapped], -1)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X), (..., D) to (..., K-1); None where it is not learned."""
        return map_contexts(self, contexts)[..., 1:] if self.config.context_features else None

    def kernel(self) -> Kernel:
        """Return the compiled kernel; a residual head and a subclass's own methods are not in it, and go row by row."""
        return FilterKernel(self) if type(self) is FilterModel and self.head is None else RowByRow(self)

    def _residual(self, base: Tensor, spread: Tensor, action_features: Tensor, context: Tensor) -> Tensor | float:
        if self.head is None:
            return 0.0
        seen = torch.cat([base[..., None], spread.sqrt()[..., None], action_features, self.scale_contexts(context)], -1)
        return self.head(seen)[..., 0]


class FilterKernel(RowByRow):
    """The filter's states in compiled loops."""

    def __init__(self, model: FilterModel) -> None:
        super().__init__(model)
        self._filter, self._rows = model, ContextRows(model)

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return x = (1, φ̂(X)), (..., D) to (..., K)."""
        return self._rows(contexts)

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X); None where it is not learned."""
        return rows[..., 1:] if self._filter.config.context_features else None

    def variance(self, state: FilterState, contexts: np.ndarray, info: TaskInfo) -> np.ndarray:
        """Return the variance of E[R(Y)] under the coefficients' Gaussian, (B, C, D) to (B, C, A)."""
        mean, spread = self._moments(state, contexts)  # (B, C, A) each, of the logit
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        weights = weights / weights.sum()
        chances = expit(mean[..., None] + np.sqrt(spread)[..., None] * nodes)
        rewards = self._likelihood.expected_reward(info.reward_fn, chances)
        return (rewards**2) @ weights - (rewards @ weights) ** 2

    def _moments(self, state: FilterState, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x·β for every action, (B, C, D) to (B, C, A) each."""
        x = self.rows(contexts)  # (B, C, K)
        size = x.shape[2]
        mean = state.mean.numpy().reshape(len(x), -1, size)  # (B, A, K)
        covariance = state.covariance.numpy().reshape(len(x), -1, size, size)
        return x @ mean.swapaxes(1, 2), np.einsum("bck,bakj,bcj->bca", x, covariance, x, optimize=True)

    def absorb(
        self,
        state: FilterState,
        task: np.ndarray,
        action: np.ndarray,
        rows: np.ndarray,
        outcome: np.ndarray,
        shape: tuple[int, int],
    ) -> FilterState:
        """Absorb the outcomes in place, in the played actions' states alone."""
        mean, covariance = state.mean.numpy(), state.covariance.numpy()
        absorb_filter(rows, task * shape[1] + action, outcome.copy(), mean, covariance)
        return state

    def generate(
        self, state: FilterState, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A) by the compiled loop."""
        return impute_filter(rows, played, seen, state.mean.numpy(), state.covariance.numpy(), noise)


def _shrink(spread: Tensor) -> Tensor:
    """Return κ = (1 + πv/8)^-½."""
    return torch.rsqrt(1 + (torch.pi / 8) * spread)


def _absorb(
    mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the moments after an outcome, and the logit and the variance xᵀPx before it."""
    direction = (covariance * x[:, None]).sum(2)  # Px, (N, K); such small matrices multiply slower by bmm
    spread = (direction * x).sum(1)  # (N,)
    shrink = _shrink(spread)
    logit = (mean * x).sum(1) * shrink
    chance = torch.sigmoid(logit)
    gain = shrink * (outcome - chance)
    weight = shrink * shrink * chance * (1 - chance)
    if where is not None:
        gain, weight = gain * where, weight * where
    mean = mean + direction * gain[:, None]
    covariance = covariance - (direction * weight[:, None])[:, :, None] * direction[:, None]
    return mean, covariance, logit, spread


def _zero_ended(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Return a network of two hidden layers that begins as the zero function."""
    last = nn.Linear(width, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)
