"""Complete tables as policy classes are fitted to them: contexts, outcomes and weights, checked."""

from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_array, check_integer


@dataclass(frozen=True, eq=False)
class Table:
    """Complete tables with weights, their shapes checked against each other."""

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
            weights = arrays["weights"] = check_array("weights", self.weights, "(B, T, A)", outcomes.shape)
            if weights.size and weights.min() < 0:
                raise InputError(f"weights must be at least 0, got {weights.min():g}")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)


def predict_linear(coefficients: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """Return linear predictions, (B, T, D) to (B, T, A), of coefficients (B, A, 1+D), intercept first."""
    return contexts @ coefficients[:, :, 1:].swapaxes(1, 2) + coefficients[:, None, :, 0]
