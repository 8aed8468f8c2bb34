"""Computes the paper's bounds, and measures what they bound with the exact posterior."""

from gents_gym.theory.bounds import (
    entropy_bound,
    horizon_that_bites,
    linear_bound,
    model_bound,
    penalty,
    perfect_bound,
    task_gap,
)

__all__ = [
    "entropy_bound",
    "horizon_that_bites",
    "linear_bound",
    "model_bound",
    "penalty",
    "perfect_bound",
    "task_gap",
]
