"""A filter model's first prior: historical rows in, the prior of a hierarchical logistic regression out."""

import numpy as np
import torch

from gents_gym.models.filter import FilterModel
from gents_gym.newton import LogisticProblems
from gents_gym.training.data import RowSets

ACTIONS, ROWS, ITERATIONS = 1000, 300, 12  # how much data, and how long: gradients do the rest


def fit_prior_maps(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's prior to the one that EM with Laplace approximations finds.

    In turn: each action's coefficients given the prior (mode and covariance), and the prior given those: the means
    regressed on (1, Z), the covariance of what is left plus the mean of the covariances. Actions with few
    rows count with what they know.
    """
    chosen = rng.permutation(len(rows))[:ACTIONS]
    batch = rows.resample(chosen, ROWS, replacement=False, rng=rng)
    with torch.no_grad():
        x = model.rows(batch.contexts).numpy().astype(np.float64)  # (n, R, K)
    y, weights = (part.numpy().astype(np.float64)[..., None] for part in (batch.outcomes, batch.weights))
    z = np.column_stack([np.ones(len(chosen)), batch.action_features.numpy().astype(np.float64)])
    maps, covariance = np.zeros((z.shape[1], x.shape[2])), np.eye(x.shape[2])
    modes = np.zeros((len(chosen), 1, x.shape[2]))
    for _ in range(ITERATIONS):
        problems = LogisticProblems(x, y, np.linalg.inv(covariance), (z @ maps)[:, None], weights)
        modes, chances = problems.solve(modes, tolerance=1e-4)
        spread = np.linalg.inv(problems.hessian(chances))[:, 0]  # (n, K, K)
        maps = np.linalg.lstsq(z, modes[:, 0], rcond=None)[0]
        left = modes[:, 0] - z @ maps
        covariance = left.T @ left / len(left) + spread.mean(axis=0)
    root = np.linalg.cholesky(covariance)
    diagonal = np.diag(root)
    with torch.no_grad():
        model.prior_mean.copy_(torch.from_numpy(maps.T))
        model.prior_scale.zero_()[:, 0] = torch.from_numpy(np.log(diagonal))
        model.prior_lower.copy_(torch.from_numpy(np.tril(root / diagonal[:, None], -1)))
