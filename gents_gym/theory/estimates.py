"""Estimates divergences, entropies and information about the best action from drawn tables.

Throughout, ``plays`` are the actions that policies fitted to M completed tables play in the current context.
"""

from typing import NamedTuple

import numpy as np

from gents_gym.checks import InputError


class Estimate(NamedTuple):
    """A mean and its standard error over tasks or actions."""

    mean: float
    error: float


def estimate(values: np.ndarray) -> Estimate:
    """Return the mean of (B,) values and its standard error, which is NaN for one value."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Estimate(float(values.mean()), float(error))


class Divergence(NamedTuple):
    """How far one distribution of actions is from another, by history."""

    kl: np.ndarray  # KL(reference ‖ other), in nats
    variation: np.ndarray  # total variation, ½ Σ_a |P(a) - Q(a)|


def count_actions(plays: np.ndarray, n_actions: int) -> np.ndarray:
    """Return how often each action is played, (..., M) to (..., A)."""
    return (plays[..., None] == np.arange(n_actions)).sum(axis=-2)


def divergence(reference: np.ndarray, other: np.ndarray) -> Divergence:
    """Return the divergence between the distributions that two sets of M draws come from.

    The KL divergence uses shares with half a draw added to each action, so it is finite. The total variation uses plain
    shares. Noise makes both too large, so compare them with two sets of draws from the same distribution.

    Args:
        reference: How often each action was drawn, (..., A).
        other: The same for the other distribution, (..., A).
    """

    def share(counts: np.ndarray, more: float) -> np.ndarray:
        found: np.ndarray = (counts + more) / (counts + more).sum(axis=-1, keepdims=True)
        return found

    p, q = share(reference, 0.5), share(other, 0.5)
    variation = np.abs(share(reference, 0) - share(other, 0)).sum(axis=-1) / 2
    return Divergence((p * np.log(p / q)).sum(axis=-1), variation)


def plug_in_entropy(counts: np.ndarray) -> np.ndarray:
    """Return the entropy of the shares of counts, (..., n) to (...); in expectation it is at most the true entropy."""
    share = counts / counts.sum(axis=-1, keepdims=True)
    return -(share * np.log(np.where(share > 0, share, 1))).sum(axis=-1)


def corrected_entropy(counts: np.ndarray) -> np.ndarray:
    """Return Miller and Madow's estimate of the entropy that counts (..., n) come from, which adds (K-1)/(2M)."""
    return plug_in_entropy(counts) + ((counts > 0).sum(axis=-1) - 1) / (2 * counts.sum(axis=-1))


class Step(NamedTuple):
    """The parts of the information ratio Γ_t, by history."""

    regret: np.ndarray  # E_t[R(Y^(π*)) - R(Y^(A_t))]
    square: np.ndarray  # its square, without the bias from squaring an estimate
    gain: np.ndarray  # I_t(π*(X_t; τ); (Y_t^(A_t), A_t)), in nats


def one_step(plays: np.ndarray, outcomes: np.ndarray) -> Step:
    """Return the regret of the next decision and the information in its outcome, from M draws of the table.

    By Proposition 1, TS-Gen on p* plays as the oracle does, independently of it: P_t(A_t = a) = P_t(π*(X_t; τ) = a).
    The square is the product of the estimates from two halves. The information is the plug-in estimate of Lemma 3's sum
    minus its bias (K-1)/(2M), for K drawn actions; a single estimate may be negative.

    Args:
        plays: π*(X_t; τ_m), (..., M).
        outcomes: Y_t of all actions in the same tables, 0 or 1, (..., M, A).
    """
    if plays.shape[-1] < 4:
        raise InputError(f"draws must be at least 4 to estimate the information, got {plays.shape[-1]}")
    half = plays.shape[-1] // 2
    parts = [_regret(plays[..., s], outcomes[..., s, :]) for s in (slice(half), slice(half, 2 * half))]
    return Step(_regret(plays, outcomes), parts[0] * parts[1], _gain(plays, outcomes))


def _regret(plays: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Return E_t[Y^(π*)] - Σ_a P_t(π* = a) E_t[Y^(a)], by pairs of different draws, which makes it unbiased."""
    n_draws = plays.shape[-1]
    best = np.take_along_axis(outcomes, plays[..., None], axis=-1)[..., 0].mean(axis=-1)
    share = count_actions(plays, outcomes.shape[-1]) / n_draws
    product = (share * outcomes.mean(axis=-2)).sum(axis=-1)  # a draw paired with itself gives ``best``
    found: np.ndarray = (best - product) * n_draws / (n_draws - 1)
    return found


def _gain(plays: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    counts = count_actions(plays, outcomes.shape[-1])  # (..., A)
    n_draws = plays.shape[-1]
    chosen = (plays[..., None] == np.arange(outcomes.shape[-1])).astype(np.float64)  # (..., M, A)
    ones = chosen.swapaxes(-1, -2) @ outcomes  # (..., π*, A): how often Y = 1
    table = np.stack([ones, counts[..., None] - ones], axis=-1)  # (..., π*, A, 2)
    joint = plug_in_entropy(np.moveaxis(table, -2, -3).reshape(*counts.shape, -1))  # of (π*, Y^(a)), (..., A)
    own = plug_in_entropy(counts)[..., None]
    outcome = plug_in_entropy(table.sum(axis=-3))  # of Y^(a), (..., A)
    information = own + outcome - joint  # I(π*; Y^(a)), (..., A)
    bias = ((counts > 0).sum(axis=-1) - 1) / (2 * n_draws)
    found: np.ndarray = (counts / n_draws * information).sum(axis=-1) - bias
    return found


def pooled_ratio(step: Step) -> Estimate | None:
    """Return E[Δ_t²] / E[I_t] over B histories, and its standard error; None if the information is not clear.

    It is the mean of the information ratios Γ_t with weights I_t. The ratio of single estimates has no mean.

    Args:
        step: The parts for B histories, (B,) each.
    """
    n, gain = len(step.gain), step.gain.mean()
    if n < 2 or gain <= 2 * step.gain.std(ddof=1) / np.sqrt(n):
        return None
    ratio = step.square.mean() / gain
    error = (step.square - ratio * step.gain).std(ddof=1) / (np.sqrt(n) * gain)
    return Estimate(float(ratio), float(error))
