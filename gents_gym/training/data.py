"""Training data: row sets of single actions, from arrays or from users' logs, and the sequences resampled from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
from torch import Tensor

from gents_gym.checks import InputError, check_actions, check_array, check_count
from gents_gym.files import check_file, digest
from gents_gym.likelihoods import Likelihood, infer_likelihood
from gents_gym.parquet import read_parquet
from gents_gym.training.config import TrainConfig
from gents_gym.types import ActionRows, TaskDistribution, set_likelihood

CONTEXT_TASKS = 50  # tasks of an environment whose context sequences training looks at
KEYS = ("task", "action")  # the columns that name an action; "task" may be absent from both files


class Batch(NamedTuple):
    """Sequences of n actions; rows of weight 0 pad short ones at their end."""

    action_features: Tensor  # (n, F)
    contexts: Tensor  # (n, T, D)
    outcomes: Tensor  # (n, T)
    weights: Tensor  # (n, T)


@dataclass(frozen=True, eq=False)
class RowSets:
    """The rows of N actions, as many as each has: rows ``offsets[i]`` to ``offsets[i+1]`` belong to action i."""

    action_features: np.ndarray  # (N, F) float32
    contexts: np.ndarray  # (M, D) float32
    outcomes: np.ndarray  # (M,) float32
    offsets: np.ndarray  # (N+1,)
    context_names: tuple[str, ...] = ()  # the columns that contexts came from, where there are names
    feature_names: tuple[str, ...] = ()  # and those of the action features
    space: str | None = None  # the name of the space that action features are embeddings in, where they are
    likelihood: Likelihood = None  # type: ignore[assignment]  # what an outcome is; None: the outcomes decide
    task_contexts: tuple[np.ndarray, ...] = ()  # contexts of whole tasks in their order, (T, D) each, if they are known

    def __post_init__(self) -> None:
        """Check what training relies on."""
        features = check_array("action_features", self.action_features, "(N, F)", (-1, -1))
        contexts = check_array("contexts", self.contexts, "(M, D)", (-1, -1))
        outcomes = check_array("outcomes", self.outcomes, "(M,)", (len(contexts),))
        if not len(features):
            raise InputError("there must be at least one action with rows, got none")
        offsets = check_array("offsets", self.offsets, "(N+1,)", (-1,), np.int64)
        whole = offsets.shape == (len(features) + 1,) and offsets[0] == 0 and offsets[-1] == len(contexts)
        if not whole or (np.diff(offsets) < 1).any():
            rule = f"N+1={len(features) + 1} rising numbers from 0 to M={len(contexts)}"
            raise InputError(f"offsets must be {rule}, so that every action has rows, got {offsets!r}")
        arrays = {"action_features": features, "contexts": contexts, "outcomes": outcomes, "offsets": offsets}
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        set_likelihood(self)

    def __len__(self) -> int:
        """Return N."""
        return len(self.action_features)

    @property
    def content_hash(self) -> str:
        """The sha256 of the rows' content."""
        arrays = (self.action_features, self.contexts, self.outcomes, self.offsets)
        declared = self.likelihood != infer_likelihood(self.outcomes)  # else the outcomes say it
        return digest(*arrays, np.array(str(self.likelihood))) if declared else digest(*arrays)

    @classmethod
    def from_rows(cls, rows: ActionRows) -> "RowSets":
        """Take rectangular rows; nothing is copied."""
        n_actions, n_rows, size = rows.contexts.shape
        offsets = np.arange(n_actions + 1) * n_rows
        contexts, outcomes = rows.contexts.reshape(-1, size), rows.outcomes.reshape(-1)
        return cls(rows.action_features, contexts, outcomes, offsets, space=rows.space, likelihood=rows.likelihood)

    def choose(self, actions: np.ndarray) -> "RowSets":
        """Return the row sets of ``actions`` (n,) alone."""
        check_actions(actions, check_count("actions", actions), len(self))
        counts = np.diff(self.offsets)[actions]
        rows = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in actions])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        arrays = (self.action_features[actions], self.contexts[rows], self.outcomes[rows], offsets)
        chosen = RowSets(*arrays, self.context_names, self.feature_names, self.space, self.likelihood)
        return replace(chosen, task_contexts=self.task_contexts)

    def resample(self, actions: np.ndarray, length: int, replacement: bool, rng: np.random.Generator) -> Batch:
        """Return a fresh sequence of each of ``actions``.

        With replacement it is the paper's bootstrap: ``length`` rows whatever the action has. Without, it is a
        permutation of the action's own rows, cut at ``length``: no row stands twice in a sequence.
        """
        counts = np.diff(self.offsets)[actions]
        if replacement:
            picked = (rng.random((len(actions), length)) * counts[:, None]).astype(np.int64)
            lengths = np.full(len(actions), length)
        else:
            lengths = np.minimum(counts, length)
            picked = np.zeros((len(actions), int(lengths.max())), np.int64)
            for i, (count, size) in enumerate(zip(counts, lengths, strict=True)):
                picked[i, :size] = rng.permutation(count)[:size]
        return self._batch(actions, picked, lengths)

    def sequences(self, actions: np.ndarray, length: int) -> Batch:
        """Return the first ``length`` rows of each of ``actions``, in their order."""
        lengths = np.minimum(np.diff(self.offsets)[actions], length)
        steps = np.arange(int(lengths.max()))
        return self._batch(actions, np.minimum(steps, lengths[:, None] - 1), lengths)

    def _batch(self, actions: np.ndarray, picked: np.ndarray, lengths: np.ndarray) -> Batch:
        rows = self.offsets[actions][:, None] + picked  # (n, T)
        weights = np.arange(picked.shape[1]) < lengths[:, None]
        arrays = (self.action_features[actions], self.contexts[rows], self.outcomes[rows], weights)
        return Batch(*(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)) for array in arrays))


def draw_rows(distribution: TaskDistribution, config: TrainConfig, actions: int, rows: int) -> tuple[RowSets, RowSets]:
    """Return training rows of a distribution's train split, with contexts of whole tasks, and its validation rows."""
    tasks = distribution.sample(config.seed, range(CONTEXT_TASKS), "train")
    seen = distribution.sample_actions(config.seed, range(actions), rows, "train")
    held_out = distribution.sample_actions(config.seed, range(config.validation_actions), config.horizon, "validation")
    return replace(RowSets.from_rows(seen), task_contexts=tuple(tasks.contexts)), RowSets.from_rows(held_out)


def read_logs(data: str | Path, action_features: str | Path, likelihood: Likelihood | None = None) -> RowSets:
    """Read logged rows and action features, each a Parquet or CSV file.

    Args:
        data: One row per decision, with the columns "task" and "action" (who was played), "outcome" (a number)
            and the context in all others.
        action_features: One row per action, with "task" and "action" and the features in all others.
            Where actions mean the same in every task, both files leave "task" out.
        likelihood: What an outcome is; None: Bernoulli if all outcomes are 0 or 1, else Gaussian.
    """
    log, features = _read("data", data), _read("action_features", action_features)
    keys = [key for key in KEYS if key in log.column_names or key in features.column_names]
    for name, path, table, needed in (
        ("data", data, log, [*keys, "action", "outcome"]),
        ("action_features", action_features, features, [*keys, "action"]),
    ):
        missing = [column for column in dict.fromkeys(needed) if column not in table.column_names]
        if missing:
            raise InputError(f"{name} must have the column {missing[0]!r}, got '{path}' with {table.column_names}")
    names = [_key(table, keys, path) for table, path in ((features, action_features), (log, data))]
    index = {key: i for i, key in enumerate(names[0])}
    if len(index) < len(names[0]):
        twice = next(key for i, key in enumerate(names[0]) if index[key] != i)
        raise InputError(
            f"action_features must have each action once, got {_say(keys, twice)} twice in '{action_features}'"
        )
    unknown = next((key for key in names[1] if key not in index), None)
    if unknown is not None:
        raise InputError(f"data must name actions of action_features alone, got {_say(keys, unknown)} in '{data}'")
    owners = np.array([index[key] for key in names[1]], np.int64)
    counts = np.bincount(owners, minlength=len(index))
    if (counts == 0).any():
        lonely = names[0][int(np.argmin(counts))]
        raise InputError(f"data must have rows for every action, got none for {_say(keys, lonely)} in '{data}'")
    order = np.argsort(owners, kind="stable")
    outcomes = _numbers("data", data, log, ["outcome"])[:, 0]
    if likelihood is not None:
        likelihood.check(f"outcome in '{data}'", outcomes)
    context_names = tuple(c for c in log.column_names if c not in (*KEYS, "outcome"))
    feature_names = tuple(c for c in features.column_names if c not in KEYS)
    contexts = _numbers("data", data, log, context_names)
    z = _numbers("action_features", action_features, features, feature_names)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = (z, contexts[order], outcomes[order], offsets)
    read = RowSets(*rows, context_names, feature_names, likelihood=likelihood)  # type: ignore[arg-type]
    return replace(read, task_contexts=_by_task(contexts, [key[0] for key in names[1]])) if "task" in keys else read


def _by_task(contexts: np.ndarray, tasks: list[str]) -> tuple[np.ndarray, ...]:
    """Return the contexts (M, D) of each task, in the order of its rows."""
    _, owners = np.unique(tasks, return_inverse=True)
    order = np.argsort(owners, kind="stable")
    return tuple(np.split(contexts[order], np.cumsum(np.bincount(owners))[:-1]))


def _read(name: str, path: str | Path) -> pa.Table:
    ids = pa.csv.ConvertOptions(column_types=dict.fromkeys(KEYS, pa.string()))  # 007 is not 7
    try:
        check_file("it", path)
        is_csv = str(path).endswith(".csv")
        table = pa.csv.read_csv(path, convert_options=ids) if is_csv else read_parquet(Path(path).read_bytes())
        twice = [column for column in table.column_names if table.column_names.count(column) > 1]
        if twice:
            raise ValueError(f"it has the column {twice[0]!r} twice")
        return table
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"{name} must be a Parquet or CSV file, got '{path}' ({str(error).splitlines()[0]})"
        ) from error


def _key(table: pa.Table, keys: list[str], path: str | Path) -> list[tuple[str, ...]]:
    """Return each row's (task, action), as texts."""
    columns = []
    for key in keys:
        values = table.column(key)
        if values.null_count or pa.types.is_nested(values.type):
            raise InputError(f"column {key!r} of '{path}' must hold an id in every row, got {values.type} with gaps")
        columns.append([str(value) for value in values.to_pylist()])
    return list(zip(*columns, strict=True))


def _say(keys: list[str], values: tuple[str, ...]) -> str:
    return ", ".join(f"{key} {value!r}" for key, value in zip(keys, values, strict=True))


def _numbers(name: str, path: str | Path, table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Return the columns as float32, (rows, columns)."""
    if not columns:
        raise InputError(f"{name} must have columns beside {', '.join(table.column_names)}, got none in '{path}'")
    arrays = []
    for column in columns:
        values = table.column(column)
        if not (
            pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)
        ):
            raise InputError(f"column {column!r} of '{path}' must hold numbers, got {values.type}")
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
            array = values.cast(pa.float64(), safe=False).to_numpy().astype(np.float32)
        arrays.append(check_array(f"column {column!r} of '{path}'", array, "(rows,)", (len(table),)))
    return np.stack(arrays, axis=1)
