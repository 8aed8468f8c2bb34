"""Fits batches of penalised multinomial logistic regressions, each with its own rows, by Newton's method."""

import numpy as np

from gents_gym.numerics.newton import NewtonProblems


def softmax_with_zero(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(0, logits) over the first axis, (C-1, ...) to (C, ...), and the logs of its divisors, (...)."""
    top = np.maximum(logits.max(axis=0), 0)
    chances = np.empty((1 + len(logits), *logits.shape[1:]))
    np.exp(-top, out=chances[0])
    np.exp(logits - top, out=chances[1:])
    total = chances.sum(axis=0)
    chances /= total
    return chances, top + np.log(total)


class MultinomialProblems(NewtonProblems):
    """B·A multinomial logistic regressions with Gaussian penalties.

    Each minimises Σ_i -log softmax(0, x_i·β_1, …, x_i·β_{C-1})[y_i] + ½ Σ_q (β_q - μ_q)²/v_q over its Q = (C-1)·K
    coefficients β, those of β_1 first. With C=2 it is a logistic regression.

    Args:
        rows: x, (n, K) float64, one problem after another in the order of :meth:`numpy.ndarray.ravel`.
        outcomes: y, (n,), whole numbers from 0 to C-1.
        counts: How many rows each problem has, (B, A).
        center: μ, (B, A, Q).
        variance: v, (B, A, Q).
    """

    def __init__(
        self, rows: np.ndarray, outcomes: np.ndarray, counts: np.ndarray, center: np.ndarray, variance: np.ndarray
    ) -> None:
        self._center, self._variance = center, variance
        self._counts = counts.ravel()
        self._some = np.flatnonzero(self._counts)  # the problems with rows
        self._starts = np.cumsum(self._counts)[self._some] - self._counts[self._some]
        self._columns = np.ascontiguousarray(rows.T)  # (K, n)
        self._sizes = (center.shape[-1] // rows.shape[1], rows.shape[1])  # C-1, K
        observed = outcomes == np.arange(1, 1 + self._sizes[0])[:, None]  # (C-1, n)
        self._target = self._scores(observed.astype(np.float64))
        self.work = center.size + outcomes.size  # numbers that an evaluation needs

    def loss(self, solution: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives (..., B, A) at ``solution`` (..., B, A, Q), and P(1), …, P(C-1), (C-1, ..., n)."""
        chances, log_total = softmax_with_zero(self._logits(solution))
        surprise = self._sum(log_total) - (self._target * solution).sum(axis=-1)
        penalty = 0.5 * ((solution - self._center) ** 2 / self._variance).sum(axis=-1)
        return surprise + penalty, chances[1:]

    def gradient(self, solution: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' gradients, (B, A, Q)."""
        return self._scores(chances) - self._target + (solution - self._center) / self._variance

    def hessian(self, chances: np.ndarray) -> np.ndarray:
        """Return the objectives' second derivatives, (B, A, Q, Q), at the probabilities ``chances`` (C-1, n)."""
        n_logits, size = self._sizes
        first, second = np.triu_indices(size)
        found = np.empty((*self._center.shape[:-1], n_logits, size, n_logits, size))
        pairs = self._columns[first] * self._columns[second]  # (K(K+1)/2, n)
        for c in range(n_logits):
            for d in range(c + 1):
                block = self._sum(chances[c] * ((c == d) - chances[d]) * pairs)  # (K(K+1)/2, B, A)
                block = np.moveaxis(block, 0, -1)
                for left, right in ((c, d), (d, c)):
                    found[..., left, first, right, second] = found[..., left, second, right, first] = block
        flat = found.reshape(*self._center.shape, -1)
        diagonal = np.arange(flat.shape[-1])
        flat[..., diagonal, diagonal] += 1 / self._variance
        return flat

    def _logits(self, solution: np.ndarray) -> np.ndarray:
        """Return x_i·β_c, (..., B, A, Q) to (C-1, ..., n)."""
        leading = solution.shape[: solution.ndim - self._center.ndim]
        parts = np.moveaxis(solution.reshape(*leading, -1, *self._sizes), (-2, -1), (0, 1))  # (C-1, K, ..., B·A)
        found = np.zeros((self._sizes[0], *leading, self._columns.shape[1]))
        for part, column in zip(parts.swapaxes(0, 1), self._columns, strict=True):
            found += np.repeat(part, self._counts, axis=-1) * column
        return found

    def _scores(self, chances: np.ndarray) -> np.ndarray:
        """Return Σ_i chances_ci·x_i, (C-1, n) to (B, A, Q)."""
        sums = self._sum(chances[:, None] * self._columns)  # (C-1, K, B, A)
        return np.moveaxis(sums, (0, 1), (-2, -1)).reshape(self._center.shape)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of each problem, (..., n) to (..., B, A)."""
        found = np.zeros((*values.shape[:-1], len(self._counts)))
        if len(self._some):
            found[..., self._some] = np.add.reduceat(values, self._starts, axis=-1)
        return found.reshape(*values.shape[:-1], *self._center.shape[:-1])

    def _rounding(self) -> np.ndarray:
        sizes = self._sum(np.abs(self._columns))  # (K, B, A)
        return 1e-14 * np.tile(np.moveaxis(sizes, 0, -1), self._sizes[0])

    def _each(self, flags: np.ndarray) -> np.ndarray:
        return np.repeat(flags.ravel(), self._counts)  # (n,)
