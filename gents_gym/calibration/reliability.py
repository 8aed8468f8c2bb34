"""Measures reliability: how often outcomes happen that are predicted with a given probability."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from gents_gym.likelihoods import Bernoulli, Gaussian, Likelihood

BINS = 10
NORMAL = 1.959963984540054  # the 97.5 % quantile
FOLDED = np.sqrt(2 / np.pi)  # E|X| of a standard normal


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted and observed shares, in bins.

    Bins are intervals of predicted probabilities: of outcome 1 for binary outcomes, of each category for categorical
    ones. For Gaussian outcomes they are levels: ``observed`` is the share of outcomes below the predicted quantile of
    that level.
    """

    predicted: np.ndarray  # (bins,)
    observed: np.ndarray  # (bins,)
    low: np.ndarray  # of the 95 % interval of the share, (bins,)
    high: np.ndarray  # (bins,)
    counts: np.ndarray  # predictions in a bin, (bins,)
    error: float  # the mean distance between predicted and observed share, weighted by count
    chance: float  # the average error of a calibrated model, from the noise of as many outcomes


def measure_reliability(likelihood: Likelihood, parameters: np.ndarray, outcomes: np.ndarray) -> Reliability:
    """Return the reliability of predictions.

    Args:
        likelihood: What an outcome is.
        parameters: Parameters of the predicted distributions, (n, ...).
        outcomes: (n,).
    """
    if isinstance(likelihood, Gaussian):
        return bin_levels(ndtr((outcomes - parameters[:, 0]) / np.sqrt(parameters[:, 1])))
    if isinstance(likelihood, Bernoulli):
        return bin_events(parameters, outcomes == 1)
    return bin_events(parameters.ravel(), (outcomes[:, None] == likelihood.support).ravel())


def bin_events(probabilities: np.ndarray, happened: np.ndarray, bins: int = BINS) -> Reliability:
    """Return the reliability of probabilities (n,) of events that happened or not, (n,), in bins of equal width."""
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    counts, expected, seen, noise = (
        np.bincount(place, weights, bins)
        for weights in (None, probabilities, happened, probabilities * (1 - probabilities))
    )
    error, chance = np.abs(expected - seen).sum(), FOLDED * np.sqrt(noise).sum()
    filled = counts > 0
    counts, expected, seen = counts[filled], expected[filled], seen[filled]
    interval = wilson(seen, counts)
    return Reliability(
        expected / counts, seen / counts, *interval, counts, error / len(probabilities), chance / len(probabilities)
    )


def bin_levels(positions: np.ndarray, bins: int = BINS) -> Reliability:
    """Return the reliability of quantiles, from the predicted probabilities (n,) of values below the outcomes."""
    levels = np.arange(1, bins) / bins
    counts = np.full(len(levels), len(positions))
    seen = (positions <= levels[:, None]).sum(axis=1)
    error = np.abs(seen / counts - levels).mean()
    chance = FOLDED * np.sqrt(levels * (1 - levels) / counts).mean()
    return Reliability(levels, seen / counts, *wilson(seen, counts), counts, float(error), float(chance))


def wilson(hits: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 % interval for a share, elementwise."""
    square = NORMAL**2
    centre = (hits + square / 2) / (counts + square)
    half = NORMAL / (counts + square) * np.sqrt(hits * (counts - hits) / counts + square / 4)
    return centre - half, centre + half
