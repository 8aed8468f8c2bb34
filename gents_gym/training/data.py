"""Holds training data: rows of single actions, from arrays or logs, and sequences resampled from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gents_gym.checks import InputError, check_actions, check_array, check_count
from gents_gym.files import digest
from gents_gym.likelihoods import Likelihood, infer_likelihood
from gents_gym.logs.record import Logs
from gents_gym.training.config import TrainConfig
from gents_gym.types import ActionRows, TaskDistribution, Tasks, set_likelihood

CONTEXT_TASKS = 50  # tasks of an environment whose context sequences are used in training


class Batch(NamedTuple):
    """Sequences of n actions; short ones are padded at their end with rows of weight 0."""

    action_features: Tensor  # (n, F)
    contexts: Tensor  # (n, T, D)
    outcomes: Tensor  # (n, T)
    weights: Tensor  # (n, T)


@dataclass(frozen=True, eq=False)
class RowSets:
    """The rows of N actions, any number of each: rows ``offsets[i]`` to ``offsets[i+1]`` belong to action i."""

    action_features: np.ndarray  # (N, F) float32
    contexts: np.ndarray  # (M, D) float32
    outcomes: np.ndarray  # (M,) float32
    offsets: np.ndarray  # (N+1,)
    space: str | None = None  # the name of the space if action features are embeddings
    likelihood: Likelihood = None  # type: ignore[assignment]  # what an outcome is; None: the outcomes decide
    task_contexts: tuple[np.ndarray, ...] = ()  # contexts of whole tasks in order, (T, D) each, if known
    # How a log's columns were mapped to the arrays, as JSON; None: the rows came as arrays.
    columns: Mapping[str, Any] | None = None
    tasks: np.ndarray | None = None  # the index of each action's task, (N,), if tasks are known
    decisions: np.ndarray | None = None  # the index of each row's decision in its task, (M,), if tasks are known

    def __post_init__(self) -> None:
        """Check the shapes and values that training relies on."""
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
        if (self.tasks is None) != (self.decisions is None):
            raise InputError("tasks and decisions must be given together, got one of them")
        if self.tasks is not None:
            arrays["tasks"] = check_array("tasks", self.tasks, "(N,)", (len(features),), np.int64)
            arrays["decisions"] = check_array("decisions", self.decisions, "(M,)", (len(contexts),), np.int64)
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
        """Make row sets from rectangular arrays; nothing is copied."""
        n_actions, n_rows, size = rows.contexts.shape
        offsets = np.arange(n_actions + 1) * n_rows
        contexts, outcomes = rows.contexts.reshape(-1, size), rows.outcomes.reshape(-1)
        return cls(rows.action_features, contexts, outcomes, offsets, space=rows.space, likelihood=rows.likelihood)

    @classmethod
    def from_logs(cls, logs: Logs) -> "RowSets":
        """Make row sets from a log, action by action, in order; actions without rows are left out."""
        counts = np.bincount(logs.actions, minlength=len(logs.action_features))
        order = np.argsort(logs.actions, kind="stable")
        columns = {} if logs.encoding is None else logs.encoding.to_json()
        rows = cls(
            logs.action_features[counts > 0],
            logs.contexts[order],
            logs.outcomes[order],
            np.concatenate([[0], np.cumsum(counts[counts > 0])]),
            likelihood=logs.likelihood,
            task_contexts=() if logs.tasks is None else tuple(logs.contexts[rows] for rows, _ in logs.streams()),
            columns={**columns, "sha256": logs.content_hash},
        )
        if logs.tasks is None:
            return rows
        decisions = np.empty(len(logs), np.int64)
        for own, _ in logs.streams():
            decisions[own] = np.arange(len(own))
        return replace(rows, tasks=logs.tasks[order][rows.offsets[:-1]], decisions=decisions[order])

    @classmethod
    def from_tasks(cls, tasks: Tasks) -> "RowSets":
        """Make row sets from all rows of all actions of whole tasks."""
        n_tasks, n_rows, n_actions = tasks.outcomes.shape
        each = n_tasks * n_actions
        contexts = np.repeat(tasks.contexts, n_actions, axis=0).reshape(-1, tasks.context_dim)  # (B·A·T, D)
        return cls(
            tasks.action_features.reshape(each, -1),
            contexts,
            tasks.outcomes.swapaxes(1, 2).reshape(-1),
            np.arange(each + 1) * n_rows,
            space=tasks.space,
            likelihood=tasks.likelihood,
            tasks=np.repeat(np.arange(n_tasks), n_actions),
            decisions=np.tile(np.arange(n_rows), each),
        )

    def choose(self, actions: np.ndarray) -> "RowSets":
        """Return the row sets of only these ``actions`` (n,)."""
        check_actions(actions, check_count("actions", actions), len(self))
        counts = np.diff(self.offsets)[actions]
        rows = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in actions])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        arrays = (self.action_features[actions], self.contexts[rows], self.outcomes[rows], offsets)
        chosen = RowSets(*arrays, self.space, self.likelihood, self.task_contexts, self.columns)
        if self.tasks is None or self.decisions is None:
            return chosen
        return replace(chosen, tasks=self.tasks[actions], decisions=self.decisions[rows])

    def resample(
        self, actions: np.ndarray, length: int, replacement: bool, rng: np.random.Generator, ordered: bool = False
    ) -> Batch:
        """Return a fresh sequence of each of ``actions``.

        With replacement it is the paper's bootstrap: ``length`` rows, however many the action has. Without, it is a
        permutation of the action's own rows, cut at ``length``, so no row appears twice in a sequence. With
        ``ordered``, the chosen rows keep their original order.
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
        if ordered:
            for row, size in zip(picked, lengths, strict=True):
                row[:size].sort()
        return self._batch(actions, picked, lengths)

    def sequences(self, actions: np.ndarray, length: int) -> Batch:
        """Return the first ``length`` rows of each of ``actions``, in order."""
        lengths = np.minimum(np.diff(self.offsets)[actions], length)
        steps = np.arange(int(lengths.max()))
        return self._batch(actions, np.minimum(steps, lengths[:, None] - 1), lengths)

    def _batch(self, actions: np.ndarray, picked: np.ndarray, lengths: np.ndarray) -> Batch:
        rows = self.offsets[actions][:, None] + picked  # (n, T)
        weights = np.arange(picked.shape[1]) < lengths[:, None]
        arrays = (self.action_features[actions], self.contexts[rows], self.outcomes[rows], weights)
        return Batch(*(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)) for array in arrays))


def draw_rows(distribution: TaskDistribution, config: TrainConfig, actions: int, rows: int) -> tuple[RowSets, RowSets]:
    """Return training rows of a distribution's train split, with contexts of whole tasks, and its validation rows.

    For a training on whole tasks, these are all rows of as many tasks as it takes to have ``actions`` actions.
    """
    tasks = distribution.sample(config.seed, range(CONTEXT_TASKS), "train")
    if config.whole_tasks:
        found = []
        for count, split in ((actions, "train"), (config.validation_actions, "validation")):
            n_tasks = -(-count // tasks.n_actions)
            found.append(RowSets.from_tasks(distribution.sample(config.seed, range(n_tasks), split)))
        return replace(found[0], task_contexts=tuple(tasks.contexts)), found[1]
    seen = distribution.sample_actions(config.seed, range(actions), rows, "train")
    held_out = distribution.sample_actions(config.seed, range(config.validation_actions), config.horizon, "validation")
    return replace(RowSets.from_rows(seen), task_contexts=tuple(tasks.contexts)), RowSets.from_rows(held_out)
