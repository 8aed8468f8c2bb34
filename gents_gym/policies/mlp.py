"""Fits a small network for each task and action."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gents_gym.checks import InputError, check_contexts, check_flag, check_integer, check_number, check_reward_fn
from gents_gym.likelihoods import Bernoulli
from gents_gym.policies.binary import BinaryPolicy, BinaryTable
from gents_gym.policies.mlp_kernel import GROUP, network_logits, train_networks
from gents_gym.types import RewardFn, identity


@dataclass(frozen=True, eq=False)
class MLPPolicy(BinaryPolicy):
    """Fitted networks of one hidden layer."""

    units: np.ndarray  # (B, A, W, K+2): each hidden unit's bias, weights of the context, weight in the output
    biases: np.ndarray  # (B, A), of the outputs
    epochs: np.ndarray  # (B, A): how long each was trained
    context_dim: int  # D; weights beyond it, up to K, are zeros

    def logits(self, contexts: np.ndarray) -> np.ndarray:
        """Return the log odds, (B, T, D) to (B, T, A), or (B, D) to (B, 1, A)."""
        contexts = check_contexts(contexts, len(self.units), self.context_dim)
        return network_logits(_padded(contexts), self.units, self.biases)


@dataclass(frozen=True)
class MLP:
    """scikit-learn's default ``MLPClassifier`` for each task and action, all trained by one compiled loop.

    One hidden layer of rectified units, Adam on the log loss with an L2 penalty, the rows in a new order in each epoch,
    until the loss of ``patience`` epochs is no better by ``tolerance``. The start and the orders come from ``seed``, so
    a table has one fitted policy. It takes binary outcomes; only contexts are features.

    If a table like this one was fitted before, a short training ends at nearly the same policy. It also begins at the
    same initial weights, because networks that continue from table to table drift away from a fresh fit. With ``full``
    there is one fitting rule for all tables, as Proposition 1 and Theorem 1 assume.
    """

    likelihoods: ClassVar[tuple[type, ...]] = (Bernoulli,)

    width: int = 100  # hidden units
    alpha: float = 1e-4  # L2 penalty of all weights, named as in scikit-learn
    learning_rate: float = 1e-3  # learning rate of Adam
    batch: int = 200  # rows per step
    max_epochs: int = 200  # epochs from scratch
    full: bool = False  # train every table from scratch, even if an earlier solution is given
    short_epochs: int = 15  # of a short training: as far a way in fewer and longer steps
    short_batch: int = 100
    short_learning_rate: float = 1e-2
    tolerance: float = 1e-4  # what counts as a better loss
    patience: int = 10  # epochs without a better loss before training stops
    seed: int = 0  # seed of the initial weights and of the row orders
    reward_fn: RewardFn = identity  # R of the outcomes 0 and 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_reward_fn(self.reward_fn)
        for name in ("width", "batch", "max_epochs", "short_epochs", "short_batch", "patience"):
            check_integer(name, getattr(self, name), 1)
        check_integer("seed", self.seed, 0)
        check_flag("full", self.full)
        for name in ("learning_rate", "short_learning_rate"):
            check_number(name, getattr(self, name), 0, above=True)
        for name in ("alpha", "tolerance"):
            check_number(name, getattr(self, name), 0)

    def fit(
        self,
        contexts: np.ndarray,
        outcomes: np.ndarray,
        warm_start: MLPPolicy | None = None,
        weights: np.ndarray | None = None,
    ) -> MLPPolicy:
        """Train B·A networks.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A), each 0 or 1.
            warm_start: An earlier solution of a similar table, which makes a short training enough, unless ``full``.
            weights: (B, T, A), each 0 or 1, or None for ones; a zero drops the row.
        """
        table = BinaryTable(contexts, outcomes, weights)
        if table.weights is not None and not ((table.weights == 0) | (table.weights == 1)).all():
            raise InputError("weights must be 0 or 1 for the MLP policy class, got others")
        constant = table.constants()
        x = _padded(table.contexts)
        units, biases = self._start(table, x.shape[2])
        epochs, batch, rate = self.max_epochs, self.batch, self.learning_rate
        if warm_start is not None and not self.full:
            epochs, batch, rate = self.short_epochs, self.short_batch, self.short_learning_rate
        uniform = np.random.default_rng([self.seed, 1]).random((x.shape[1], epochs))
        y, counted = np.ascontiguousarray(table.outcomes.swapaxes(1, 2)), np.zeros((0, 0, 0), bool)
        if table.weights is not None:
            counted = np.ascontiguousarray(table.weights.swapaxes(1, 2) > 0)
        rule = (self.alpha, rate, min(batch, x.shape[1]), self.tolerance, self.patience)
        took = train_networks(x, y, counted, np.isnan(constant), units, biases, uniform, *rule)
        return MLPPolicy(units, biases, took, table.contexts.shape[2], constant=constant, reward_fn=self.reward_fn)

    def _start(self, table: BinaryTable, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the initial weights, (B, A, W, size+2) and (B, A): each action's own draw."""
        n_tasks, _, n_context = table.contexts.shape
        shape = (n_tasks, table.outcomes.shape[2], self.width, size + 2)
        rng = np.random.default_rng([self.seed, 0])
        inner, outer = np.sqrt(6 / (n_context + self.width)), np.sqrt(6 / (self.width + 1))  # Glorot's bounds
        units = np.zeros(shape[1:], np.float32)
        units[..., : n_context + 1] = rng.uniform(-inner, inner, (*shape[1:3], n_context + 1))
        units[..., -1] = rng.uniform(-outer, outer, shape[1:3])
        biases = rng.uniform(-outer, outer, shape[1]).astype(np.float32)
        return np.tile(units, (n_tasks, 1, 1, 1)), np.tile(biases, (n_tasks, 1))


def _padded(contexts: np.ndarray) -> np.ndarray:
    """Return the contexts with zeros up to a multiple of ``GROUP`` features, (B, T, D) to (B, T, K)."""
    n_tasks, n_rows, size = contexts.shape
    padded = np.zeros((n_tasks, n_rows, -(-size // GROUP) * GROUP), np.float32)
    padded[..., :size] = contexts
    return padded
