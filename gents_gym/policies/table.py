"""Checks complete tables (contexts, outcomes and weights) before a policy class is fitted to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_array, check_contexts, check_integer


@dataclass(frozen=True, eq=False)
class Table:
    """Complete tables with weights, whose shapes are checked against each other."""

    contexts: np.ndarray  # (B, T, D) float32
    outcomes: np.ndarray  # (B, T, A) float32
    weights: np.ndarray | None = None  # (B, T, A) float32; None: ones

    def __post_init__(self) -> None:
        """Check the arrays."""
        contexts = check_array("contexts", self.contexts, "(B, T, D)", (-1, -1, -1), per_task=1)
        outcomes = check_array("outcomes", self.outcomes, "(B, T, A)", (*contexts.shape[:2], -1), per_task=1)
        check_integer("the number of rows T", contexts.shape[1], 1)
        check_integer("the context size D", contexts.shape[2], 1)
        arrays = {"contexts": contexts, "outcomes": outcomes}
        if self.weights is not None:
            arrays["weights"] = check_weights(self.weights, outcomes.shape)
        for name, array in arrays.items():
            object.__setattr__(self, name, array)


def check_weights(weights: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Check that weights have the shape (B, T, A) and are at least 0; return them."""
    found = check_array("weights", weights, "(B, T, A)", shape, dtype)
    if found.size and found.min() < 0:
        raise InputError(f"weights must be at least 0, got {found.min():g}")
    return found


def predict_linear(coefficients: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """Return linear predictions from coefficients (B, A, 1+D), intercept first.

    Contexts (B, T, D) give (B, T, A), and (B, D) give (B, 1, A).
    """
    # The product converts it, which is cheaper than converting it here.
    single = getattr(contexts, "dtype", None) == np.float32
    size, dtype = coefficients.shape[2] - 1, np.float32 if single else np.float64
    contexts = check_contexts(contexts, len(coefficients), size, dtype)
    return contexts @ coefficients[:, :, 1:].swapaxes(1, 2) + coefficients[:, None, :, 0]
