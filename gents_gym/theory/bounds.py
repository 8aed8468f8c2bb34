"""Computes the paper's regret bounds: Proposition 2, Theorems 1 and 2, and the bound for linear policies.

All bounds are on the regret per period, for rewards in [0, 1]; a bound of 1 or more is vacuous. Entropies and losses
are in nats. A policy class of one linear predictor per action, with K coefficients each, has Natarajan dimension of at
most d = A·K.
"""

import math

import numpy as np
from scipy.special import gammaln, logsumexp

from gents_gym.checks import check_integer, check_number


def entropy_bound(horizon: int, n_actions: int, dimension: int) -> float:
    """Return Proposition 2's bound on H(π*(X_1:T)) in its finite form, log Σ_{i≤d} C(T, i) (A-1)^i.

    It counts the labelings of T given points, so it bounds the entropy given the contexts.

    Args:
        horizon: T.
        n_actions: A.
        dimension: d, the policy class's Natarajan dimension; for A = 2, its VC dimension.
    """
    check_integer("horizon", horizon, 1)
    check_integer("n_actions", n_actions, 2)
    i = np.arange(min(check_integer("dimension", dimension, 0), horizon) + 1)  # C(T, i) is 0 beyond T
    choose = gammaln(horizon + 1) - gammaln(i + 1) - gammaln(horizon - i + 1)
    return float(logsumexp(choose + i * math.log(n_actions - 1)))


def perfect_bound(horizon: int, n_actions: int, entropy: float, information_ratio: float | None = None) -> float:
    """Return Theorem 1's bound for TS-Gen with p* itself, √(Γ̄/T · H).

    Args:
        horizon: T.
        n_actions: A.
        entropy: H(π*(X_1:T) | Z), or a bound on it.
        information_ratio: Γ̄, a bound on the information ratio; None: A/2, which always holds.
    """
    check_integer("horizon", horizon, 1)
    check_integer("n_actions", n_actions, 2)
    check_number("entropy", entropy, 0)
    ratio = n_actions / 2 if information_ratio is None else check_number("information_ratio", information_ratio, 0)
    return math.sqrt(ratio * entropy / horizon)


def penalty(gap: float) -> float:
    """Return Theorem 2's penalty for a model's loss, √(2 (ℓ(p_θ) - ℓ(p*))).

    Args:
        gap: The difference of the losses of a whole task, over all actions and steps; :func:`task_gap` computes it from
            a difference per step.
    """
    return math.sqrt(2 * check_number("gap", gap, 0))


def task_gap(per_step: float, horizon: int, n_actions: int) -> float:
    """Return the difference of the losses of a whole task from that per action and step.

    It uses outcomes given contexts. A model that draws contexts from a bank has no density for them, so the divergence
    of whole tasks is infinite.
    """
    check_number("per_step", per_step, 0)
    return per_step * check_integer("horizon", horizon, 1) * check_integer("n_actions", n_actions, 2)


def model_bound(horizon: int, n_actions: int, entropy: float, gap: float) -> float:
    """Return Theorem 2's bound for TS-Gen with a model p_θ: Theorem 1's plus the :func:`penalty` of its loss."""
    return perfect_bound(horizon, n_actions, entropy) + penalty(gap)


def linear_bound(horizon: int, n_actions: int, dimension: int) -> float:
    """Return the paper's bound for linear multiclass policies, √(d·min(d, A)/(2T) · log(T·A)).

    Args:
        horizon: T.
        n_actions: A.
        dimension: d, the number of the policy's parameters.
    """
    check_integer("horizon", horizon, 1)
    check_integer("n_actions", n_actions, 2)
    check_integer("dimension", dimension, 1)
    return math.sqrt(dimension * min(dimension, n_actions) / (2 * horizon) * math.log(horizon * n_actions))


def horizon_that_bites(n_actions: int, dimension: int, level: float = 1.0) -> int:
    """Return the smallest T from which on Theorem 1, with Proposition 2's entropy, is below ``level``.

    Args:
        n_actions: A.
        dimension: d.
        level: The regret per period that the bound must be below.
    """
    check_number("level", level, 0, above=True)

    def bound(horizon: int) -> float:
        return perfect_bound(horizon, n_actions, entropy_bound(horizon, n_actions, dimension))

    # Up to T = d all labelings count and the bound is constant; then it falls.
    low, high = 1, max(1, dimension)
    while bound(high) >= level:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < level else (middle + 1, high)
    return high
