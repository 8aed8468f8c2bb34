"""Turns labelled data sets into bandits: classes are actions, rows are contexts, and the right class pays 1."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gents_gym.checks import InputError, check_choice, check_count, check_integer, check_memory, check_number
from gents_gym.likelihoods import BERNOULLI, check_reward
from gents_gym.randomness import SPLITS, stream
from gents_gym.tasks.datasets import find_classes, load_table
from gents_gym.types import ActionRows, RewardFn, Tasks, identity

LONGEST = 2000  # decisions of a task
FAR = 5.0  # standard deviations at which a context's entries are clipped
TRAINING_SHARE = 0.8  # training share of the rows outside the test part; the others validate
ORDER = 0  # seed of the split into parts, independent of any stream's seed


@dataclass(frozen=True)
class Classification:
    """A labelled data set in random order: the agent sees a row, names a class, and learns whether it is right.

    The rows are divided once, by a fixed order within each class, into a train, a validation and a test part. A task of
    a split is a random order of that part's rows; if T exceeds their number, which only happens outside the test part,
    another order follows. Columns are standardised by mean and standard deviation of the train part and clipped at ±5;
    columns that are constant there are left out. Action features are one-hot.
    """

    dataset: str = "digits"  # a bundled set's name, the path of a CSV or Parquet file, or openml/NAME
    target: str | None = None  # for a file: the column to predict
    bins: int | None = None  # number of classes that a numeric target is divided into, by quantiles of the train part
    horizon: int | None = None  # T; None: the number of rows of the test part, at most 2,000
    test: float = 0.5  # share of the rows in the test part
    label_noise: float = 0.0  # probability that a row's right class is replaced by one of the A classes, uniformly
    reward_fn: RewardFn = identity  # R; "signed" makes a wrong class cost 1
    _contexts: np.ndarray = field(init=False, repr=False, compare=False)  # (n, D)
    _labels: np.ndarray = field(init=False, repr=False, compare=False)  # (n,)
    _names: np.ndarray = field(init=False, repr=False, compare=False)  # (A,)
    _parts: dict[str, np.ndarray] = field(init=False, repr=False, compare=False)  # rows by split

    def __post_init__(self) -> None:
        """Check the options, read the data and split it."""
        for option, share in (("test", self.test), ("label_noise", self.label_noise)):
            if check_number(option, share, 0, above=option == "test") >= 1:
                raise InputError(f"{option} must be below 1, got {share}")
        check_reward(self.reward_fn)
        table = load_table(self.dataset, self.target)
        parts = _divide(find_classes(table, None)[0] if self.bins is None else None, len(table.inputs), self.test)
        for split, rows in parts.items():
            if not len(rows):
                size = f"{len(table.inputs)} rows, with test={self.test}"
                raise InputError(f"dataset must have enough rows for a {split} part, got {size}")
        labels, names = find_classes(table, self.bins, parts["train"])
        contexts = _standardise(table.inputs, parts["train"])
        n_test = len(parts["test"])
        horizon = min(n_test, LONGEST) if self.horizon is None else check_integer("horizon", self.horizon, 1)
        if horizon > min(n_test, LONGEST):
            limit = f"the {n_test} rows of the test part" if n_test < LONGEST else f"{LONGEST}"
            raise InputError(f"horizon must be at most {limit}, got {horizon}")
        data = {"_contexts": contexts, "_labels": labels, "_names": np.array(names, object), "_parts": parts}
        for name, value in {"horizon": horizon, **data}.items():
            object.__setattr__(self, name, value)

    @property
    def n_actions(self) -> int:
        """A, the number of classes."""
        return len(self._names)

    @property
    def context_dim(self) -> int:
        """D."""
        return int(self._contexts.shape[1])

    @property
    def class_names(self) -> np.ndarray:
        """The names of the classes, (A,)."""
        return self._names

    def part(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the contexts (n, D) and classes (n,) of a split's rows."""
        rows = self._parts[check_choice("split", split, SPLITS)]
        return self._contexts[rows], self._labels[rows]

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        n_tasks, length = check_count("indices", indices), int(self.horizon or 0)
        n_bytes = 4 * n_tasks * (length * (self.context_dim + 2 * self.n_actions) + self.n_actions**2)
        check_memory(n_bytes, tasks=n_tasks, horizon=length, n_actions=self.n_actions)
        rngs = [stream(seed, "task", index, split) for index in indices]
        rows, shown = self._draw(rngs, split, length)  # (B, T) each
        right = np.eye(self.n_actions, dtype=np.float32)
        chances = (1 - self.label_noise) * right[self._labels[rows]] + self.label_noise / self.n_actions  # (B, T, A)
        return Tasks(
            np.broadcast_to(right, (n_tasks, *right.shape)),
            self._contexts[rows],
            right[shown],
            BERNOULLI.expected_reward(self.reward_fn, chances),
            oracle="logistic",
            reward_fn=self.reward_fn,
            texts=np.broadcast_to(self._names, (n_tasks, self.n_actions)),
            likelihood=BERNOULLI,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream; an action is a class."""
        n_actions, n_rows = check_count("indices", indices), check_integer("n_rows", n_rows, 1)
        check_memory(4 * n_actions * n_rows * self.context_dim, actions=n_actions, rows=n_rows)
        rngs = [stream(seed, "actions", index, split) for index in indices]
        picked = np.array([rng.integers(self.n_actions) for rng in rngs], np.int64)  # (N,)
        rows, shown = self._draw(rngs, split, n_rows)  # (N, R) each
        outcomes = (shown == picked[:, None]).astype(np.float32)
        features = np.eye(self.n_actions, dtype=np.float32)[picked]
        return ActionRows(features, self._contexts[rows], outcomes, self.reward_fn, likelihood=BERNOULLI)

    def _draw(self, rngs: Sequence[np.random.Generator], split: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the split's part in random order, and the classes that count as right, (B, n_rows) each."""
        part = self._parts[check_choice("split", split, SPLITS)]
        orders = -(-n_rows // len(part))
        rows = np.empty((len(rngs), n_rows), np.int64)
        shown = np.empty_like(rows)
        for i, rng in enumerate(rngs):
            rows[i] = np.concatenate([rng.permutation(part) for _ in range(orders)])[:n_rows]
            replaced, other = rng.random(n_rows) < self.label_noise, rng.integers(self.n_actions, size=n_rows)
            shown[i] = np.where(replaced, other, self._labels[rows[i]])
        return rows, shown


def _divide(labels: np.ndarray | None, n_rows: int, test: float) -> dict[str, np.ndarray]:
    """Return the rows of each split, (n,); every class is split in the same proportions."""
    order = np.random.default_rng(ORDER).permutation(n_rows)
    labels = np.zeros(n_rows, np.int64) if labels is None else labels
    place = np.empty(n_rows)  # rank of a row within its class, in [0, 1)
    for label in np.unique(labels):
        inside = order[labels[order] == label]
        place[inside] = (np.arange(len(inside)) + 0.5) / len(inside)
    learning = TRAINING_SHARE * (1 - test)
    ends = {"train": (0, learning), "validation": (learning, 1 - test), "test": (1 - test, 1)}
    return {split: np.flatnonzero((place >= low) & (place < high)) for split, (low, high) in ends.items()}


def _standardise(inputs: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Return the columns that vary among the rows ``learned``, standardised by them and clipped, (n, D) float32."""
    mean, spread = inputs[learned].mean(axis=0), inputs[learned].std(axis=0)
    varies = spread > 1e-9 * (1 + np.abs(mean))
    if not varies.any():
        raise InputError("dataset must have a column that varies within the train part, got none")
    scaled = (inputs[:, varies] - mean[varies]) / spread[varies]
    return scaled.clip(-FAR, FAR).astype(np.float32)
