"""Estimates how similar the contexts of one task are: the mass α of the bank in the context model "seen"."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

TASKS, STEPS = 50, 200  # most tasks, and most contexts of each, that α is fitted to
WIDTHS = 2.0 ** np.arange(2, -8, -1)  # candidate kernel widths, in standard deviations of a context's entries
RANGE = (-8.0, 12.0)  # range of log α
SURE = 3.0  # standard errors required for a finite α


def fit_urn(sequences: Sequence[np.ndarray], bank: np.ndarray) -> float:
    """Return the α that best predicts a task's next contexts; ∞ if its own contexts help no more than another's.

    After t contexts, the next one has the density

        t/(α+t) · mean over own contexts of N(own, w²I)  +  α/(α+t) · mean over the bank of N(bank, v²I),

    because contexts may be similar without being equal. The width v is the one that best predicts a bank context from
    the others; w, at most v, and α have the largest likelihood. If another task's contexts predict as well as own ones,
    within three standard errors over tasks, α is ∞.

    Args:
        sequences: Contexts of whole tasks in their order, (T, D) each, in units of their standard deviations; with
            fewer than two tasks, α is ∞.
        bank: Training contexts in the same units, (n, D).
    """
    varies = bank.std(axis=0) > 0
    bank = bank[:, varies].astype(np.float64)
    tasks = [task[:STEPS, varies].astype(np.float64) for task in sequences if len(task) > 1][:TASKS]
    if len(tasks) < 2 or len(bank) < 2 or not varies.any():
        return math.inf
    among = cdist(bank, bank, "sqeuclidean")
    np.fill_diagonal(among, np.inf)
    wide = max(WIDTHS, key=lambda width: float(_log_density(among, width, bank.shape[1]).mean()))
    far = np.concatenate([_log_density(cdist(task[1:], bank, "sqeuclidean"), wide, bank.shape[1]) for task in tasks])
    seen = np.concatenate([np.log(np.arange(1, len(task))) for task in tasks])

    def scores(log_alpha: float, near: np.ndarray) -> np.ndarray:
        """Return the log density of every context except a task's first, given the density from its own contexts."""
        return np.logaddexp(seen + near, log_alpha + far) - np.logaddexp(seen, log_alpha)

    def fit(width: float) -> tuple[float, float, float]:
        """Return the best score with kernels of this width, the width and log α."""
        near = _near(tasks, tasks, width)
        found = minimize_scalar(lambda log_alpha: -scores(log_alpha, near).mean(), bounds=RANGE, method="bounded")
        return -float(found.fun), width, float(found.x)

    _, width, log_alpha = max(fit(width) for width in WIDTHS[wide >= WIDTHS])
    own, others = (_near(tasks, given, width) for given in (tasks, [*tasks[1:], tasks[0]]))
    starts = np.cumsum([0, *(len(task) - 1 for task in tasks[:-1])])
    gain = np.add.reduceat(scores(log_alpha, own) - scores(log_alpha, others), starts)  # by task
    return math.exp(log_alpha) if gain.mean() > SURE * gain.std(ddof=1) / math.sqrt(len(gain)) else math.inf


def _near(tasks: list[np.ndarray], given: list[np.ndarray], width: float) -> np.ndarray:
    """Return the log density of each task's contexts except the first, given as many of ``given`` as came before."""
    found = []
    for task, other in zip(tasks, given, strict=True):
        squares = cdist(task[1:], other[: len(task) - 1], "sqeuclidean")
        squares[np.triu_indices(len(squares), 1, squares.shape[1])] = np.inf
        found.append(_log_density(squares, width, task.shape[1]))
    return np.concatenate(found)


def _log_density(squares: np.ndarray, width: float, size: int) -> np.ndarray:
    """Return log densities of a mixture of Gaussians from squared distances (n, m); infinite ones do not count."""
    counts = np.isfinite(squares).sum(axis=1)
    peak = -size * math.log(width * math.sqrt(2 * math.pi))
    return logsumexp(-squares / (2 * width**2), axis=1) - np.log(counts) + peak
