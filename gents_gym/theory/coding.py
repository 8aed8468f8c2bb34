"""Bounds the entropy of the oracle's actions from above by the mean length of a code."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

SCALES = (1.0, 2.0, 4.0)  # how much steeper than the prior the predictors are
GROWTH = 1.15  # labels 1 to t predict those up to GROWTH·t, which saves most of the fits


def code_length(
    labels: np.ndarray,
    rows: np.ndarray,
    center: np.ndarray,
    variance: np.ndarray,
    scales: tuple[float, ...] = SCALES,
) -> float:
    """Return the length of a code of labels given the contexts, in nats.

    Each label is predicted by a softmax of linear functions that is fitted to the labels before it, with a Gaussian
    prior. The code is the equal mixture of one such predictor per scale; a scale multiplies the prior's mean and
    standard deviation.

    Args:
        labels: A policy's actions in T contexts, (T,).
        rows: The features that predictions are linear in, (T, K).
        center: The prior's mean, (A, K).
        variance: The prior's variance, (A, K).
        scales: One for each predictor.
    """
    parts = [_log_chances(labels, rows, scale * center, scale**2 * variance).sum() for scale in scales]
    return float(np.log(len(scales)) - logsumexp(parts))


def _log_chances(labels: np.ndarray, rows: np.ndarray, center: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the log probability of each label given those before its block, (T,)."""
    found, weights, start = np.empty(len(labels)), center, 0
    while start < len(labels):
        stop = max(start + 1, int(GROWTH * start))
        weights = _fit(labels[:start], rows[:start], center, variance, weights)
        block = log_softmax(rows[start:stop] @ weights.T, axis=1)
        found[start:stop] = np.take_along_axis(block, labels[start:stop, None], axis=1)[:, 0]
        start = stop
    return found


def _fit(
    labels: np.ndarray, rows: np.ndarray, center: np.ndarray, variance: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the most probable coefficients (A, K) given labels."""
    if not len(labels):
        return center
    wanted = labels[:, None] == np.arange(len(center))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(center.shape)
        logs = log_softmax(rows @ weights.T, axis=1)
        away = (weights - center) / variance
        gradient = (np.exp(logs) - wanted).T @ rows + away
        return 0.5 * float((away * (weights - center)).sum()) - float(logs[wanted].sum()), gradient.ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 30})
    return np.asarray(found.x).reshape(center.shape)
