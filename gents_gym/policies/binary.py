"""Holds what policy classes for binary outcomes share: checks of tables, and policies that predict probabilities."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gents_gym.checks import InputError
from gents_gym.likelihoods import BERNOULLI
from gents_gym.policies.table import Table
from gents_gym.types import RewardFn, identity


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryPolicy(ABC):
    """Fitted models of P(Y=1) for each task and action; a column of equal outcomes has that constant instead."""

    constant: np.ndarray  # (B, A): the outcome of a column with equal outcomes, NaN elsewhere
    reward_fn: RewardFn = identity

    @abstractmethod
    def logits(self, contexts: np.ndarray) -> np.ndarray:
        """Return the fitted models' log odds, (B, T, D) to (B, T, A), or (B, D) to (B, 1, A)."""

    def probability(self, context: np.ndarray) -> np.ndarray:
        """Return P(Y=1), (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        logits = self.logits(context)
        fixed = self.constant[:, None]  # (B, 1, A)
        chances: np.ndarray = np.where(np.isnan(fixed), expit(logits), fixed)  # (B, T, A)
        return chances[:, 0] if np.ndim(context) == 2 else chances

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        return BERNOULLI.expected_reward(self.reward_fn, self.probability(context))


@dataclass(frozen=True, eq=False)
class BinaryTable(Table):
    """Complete tables of outcomes 0 and 1, checked."""

    def __post_init__(self) -> None:
        """Check the shapes against each other, and the outcomes."""
        super().__post_init__()
        try:
            BERNOULLI.check("outcomes", self.outcomes)
        except InputError as error:
            raise InputError(f"{error}: this policy class is for 0 and 1, least-squares for others") from None

    def constants(self) -> np.ndarray:
        """Return the outcome of columns whose outcomes are all equal, and NaN elsewhere, (B, A); 0 if no row counts."""
        ones = self.outcomes == 1
        counts = np.ones_like(ones) if self.weights is None else self.weights > 0
        some_one, some_zero = (ones & counts).any(axis=1), (~ones & counts).any(axis=1)
        return np.where(some_one & some_zero, np.nan, some_one.astype(float))
