"""Fits hierarchical regressions: the coefficients of many actions and their common prior."""

from typing import NamedTuple

import numpy as np

from gents_gym.likelihoods import Categorical, Gaussian, Likelihood
from gents_gym.numerics.newton import LogisticProblems

PENALTIES = np.logspace(-2, 6, 17)  # ridge penalties to choose from


class Target(NamedTuple):
    """The target of one linear predictor: outcomes and their weights, (n, R) each."""

    outcomes: np.ndarray
    weights: np.ndarray


class Hierarchy(NamedTuple):
    """A prior of n actions' coefficients, with those of Q predictors concatenated, and the fit of each action."""

    maps: np.ndarray  # (1+F, Q·K): the prior's mean is linear in (1, Z)
    covariance: np.ndarray  # (Q·K, Q·K)
    modes: np.ndarray  # (n, Q·K)
    errors: np.ndarray  # (Q, n, R): weighted outcomes minus their expectation, divided by their variance if Gaussian
    information: np.ndarray  # (Q, n, R): the variance of those
    noise: float  # noise variance of Gaussian outcomes


def targets(likelihood: Likelihood, outcomes: np.ndarray, weights: np.ndarray) -> list[Target]:
    """Return the target of each linear predictor.

    Restricted to outcomes 0 and c, the indicator of c is a logistic regression on the predictor of c.
    """
    y, w = outcomes.astype(np.float64), weights.astype(np.float64)
    if not isinstance(likelihood, Categorical):
        return [Target(y, w)]
    return [Target((y == c) * 1.0, w * ((y == 0) | (y == c))) for c in range(1, likelihood.n_outcomes)]


def fit_hierarchy(
    likelihood: Likelihood, z: np.ndarray, x: np.ndarray, outcomes: np.ndarray, weights: np.ndarray, iterations: int
) -> Hierarchy:
    """Fit coefficients on rows x (n, R, K), and their prior given z (n, F), by EM, one predictor at a time.

    It alternates two steps. Given the prior, it finds each action's coefficients: mode and covariance, by Laplace's
    approximation unless outcomes are Gaussian. Given those, it fits the prior: its mean is the regression of the modes
    on (1, Z), its covariance that of the residuals plus the mean of the covariances. So actions with few rows count
    less.
    """
    family = _Linear if isinstance(likelihood, Gaussian) else _Logistic
    fits = [family(x, *target) for target in targets(likelihood, outcomes, weights)]
    size = x.shape[2]
    maps, modes, left = [], [], []
    covariance = np.zeros((len(fits) * size, len(fits) * size))
    for i, fit in enumerate(fits):
        means, own = np.zeros((len(z), size)), np.eye(size)
        for _ in range(iterations):
            spread = fit.update(means, own)
            own_maps, means, errors = ridge(z, fit.modes)
            own = errors.T @ errors / len(errors) + spread
        maps.append(own_maps)
        modes.append(fit.modes)
        left.append(errors)
        covariance[i * size : (i + 1) * size, i * size : (i + 1) * size] = own
        for j in range(i):
            across = left[j].T @ errors / len(errors)  # (K, K)
            covariance[j * size : (j + 1) * size, i * size : (i + 1) * size] = across
            covariance[i * size : (i + 1) * size, j * size : (j + 1) * size] = across.T
    scores = np.stack([fit.errors() for fit in fits]), np.stack([fit.information() for fit in fits])
    return Hierarchy(np.concatenate(maps, 1), covariance, np.concatenate(modes, 1), *scores, fits[0].noise)


class _Logistic:
    """Logistic regressions of n actions."""

    noise = 1.0

    def __init__(self, x: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> None:
        self._x, self._y, self._w = x, outcomes, weights
        self.modes = np.zeros((len(x), x.shape[2]))

    def update(self, means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Find the modes under a prior, and return the mean of the posterior covariances, (K, K)."""
        prior = (np.linalg.inv(covariance), means[:, None])
        problems = LogisticProblems(self._x, self._y[..., None], *prior, self._w[..., None])
        modes, chances = problems.solve(self.modes[:, None], tolerance=1e-4)
        self.modes, self._chances = modes[:, 0], chances[..., 0]
        return np.linalg.inv(problems.hessian(chances))[:, 0].mean(axis=0)

    def errors(self) -> np.ndarray:
        """Return the scores of the predictors, (n, R)."""
        return self._w * (self._y - self._chances)

    def information(self) -> np.ndarray:
        """Return their variance, (n, R)."""
        return self._w * (self._chances * (1 - self._chances))


class _Linear:
    """Linear regressions of n actions with one noise variance, which is fitted with them."""

    def __init__(self, x: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> None:
        self._x, self._y, self._w = x, outcomes, weights
        turned = (x * weights[..., None]).swapaxes(1, 2)  # (n, K, R)
        self._squares, self._products = turned @ x, turned @ outcomes[..., None]  # (n, K, K), (n, K, 1)
        self.noise = max(float((weights * outcomes**2).sum() / weights.sum()), 1e-12)

    def update(self, means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Find the posteriors under a prior, then the noise, and return the mean of their covariances, (K, K)."""
        precision = np.linalg.inv(covariance)
        spread = np.linalg.inv(self._squares / self.noise + precision)  # (n, K, K)
        self.modes = (spread @ (self._products / self.noise + (means @ precision)[..., None]))[..., 0]
        unsure = (spread * self._squares).sum()
        self._left = self._y - (self._x @ self.modes[..., None])[..., 0]  # (n, R)
        self.noise = max(float(((self._w * self._left**2).sum() + unsure) / self._w.sum()), 1e-12)
        return spread.mean(axis=0)

    def errors(self) -> np.ndarray:
        """Return the scores of the predictors, (n, R)."""
        return self._w * self._left / self.noise

    def information(self) -> np.ndarray:
        """Return their variance, (n, R)."""
        return self._w / self.noise


def ridge(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regress each column of y (n, K) on (1, z), with a penalty chosen by leave-one-out errors.

    Returns:
        The maps (1+F, K), the fitted values (n, K) and the leave-one-out errors (n, K).
    """
    middle, level = z.mean(axis=0), y.mean(axis=0)
    u, s, vt = np.linalg.svd(z - middle, full_matrices=False)
    projected = u.T @ (y - level)  # (r, K)
    best = np.full(y.shape[1], np.inf)
    maps, fitted, left = np.zeros((1 + z.shape[1], y.shape[1])), np.zeros_like(y), np.zeros_like(y)
    for penalty in PENALTIES:
        kept = s**2 / (s**2 + penalty)
        guess = level + u @ (kept[:, None] * projected)
        leverage = 1 / len(z) + (u**2) @ kept  # (n,)
        errors = (y - guess) / np.maximum(1 - leverage, 1e-9)[:, None]
        better = (errors**2).mean(axis=0) < best
        best = np.where(better, (errors**2).mean(axis=0), best)
        slopes = vt.T @ ((s / (s**2 + penalty))[:, None] * projected)  # (F, K)
        maps[1:, better] = slopes[:, better]
        maps[0, better] = (level - middle @ slopes)[better]
        fitted[:, better], left[:, better] = guess[:, better], errors[:, better]
    return maps, fitted, left
