"""What policy classes for binary outcomes share: checked tables in, policies that predict probabilities out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError, check_array, check_integer
from gents_gym.types import RewardFn, expected_reward, identity


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryPolicy(ABC):
    """Fitted models of P(Y=1) for each task and action; where all outcomes were equal, that constant alone."""

    constant: np.ndarray  # (B, A): the outcome of a one-class column, NaN elsewhere
    reward_fn: RewardFn = identity

    @abstractmethod
    def logits(self, contexts: np.ndarray) -> np.ndarray:
        """Return the fitted models' log odds, (B, T, D) to (B, T, A)."""

    def probability(self, context: np.ndarray) -> np.ndarray:
        """Return P(Y=1), (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        logits = self.logits(context[:, None] if context.ndim == 2 else context)
        fixed = self.constant[:, None]  # (B, 1, A)
        chances: np.ndarray = np.where(np.isnan(fixed), expit(logits), fixed)  # (B, T, A)
        return chances[:, 0] if context.ndim == 2 else chances

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        return expected_reward(self.reward_fn, self.probability(context))


@dataclass(frozen=True, eq=False)
class BinaryTable:
    """Complete tables of outcomes 0 and 1, checked."""

    contexts: np.ndarray  # (B, T, D) float32
    outcomes: np.ndarray  # (B, T, A) float32
    weights: np.ndarray | None = None  # (B, T, A) float32; None: ones

    def __post_init__(self) -> None:
        """Check the shapes against each other, and the outcomes."""
        contexts = check_array("contexts", self.contexts, "(B, T, D)", (-1, -1, -1))
        outcomes = check_array("outcomes", self.outcomes, "(B, T, A)", (*contexts.shape[:2], -1))
        check_integer("the number of rows T", contexts.shape[1], 1)
        check_integer("the context size D", contexts.shape[2], 1)
        if not ((outcomes == 0) | (outcomes == 1)).all():
            bad = outcomes[(outcomes != 0) & (outcomes != 1)][0]
            raise InputError(f"outcomes must be 0 or 1 for this policy class, got {bad:g}")
        arrays = {"contexts": contexts, "outcomes": outcomes}
        if self.weights is not None:
            weights = arrays["weights"] = check_array("weights", self.weights, "(B, T, A)", outcomes.shape)
            if weights.size and weights.min() < 0:
                raise InputError(f"weights must be at least 0, got {weights.min():g}")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    def constants(self) -> np.ndarray:
        """Return the outcome of columns that have one alone, and NaN elsewhere, (B, A); 0 where no row counts."""
        ones = self.outcomes == 1
        counts = np.ones_like(ones) if self.weights is None else self.weights > 0
        some_one, some_zero = (ones & counts).any(axis=1), (~ones & counts).any(axis=1)
        return np.where(some_one & some_zero, np.nan, some_one.astype(float))
