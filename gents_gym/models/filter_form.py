"""Holds what the filter's three forms share: a Gaussian belief about coefficients, and the kernel of its states."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import ndtri
from torch import Tensor, nn

from gents_gym.checks import check_array
from gents_gym.models.belief import Kernel, RowByRow
from gents_gym.models.context_kernel import ContextRows
from gents_gym.models.filter_state import AnyState, Drift, DriftingState, fades
from gents_gym.models.linear_kernel import run_linear
from gents_gym.models.lookahead import N_NODES
from gents_gym.models.lookahead_kernel import look_ahead_filter
from gents_gym.models.moments_kernel import lower_roots, predictor_moments
from gents_gym.numerics.cubature import hermite_rule
from gents_gym.types import Outlook, TaskInfo

Predicted = tuple[Tensor, ...]  # a form's prediction, as its own ``outcome_parameters`` and ``log_prob`` read it
NODES = {1: 16, 2: 8}  # nodes of the rules for the variance of a mean reward, by the number of predictors
POINTS = 256  # nodes of the rule for more predictors


class Form(nn.Module, ABC):
    """How outcomes of one likelihood are predicted from Gaussian coefficients, and how they update these."""

    n_predictors: int = 1  # Q

    @abstractmethod
    def predict(self, mean: Tensor, covariance: Tensor, x: Tensor) -> Predicted:
        """Return the prediction in the rows x, (N, K)."""

    @abstractmethod
    def absorb(
        self, mean: Tensor, covariance: Tensor, x: Tensor, outcome: Tensor, where: Tensor | None
    ) -> tuple[Tensor, Tensor, Predicted]:
        """Return the moments after outcomes (N,), where ``where`` picks them, and the prediction before."""

    @abstractmethod
    def outcome_parameters(self, predicted: Predicted) -> Tensor:
        """Return the likelihood's parameters, (N, ...)."""

    @abstractmethod
    def log_prob(self, predicted: Predicted, outcomes: Tensor) -> Tensor:
        """Return the log-probabilities of outcomes, elementwise."""

    @abstractmethod
    def kernel(self, model: Any) -> Kernel:
        """Return the compiled kernel of a model of this form."""


class FilterKernel(RowByRow, ABC):
    """A filter's states as arrays."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, model.likelihood)
        self._form, self._rows = model.form, ContextRows(model)
        self._has_features = model.config.context_features > 0
        self._rate = 0.0 if model.log_forgetting is None else model.log_forgetting.exp().item()

    @abstractmethod
    def given(self, predictors: np.ndarray) -> np.ndarray:
        """Return the likelihood's parameters for known predictors, (..., Q) to (..., ...)."""

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return x = (1, φ̂(X)), (..., D) to (..., K)."""
        return self._rows(contexts)

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X); None if it is not learned."""
        return rows[..., 1:] if self._has_features else None

    def moments(self, state: AnyState, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of the linear predictors, (B, C, D) to (B, C, A, Q) and (B, C, A, Q, Q)."""
        rows = self.rows(contexts)
        if isinstance(state, DriftingState):
            mean, spread = self._faded_moments(state, rows)
        else:
            mean, spread = predictor_moments(rows, state.mean.numpy(), state.covariance.numpy())
        # The sum checks both at once: both must be finite.
        check_array("what the model predicts", mean + spread.sum(axis=-1), "(B, C, A, Q)", mean.shape, float, 1)
        return mean, spread

    def _faded_moments(self, state: DriftingState, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the moments at the times of the rows, (B, C, K+1)."""
        x, time = np.ascontiguousarray(rows[..., :-1]), rows[..., -1]
        kept = fades(state.time.numpy().reshape(len(rows), 1, -1), time[..., None], self._rate)  # (B, C, A)
        mean, spread = predictor_moments(x, state.mean.numpy(), state.covariance.numpy())
        first, wide = predictor_moments(x, state.prior_mean.numpy(), state.prior_covariance.numpy())
        return first + kept[..., None] * (mean - first), wide + kept[..., None, None] ** 2 * (spread - wide)

    def meet(self, state: AnyState, where: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Advance the states ``where`` (n,) to the time of their rows, in place, and return x, (n, K)."""
        if not isinstance(state, DriftingState):
            return rows
        old = state.time.numpy()[where]
        kept = fades(old, rows[:, -1], self._rate)
        for value, prior, power in ((state.mean, state.prior_mean, 1), (state.covariance, state.prior_covariance, 2)):
            own, first = value.numpy(), prior.numpy()[where]
            share = (kept**power).reshape(-1, *[1] * (first.ndim - 1)).astype(np.float32)
            own[where] = first + share * (own[where] - first)
        state.time.numpy()[where] = np.maximum(old, rows[:, -1])
        return np.ascontiguousarray(rows[:, :-1])

    def drift(self, state: AnyState, rows: np.ndarray) -> tuple[np.ndarray, Drift]:
        """Return x, (B, T, K), and how states drift along the rows, for the compiled loops."""
        if not isinstance(state, DriftingState):
            return rows, Drift.none()
        begin = state.time.numpy().reshape(len(rows), 1, -1)  # (B, 1, A)
        times = np.maximum(begin, np.maximum.accumulate(rows[..., -1], axis=1)[..., None])  # (B, T, A)
        kept = fades(np.concatenate([begin, times[:, :-1]], axis=1), times, self._rate).astype(np.float32)
        return np.ascontiguousarray(rows[..., :-1]), Drift(
            kept, state.prior_mean.numpy(), state.prior_covariance.numpy()
        )

    def variance(self, state: AnyState, contexts: np.ndarray, info: TaskInfo) -> np.ndarray:
        """Return the variance of E[R(Y)] under the Gaussian of the coefficients, (B, C, D) to (B, C, A)."""
        nodes, weights = normal_rule(self._form.n_predictors)  # (n, Q), (n,)
        found = []
        for mean, spread in zip(*(part.swapaxes(0, 1) for part in self.moments(state, contexts)), strict=True):
            predictors = spread_nodes(mean, spread, nodes)  # (B, A, n, Q)
            rewards = self._likelihood.expected_reward(info.reward_fn, self.given(predictors))  # (B, A, n)
            found.append((rewards**2) @ weights - (rewards @ weights) ** 2)
        return np.stack(found, axis=1)

    def run_ahead(
        self,
        binary: bool,
        scale: tuple[float, float],
        noise: float,
        state: AnyState,
        row: np.ndarray,
        rows: np.ndarray,
        counts: np.ndarray,
    ) -> Outlook:
        """Return the value of further observations, by :func:`look_ahead_filter`."""
        # Another memory layout would cause a recompilation, which takes seconds.
        row, rows = np.ascontiguousarray(row), np.ascontiguousarray(rows)
        moments = (state.mean.numpy(), state.covariance.numpy())
        counts, nodes, weights = (np.asarray(part, np.float32) for part in (counts, *hermite_rule(N_NODES)))
        gains, shares = look_ahead_filter(binary, scale, noise, row, rows, *moments, counts, nodes, weights)
        return Outlook(gains, shares)


class LinearKernel(FilterKernel):
    """A filter whose outcomes are absorbed by the compiled linear kernel; ``code`` selects how."""

    code: int
    noise, shift, unit = 0.0, 0.0, 1.0  # variance of Gaussian outcomes; an outcome is shift + unit · what it is called
    rule = (np.zeros((1, 1), np.float32), np.ones(1, np.float32))  # nodes (n, Q) and weights (n,) for categories

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
        where = task * shape[1] + action
        rows = self.meet(state, where, rows)
        given = ((outcome - self.shift) / self.unit).astype(np.float32)[:, None, None]  # (n, 1, 1)
        nobody, nothing = np.full((len(task), 1), -1), np.zeros((len(task), 1), np.float32)
        self._run(False, rows[:, None], nobody, nothing, where, state, given, Drift.none())
        return state

    def generate(
        self, state: AnyState, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A), by the compiled loop."""
        rows, drift = self.drift(state, rows)
        return self._run(True, rows, played, seen, np.arange(len(state.mean)), state, noise, drift)

    def _run(
        self,
        draws: bool,
        rows: np.ndarray,
        played: np.ndarray,
        seen: np.ndarray,
        where: np.ndarray,
        state: AnyState,
        numbers: np.ndarray,
        drift: Drift,
    ) -> np.ndarray:
        options = (self.code, self.noise, self.shift, self.unit, *self.rule, draws)
        # Another memory layout would cause a recompilation, which takes seconds.
        rows, played, seen, numbers = (np.ascontiguousarray(part) for part in (rows, played, seen, numbers))
        moments = (state.mean.numpy(), state.covariance.numpy())
        return run_linear(*options, rows, played, seen, where, *moments, numbers, *drift)


def normal_rule(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (n, Q) and weights (n,) for expectations under N(0, I_Q): Gauss products, or quasi-random."""
    if size not in NODES:
        from scipy.stats import qmc  # its import takes as long as everything else

        uniform = qmc.Sobol(size, seed=0).random(POINTS)
        return ndtri(uniform), np.full(POINTS, 1 / POINTS)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES[size])
    grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), axis=-1).reshape(-1, size)
    shares = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * size), axis=-1), axis=-1)
    return grid, shares.reshape(-1)


def spread_nodes(mean: np.ndarray, covariance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Map nodes (n, Q) of N(0, I) to those of N(mean, covariance), (..., Q) and (..., Q, Q) to (..., n, Q)."""
    lower = lower_roots(covariance.reshape(-1, *covariance.shape[-2:])).reshape(covariance.shape)
    return mean[..., None, :] + nodes @ lower.swapaxes(-1, -2)
