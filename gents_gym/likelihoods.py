"""Likelihoods define what an outcome is: valid values, how it is drawn, and its expected reward.

A prediction is described by parameters: P(Y=1) of shape (...) for :class:`Bernoulli`, mean and variance of shape
(..., 2) for :class:`Gaussian`, the probabilities of the C outcomes of shape (..., C) for :class:`Categorical`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import InputError, TaskError, check_integer

RewardFn = Callable[[np.ndarray], np.ndarray]
NODES = np.linspace(-8, 8, 257)  # standard deviations covered by the rule for E[R(Y)] of a Gaussian outcome
SUM_TOLERANCE = 1e-4  # tolerance for probabilities in single precision
CELLS = 1 << 20  # rewards computed at once by that rule


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

    @property
    def support(self) -> np.ndarray:
        """All outcomes, (n,)."""
        return np.array([0.0, 1.0])

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is 0 or 1."""
        odd = (outcomes != 0) & (outcomes != 1)
        if np.count_nonzero(odd):
            raise InputError(f"{name} must be 0 or 1, got {_first(outcomes, odd)}")

    def check_parameters(self, name: str, parameters: np.ndarray) -> None:
        """Raise unless every parameter is a probability; the error's position is the row of the first violation."""
        _refuse(~((parameters >= 0) & (parameters <= 1)), parameters, f"{name} must be probabilities in [0, 1]")  # NaN

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
        losing, winning = (float(reward) for reward in reward_fn(self.support))
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

    @property
    def support(self) -> None:
        """None: any number is a valid outcome."""
        return None

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is finite."""
        odd = ~np.isfinite(outcomes)
        if odd.any():
            raise InputError(f"{name} must be finite, got {_first(outcomes, odd)}")

    def check_parameters(self, name: str, parameters: np.ndarray) -> None:
        """Raise unless means are finite and variances above 0, as :meth:`Bernoulli.check_parameters` does."""
        odd = ~np.isfinite(parameters)
        odd[..., 1] |= parameters[..., 1] <= 0
        _refuse(odd, parameters, f"{name} must be finite means with variances above 0")

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
        """Return E[R(Y)], elementwise: the mean if R(y) = y, else by a trapezoidal rule with 16 nodes per deviation.

        The rule is exact up to rounding if R is smooth. A step of R causes an error of at most 1/80 of its height.
        """
        mean, deviation = parameters[..., 0], np.sqrt(parameters[..., 1])
        if mean.size == 0 or _is_identity(reward_fn, mean, deviation):
            return mean
        shares = np.exp(-0.5 * NODES**2)
        shares /= shares.sum()
        pairs = np.stack([mean.reshape(-1), deviation.reshape(-1)], axis=1)  # (n, 2)
        blocks = np.array_split(pairs, -(-len(pairs) * len(NODES) // CELLS))
        found = [np.asarray(reward_fn(block[:, :1] + block[:, 1:] * NODES)) @ shares for block in blocks]
        return np.concatenate(found).reshape(mean.shape).astype(mean.dtype, copy=False)


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

    @property
    def support(self) -> np.ndarray:
        """All outcomes, (n,)."""
        return np.arange(self.n_outcomes, dtype=np.float64)

    def check(self, name: str, outcomes: np.ndarray) -> None:
        """Raise unless every outcome is one of 0, …, C-1."""
        odd = ~np.isin(outcomes, np.arange(self.n_outcomes))
        if odd.any():
            rule = f"a whole number from 0 to {self.n_outcomes - 1}"
            raise InputError(f"{name} must be {rule}, got {_first(outcomes, odd)}")

    def check_parameters(self, name: str, parameters: np.ndarray) -> None:
        """Raise unless the parameters are probabilities that sum to 1, as :meth:`Bernoulli.check_parameters` does."""
        _refuse(~((parameters >= 0) & (parameters <= 1)), parameters, f"{name} must be probabilities in [0, 1]")
        sums = parameters.sum(axis=-1)
        _refuse(np.abs(sums - 1) > SUM_TOLERANCE, sums, f"{name} must be probabilities with a sum of 1")

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return random numbers that :meth:`sample` turns into outcomes, float32."""
        return rng.random(shape, np.float32)

    def sample(self, parameters: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return outcomes, float32, of the shape of ``noise``."""
        ceilings = np.cumsum(parameters, axis=-1)[..., :-1]  # (..., C-1); the last outcome takes the rest
        return (noise[..., None] >= ceilings).sum(axis=-1).astype(np.float32)

    def log_prob(self, parameters: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of outcomes, elementwise."""
        index = np.asarray(outcomes, np.int64)[..., None]
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(parameters, index, axis=-1)[..., 0])

    def expected_reward(self, reward_fn: RewardFn, parameters: np.ndarray) -> np.ndarray:
        """Return E[R(Y)], elementwise."""
        return parameters @ np.asarray(reward_fn(self.support), parameters.dtype)


Likelihood = Bernoulli | Gaussian | Categorical
BERNOULLI = Bernoulli()
GAUSSIAN = Gaussian()


def make_likelihood(name: str) -> Likelihood:
    """Return the likelihood with this name: "bernoulli", "gaussian", or "categorical(C)" with C outcomes."""
    match = re.fullmatch(r"categorical\((\d{1,6})\)", name) if isinstance(name, str) else None
    if match is not None:
        return Categorical(int(match[1]))
    if name == "bernoulli":
        return BERNOULLI
    if name == "gaussian":
        return GAUSSIAN
    raise InputError(f"a likelihood must be bernoulli, gaussian or categorical(C), got {name!r}")


def infer_likelihood(outcomes: np.ndarray) -> Likelihood:
    """Return the likelihood of outcomes that come without one: Bernoulli if all are 0 or 1, else Gaussian."""
    return BERNOULLI if ((outcomes == 0) | (outcomes == 1)).all() else GAUSSIAN


def check_reward(reward_fn: Any, likelihood: Likelihood = BERNOULLI) -> None:
    """Raise unless ``reward_fn`` maps an array of outcomes to as many finite rewards."""
    outcomes = np.linspace(-2, 2, 5) if likelihood.support is None else likelihood.support
    try:
        with np.errstate(all="ignore"):
            rewards = np.asarray(reward_fn(outcomes.astype(np.float32)), np.float64)
    except Exception as error:
        raise InputError(f"reward_fn must map outcomes to rewards, got {reward_fn!r} ({error})") from error
    if rewards.shape != outcomes.shape or not np.isfinite(rewards).all():
        got = f"{rewards.tolist()} for {outcomes.tolist()}"
        raise InputError(f"reward_fn must map each outcome to a finite reward, got {got}")


def _is_identity(reward_fn: RewardFn, mean: np.ndarray, deviation: np.ndarray) -> bool:
    """Whether R(y) = y wherever the outcomes are likely to be."""
    reach = 8 * deviation.max()
    outcomes = np.linspace(mean.min() - reach, mean.max() + reach, 129)
    return np.array_equal(reward_fn(outcomes), outcomes)


def _refuse(odd: np.ndarray, values: np.ndarray, rule: str) -> None:
    """Raise if any of the values (N, ...) is invalid; the error has the row of the first."""
    if odd.any():
        raise TaskError(f"{rule}, got {_first(values, odd)}", int(np.argwhere(odd)[0, 0]))


def _first(outcomes: np.ndarray, odd: np.ndarray) -> str:
    return f"{np.asarray(outcomes)[odd].flat[0]:g}"
