"""Defines the states of a filter model, and how they forget: beliefs return to the prior as time passes."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

LONG_AGO = -1e6  # the time of a state without history, which equals the prior at any time


class FilterState(NamedTuple):
    """What is known of N actions: coefficients ~ N(mean, covariance), (N, Q·K) and (N, Q·K, Q·K), and scaled Z, (N, F).

    Q is the number of linear predictors of an outcome, each with K coefficients.
    """

    mean: Tensor
    covariance: Tensor
    action_features: Tensor


class DriftingState(NamedTuple):
    """The same for coefficients that drift: as of ``time`` (N,), with the prior, which they return to."""

    mean: Tensor
    covariance: Tensor
    action_features: Tensor
    prior_mean: Tensor
    prior_covariance: Tensor
    time: Tensor


AnyState = FilterState | DriftingState


def forget(state: DriftingState, time: Tensor, rate: Tensor) -> DriftingState:
    """Return the state at a later time (N,); an earlier time changes nothing."""
    time = torch.maximum(state.time, time)
    kept = (-rate * (time - state.time)).exp()
    mean = state.prior_mean + kept[:, None] * (state.mean - state.prior_mean)
    covariance = state.prior_covariance + (kept**2)[:, None, None] * (state.covariance - state.prior_covariance)
    return state._replace(mean=mean, covariance=covariance, time=time)


def fades(begin: np.ndarray, end: np.ndarray, rate: float) -> np.ndarray:
    """Return κ = exp(-rate·d) for times d apart, elementwise; 1 if the end is before the start."""
    return np.exp(-rate * np.maximum(end.astype(np.float64) - begin, 0))


class Drift(NamedTuple):
    """How the states of B·A actions drift along T rows, for compiled loops; without drift, all arrays are empty."""

    kept: np.ndarray  # κ of each row since the previous one, (B, T, A) float32
    mean: np.ndarray  # mean of the prior, (B·A, Q·K)
    covariance: np.ndarray  # of the prior, (B·A, Q·K, Q·K)

    @classmethod
    def none(cls) -> "Drift":
        """Return the value for states that do not drift."""
        empty = np.zeros((0, 0, 0), np.float32)
        return cls(empty, np.zeros((0, 0), np.float32), empty)
