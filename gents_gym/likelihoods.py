"""Likelihoods say what an outcome is: which values are valid, how one is drawn, and which reward it promises.

A prediction is described by parameters: P(Y=1) of shape (...) for :class:`Bernoulli`, mean and variance of shape
(..., 2) for :class:`Gaussian`, the probabilities of the C outcomes of shape (..., C) for :class:`Categorical`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError, check_integer

RewardFn = Callable[[np.ndarray], np.ndarray]
NODES = 64  # of the Gauss-Hermite rule behind E[R(Y)] of a Gaussian outcome


@dataclass(frozen=True)
class Bernoulli:
    """Outcomes 0 and 1; the parameter is P(Y=1)."""

    def __str__(self) -> str:
        """Return the name that :func:`make_likelihood` reads."""
        return "bernoulli"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one prediction's parameters."""
        return ()

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is 0 or 1."""
        odd = (outcomes != 0) & (outcomes != 1)
        if odd.any():
            raise InputError(f"{name} must be 0 or 1, got {_first(outcomes, odd)}")

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return random numbers that :meth:`sample` turns into outcomes, float32."""
        return rng.random(shape, np.float32)

    def sample(self, parameters: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return outcomes, float32, of the shape of ``noise``."""
        return (noise < parameters).astype(np.float32)

    def log_prob(self, parameters: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of outcomes, elementwise."""
        with np.errstate(divide="ignore"):
            return np.log(np.where(outcomes == 1, parameters, 1 - parameters))

    def expected_reward(self, reward_fn: RewardFn, parameters: np.ndarray) -> np.ndarray:
        """Return E[R(Y)], elementwise and in the parameters' type."""
        losing, winning = (float(reward) for reward in reward_fn(np.array([0.0, 1.0])))
        return parameters if (losing, winning) == (0, 1) else losing + (winning - losing) * parameters


@dataclass(frozen=True)
class Gaussian:
    """Outcomes are real numbers; the parameters are mean and variance."""

    def __str__(self) -> str:
        """Return the name that :func:`make_likelihood` reads."""
        return "gaussian"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one prediction's parameters."""
        return (2,)

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is finite."""
        odd = ~np.isfinite(outcomes)
        if odd.any():
            raise InputError(f"{name} must be finite, got {_first(outcomes, odd)}")

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return random numbers that :meth:`sample` turns into outcomes, float32."""
        return rng.standard_normal(shape, np.float32)

    def sample(self, parameters: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return outcomes, float32, of the shape of ``noise``."""
        return (parameters[..., 0] + np.sqrt(parameters[..., 1]) * noise).astype(np.float32)

    def log_prob(self, parameters: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Return the log-densities of outcomes, elementwise."""
        mean, variance = parameters[..., 0], parameters[..., 1]
        return -0.5 * (np.log(2 * math.pi * variance) + (outcomes - mean) ** 2 / variance)

    def expected_reward(self, reward_fn: RewardFn, parameters: np.ndarray) -> np.ndarray:
        """Return E[R(Y)]: the mean where R(y) = y, else by a Gauss-Hermite rule, exact for polynomials."""
        probe = np.array([-1.5, 0.0, 2.5])
        if np.array_equal(reward_fn(probe), probe):
            return parameters[..., 0]
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        spread = np.sqrt(parameters[..., 1, None])
        rewards = np.asarray(reward_fn(parameters[..., 0, None] + spread * nodes))
        return rewards @ (weights / weights.sum())


@dataclass(frozen=True)
class Categorical:
    """Outcomes 0, 1, …, C-1; the parameters are their probabilities."""

    n_outcomes: int = 3  # C

    def __post_init__(self) -> None:
        """Check the number of outcomes."""
        check_integer("n_outcomes", self.n_outcomes, 2)

    def __str__(self) -> str:
        """Return the name that :func:`make_likelihood` reads."""
        return f"categorical({self.n_outcomes})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one prediction's parameters."""
        return (self.n_outcomes,)

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is one of 0, …, C-1."""
        odd = ~np.isin(outcomes, np.arange(self.n_outcomes))
        if odd.any():
            rule = f"a whole number from 0 to {self.n_outcomes - 1}"
            raise InputError(f"{name} must be {rule}, got {_first(outcomes, odd)}")

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return random numbers that :meth:`sample` turns into outcomes, float32."""
        return rng.random(shape, np.float32)

    def sample(self, parameters: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return outcomes, float32, of the shape of ``noise``."""
        ceilings = np.cumsum(parameters, axis=-1)[..., :-1]  # (..., C-1); the last outcome takes what is left
        return (noise[..., None] >= ceilings).sum(axis=-1).astype(np.float32)

    def log_prob(self, parameters: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of outcomes, elementwise."""
        index = np.asarray(outcomes, np.int64)[..., None]
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(parameters, index, axis=-1)[..., 0])

    def expected_reward(self, reward_fn: RewardFn, parameters: np.ndarray) -> np.ndarray:
        """Return E[R(Y)], elementwise."""
        return parameters @ np.asarray(reward_fn(np.arange(self.n_outcomes, dtype=np.float64)), parameters.dtype)


Likelihood = Bernoulli | Gaussian | Categorical
BERNOULLI = Bernoulli()


def make_likelihood(name: str) -> Likelihood:
    """Return the likelihood of a name: "bernoulli", "gaussian", or "categorical(C)" with C outcomes."""
    match = re.fullmatch(r"categorical\((\d{1,6})\)", name) if isinstance(name, str) else None
    if match is not None:
        return Categorical(int(match[1]))
    if name == "bernoulli":
        return BERNOULLI
    if name == "gaussian":
        return Gaussian()
    raise InputError(f"a likelihood must be bernoulli, gaussian or categorical(C), got {name!r}")


def _first(outcomes: np.ndarray, odd: np.ndarray) -> str:
    return f"{np.asarray(outcomes)[odd].flat[0]:g}"
