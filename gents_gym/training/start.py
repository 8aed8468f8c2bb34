"""A filter model's first prior: historical rows in, the prior of a hierarchical logistic regression out."""

import numpy as np
import torch

from gents_gym.models.filter import FilterModel
from gents_gym.newton import LogisticProblems
from gents_gym.training.data import RowSets

ROWS, ITERATIONS = 300, 12  # rows of an action, and rounds of EM: gradients do the rest
LEAST_ACTIONS = 1000  # and three per action feature, where there are so many
PENALTIES = np.logspace(-2, 6, 17)  # ridge penalties to choose from


def fit_prior_maps(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's prior to the one that EM with Laplace approximations finds.

    In turn: each action's coefficients given the prior (mode and covariance), and the prior given those: the means
    regressed on (1, Z), the covariance of what is left plus the mean of the covariances. Actions with few
    rows count with what they know.
    """
    n_wanted = max(LEAST_ACTIONS, 3 * rows.action_features.shape[1])
    chosen = rng.permutation(len(rows))[:n_wanted]
    batch = rows.resample(chosen, ROWS, replacement=False, rng=rng)
    with torch.no_grad():
        x = model.rows(batch.contexts).numpy().astype(np.float64)  # (n, R, K)
        z = model.scale_features(batch.action_features).numpy().astype(np.float64)  # (n, F)
    y, weights = (part.numpy().astype(np.float64)[..., None] for part in (batch.outcomes, batch.weights))
    size = x.shape[2]
    maps, means, covariance = np.zeros((1 + z.shape[1], size)), np.zeros((len(z), size)), np.eye(size)
    modes = np.zeros((len(z), 1, size))
    for _ in range(ITERATIONS):
        problems = LogisticProblems(x, y, np.linalg.inv(covariance), means[:, None], weights)
        modes, chances = problems.solve(modes, tolerance=1e-4)
        spread = np.linalg.inv(problems.hessian(chances))[:, 0]  # (n, K, K)
        maps, means, left = ridge(z, modes[:, 0])
        covariance = left.T @ left / len(left) + spread.mean(axis=0)
    root = np.linalg.cholesky(covariance)
    diagonal = np.diag(root)
    with torch.no_grad():
        model.prior_mean.copy_(torch.from_numpy(maps.T))
        model.prior_scale.zero_()[:, 0] = torch.from_numpy(np.log(diagonal))
        model.prior_lower.copy_(torch.from_numpy(np.tril(root / diagonal[:, None], -1)))


def ridge(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regress each column of y (n, K) on (1, z), its penalty chosen by leave-one-out errors.

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
