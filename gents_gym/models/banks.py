"""Provides the actions and contexts of imagined tasks, from the banks that a model keeps or a task distribution."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gents_gym.checks import InputError, check_array, check_choice, check_number
from gents_gym.types import TaskDistribution

LAWS = ("bank", "seen")  # named laws of contexts; numbers are laws too


class Source(Protocol):
    """Draws the actions and contexts of imagined tasks."""

    @property
    def sizes(self) -> tuple[int, int]:
        """F and D."""
        ...

    @property
    def space(self) -> str | None:
        """The space of the action features, if they are embeddings."""
        ...

    def draw(
        self, at: tuple[int, int, str], rng: np.random.Generator, n_actions: int, n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the action features (A, F) and contexts (T, D) of one task, ``at`` (seed, index, split)."""
        ...


@dataclass(frozen=True, eq=False)
class Banks:
    """Training actions and contexts that a model keeps; a task's actions are distinct.

    Contexts follow ``law``. "bank" draws each context from the bank. "seen" draws from the model's urn: after t
    contexts, the next is one of them with probability t / (α + t), otherwise one of the bank. A number s mixes two
    contexts of the bank around its mean, √(1 - s²) X̄ + s X, where X̄ is fixed for each task; with s = 0, all contexts
    of a task are the same.
    """

    actions: np.ndarray  # (n, F)
    contexts: np.ndarray  # (n, D)
    law: str | float
    alpha: float  # α
    space: str | None

    @property
    def sizes(self) -> tuple[int, int]:
        """F and D."""
        return self.actions.shape[1], self.contexts.shape[1]

    def draw(
        self, at: tuple[int, int, str], rng: np.random.Generator, n_actions: int, n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the action features (A, F) and contexts (T, D) of one task."""
        features = self.actions[rng.choice(len(self.actions), n_actions, replace=False)]
        picks = rng.integers(len(self.contexts), size=n_rows)
        if self.law == "seen":
            picks = _recur(picks, self.alpha, rng)
        contexts = self.contexts[picks]  # (T, D)
        if isinstance(self.law, float):
            centre = self.contexts.mean(axis=0, dtype=np.float64)
            own = self.contexts[rng.integers(len(self.contexts))] - centre
            contexts = centre + math.sqrt(1 - self.law**2) * own + self.law * (contexts - centre)
        return features, contexts.astype(np.float32)


def _recur(picks: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Return picks from an urn: after t picks, the next is an earlier one with probability t / (α + t)."""
    recurs, which = rng.random((2, len(picks)))
    for t in range(1, len(picks)):
        if recurs[t] * (alpha + t) < t:
            picks[t] = picks[int(which[t] * t)]
    return picks


def read_banks(model: Any, name: Any, contexts: str | float | None) -> Banks:
    """Return the banks that a model keeps. Raises if it keeps no actions or no contexts.

    Args:
        model: The model.
        name: Its name, for the errors.
        contexts: The law of contexts: "bank", "seen" or a number in [0, 1]; None: "seen".
    """
    actions, bank = (_read_bank(model, name, kept) for kept in ("action_bank", "bank"))
    alpha = urn_mass(model)
    return Banks(actions, bank, context_law(contexts, alpha), alpha, getattr(model, "space", None))


def urn_mass(model: Any) -> float:
    """Return α, the mass of the bank in a model's urn of contexts; ∞ if it has none."""
    urn = float(getattr(model, "urn", 0.0))
    return 1 / urn - 1 if urn > 0 else math.inf


def _read_bank(model: Any, name: Any, bank: str) -> np.ndarray:
    kept = check_array(f"the model's {bank}", getattr(model, bank, np.zeros((0, 1))), "(n, size)", (-1, -1))
    if not len(kept):
        cure = "name a setting to take actions and contexts from"
        if getattr(model, "banked", True):
            cure = f"train it again (gents-gym train), or {cure}"
        raise InputError(f"model must keep training data to draw from in its {bank}, got none in {name!r}: {cure}")
    return kept


def context_law(contexts: str | float | None, alpha: float) -> str | float:
    """Return one name for each law: "bank" also for 1 and for an urn that only draws from the bank."""
    if contexts is None or contexts == "seen":
        return "seen" if alpha < math.inf else "bank"
    if isinstance(contexts, str):
        return check_choice("law of contexts (or a number in [0, 1])", contexts, LAWS)
    if (spread := check_number("contexts", contexts, 0)) > 1:
        raise InputError(f"contexts must be at most 1, got {contexts}")
    return "bank" if spread == 1 else spread


@dataclass(frozen=True, eq=False)
class Setting:
    """Actions and contexts that a task distribution's ``sample_actions`` draws, different ones for every task."""

    distribution: TaskDistribution
    sizes: tuple[int, int]  # F and D
    space: str | None

    def draw(
        self, at: tuple[int, int, str], rng: np.random.Generator, n_actions: int, n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the action features (A, F) and contexts (T, D) of one task."""
        seed, index, split = at
        numbers = range(index * n_actions, (index + 1) * n_actions)
        features = self.distribution.sample_actions(seed, numbers, 1, split).action_features
        return features, self.distribution.sample_actions(seed, numbers[:1], n_rows, split).contexts[0]
