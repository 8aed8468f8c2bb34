"""Tasks across data sets: models learn from some sets, and agents play others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gents_gym.checks import InputError, check_choice, check_count, check_integer, check_memory
from gents_gym.likelihoods import BERNOULLI, check_reward
from gents_gym.randomness import SPLITS, stream
from gents_gym.tasks.classification import Classification
from gents_gym.types import ActionRows, RewardFn, Tasks, identity

QUANTITIES = ("diabetes",)  # bundled sets whose target is cut into classes


class Part(NamedTuple):
    """The rows of a set that a split plays."""

    contexts: np.ndarray  # (n, D)
    rows: tuple[np.ndarray, ...]  # the rows of each class
    names: np.ndarray  # of the classes


@dataclass(frozen=True)
class Across:
    """Tasks of several labelled data sets, all with A actions and D context entries; see :class:`Classification`.

    A task is of one set, drawn from those of its split, and of A of its classes, in random order. Its rows are those
    of these classes, in random order. Contexts are the set's first D principal components, of variance 1 among the
    rows of its train part; a set with fewer columns has zeros behind them. The split "train" has the train parts of the
    sets ``train``, "validation" their validation parts, and "test" the test parts of the sets ``test``.
    """

    train: tuple[str, ...] = ("iris", "digits", "diabetes")  # sets that are learned from
    test: tuple[str, ...] = ("wine", "breast_cancer")  # sets that are played
    n_actions: int = 2  # A
    context_dim: int = 4  # D
    horizon: int = 50  # T
    reward_fn: RewardFn = identity  # R
    _parts: dict[str, list[Part]] = field(init=False, repr=False, compare=False)  # by split

    def __post_init__(self) -> None:
        """Check the options, and read the sets."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("context_dim", self.context_dim, 1)
        check_integer("horizon", self.horizon, 1)
        check_reward(self.reward_fn)
        for name in ("train", "test"):
            given = getattr(self, name)
            if not isinstance(given, tuple | list) or not given:
                raise InputError(f"{name} must be a list of data sets, at least one, got {given!r}")
            object.__setattr__(self, name, tuple(given))
        if both := sorted({*self.train} & {*self.test}):
            raise InputError(f"train and test must have no data set in common, got {', '.join(both)} in both")
        sources = {"train": self.train, "validation": self.train, "test": self.test}
        parts = {split: [self._read(name, split) for name in names] for split, names in sources.items()}
        object.__setattr__(self, "_parts", parts)

    def _read(self, name: str, split: str) -> Part:
        """Return a set's part of a split, in principal components."""
        table = Classification(name, bins=max(self.n_actions, 2) if name in QUANTITIES else None)
        if table.n_actions < self.n_actions:
            raise InputError(
                f"n_actions must be at most {table.n_actions}, the classes of {name}, got {self.n_actions}"
            )
        learned, (contexts, labels) = table.part("train")[0], table.part(split)
        rows = tuple(np.flatnonzero(labels == label) for label in range(table.n_actions))
        fewest = sum(sorted(map(len, rows))[: self.n_actions])
        if split == "test" and self.horizon > fewest:
            raise InputError(
                f"horizon must be at most {fewest}, the rows of {name}'s rarest classes, got {self.horizon}"
            )
        return Part(_project(contexts, learned, self.context_dim), rows, table.class_names)

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        n_tasks = check_count("indices", indices)
        self._check_memory(n_tasks, self.horizon)
        drawn = [self._draw(stream(seed, "task", index, split), split, self.horizon) for index in indices]
        contexts, outcomes, texts = (np.stack(each) for each in zip(*drawn, strict=True))
        return Tasks(
            np.ones((n_tasks, self.n_actions, 1), np.float32),
            contexts,
            outcomes,
            BERNOULLI.expected_reward(self.reward_fn, outcomes),
            oracle="logistic",
            reward_fn=self.reward_fn,
            texts=texts,
            likelihood=BERNOULLI,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream: the first of a task's."""
        n_actions, n_rows = check_count("indices", indices), check_integer("n_rows", n_rows, 1)
        self._check_memory(n_actions, n_rows)
        drawn = [self._draw(stream(seed, "actions", index, split), split, n_rows) for index in indices]
        contexts, outcomes, _ = (np.stack(each) for each in zip(*drawn, strict=True))
        features = np.ones((n_actions, 1), np.float32)
        return ActionRows(features, contexts, outcomes[:, :, 0], self.reward_fn, likelihood=BERNOULLI)

    def _check_memory(self, count: int, n_rows: int) -> None:
        check_memory(4 * count * n_rows * (self.context_dim + 2 * self.n_actions), tasks=count, rows=n_rows)

    def _draw(self, rng: np.random.Generator, split: str, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return contexts (T, D), outcomes (T, A) and names of classes (A,); further orders of the rows may follow."""
        parts = self._parts[check_choice("split", split, SPLITS)]
        part = parts[rng.integers(len(parts))]
        classes = rng.permutation(len(part.rows))[: self.n_actions]
        rows = np.concatenate([part.rows[label] for label in classes])
        right = np.repeat(np.arange(self.n_actions), [len(part.rows[label]) for label in classes])
        orders = [rng.permutation(len(rows)) for _ in range(-(-n_rows // len(rows)))]
        order = np.concatenate(orders)[:n_rows]
        return part.contexts[rows[order]], np.eye(self.n_actions, dtype=np.float32)[right[order]], part.names[classes]


def _project(contexts: np.ndarray, learned: np.ndarray, size: int) -> np.ndarray:
    """Return principal components with variance 1 among the rows ``learned``, (n, D) to (n, size)."""
    centre = learned.mean(axis=0, dtype=np.float64)
    _, spread, axes = np.linalg.svd(learned - centre, full_matrices=False)
    kept = min(size, int((spread > 1e-6 * spread[0]).sum()))
    axes = axes[:kept] * np.sign(axes[np.arange(kept), np.abs(axes[:kept]).argmax(axis=1)])[:, None]  # one of two signs
    found = np.zeros((len(contexts), size), np.float32)
    found[:, :kept] = (contexts - centre) @ axes.T / (spread[:kept] / np.sqrt(len(learned)))
    return found
