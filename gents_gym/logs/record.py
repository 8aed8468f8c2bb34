"""The record of a log, and how a table with named roles becomes one."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from gents_gym.checks import InputError, check_actions, check_array
from gents_gym.files import digest
from gents_gym.likelihoods import Likelihood
from gents_gym.logs.encoding import Column, Encoding, encode, is_number, is_text, numbers
from gents_gym.logs.roles import UNIFORM, Found, Roles, find_columns
from gents_gym.logs.table import LogTable, read_table
from gents_gym.types import set_likelihood


@dataclass(frozen=True, eq=False)
class Logs:
    """n logged decisions, in the order of their time; what was played, in which context, and what came of it."""

    actions: np.ndarray  # (n,) numbers of actions, in [0, A)
    contexts: np.ndarray  # (n, D) float32
    outcomes: np.ndarray  # (n,) float32
    action_features: np.ndarray  # (A, F) float32
    action_ids: tuple[str, ...] = ()  # A names; with tasks, "task/action". Empty: their numbers
    propensities: np.ndarray | None = None  # (n,) float64 in (0, 1], of the played action; None: not known
    times: np.ndarray | None = None  # (n,) float64, rising; None: the rows are in their order
    tasks: np.ndarray | None = None  # (n,) numbers of tasks, in [0, B); each action is of one task. None: one task
    likelihood: Likelihood = None  # type: ignore[assignment]  # what an outcome is; None: the outcomes decide
    encoding: Encoding | None = None  # how columns became contexts and features; None: they were arrays
    found: Found | None = None  # the columns behind the arrays; None: they were arrays
    name: str = "logs"  # for messages

    def __post_init__(self) -> None:
        """Check the arrays against each other."""
        contexts = check_array("contexts", self.contexts, "(n, D)", (-1, -1))
        features = check_array("action_features", self.action_features, "(A, F)", (-1, -1))
        size = (len(contexts),)
        arrays = {"contexts": contexts, "action_features": features}
        arrays["outcomes"] = check_array("outcomes", self.outcomes, "(n,)", size)
        arrays["actions"] = check_actions(self.actions, len(contexts), len(features))
        for name, dtype in (("propensities", np.float64), ("times", np.float64), ("tasks", np.int64)):
            if (value := getattr(self, name)) is not None:
                arrays[name] = check_array(name, value, "(n,)", size, dtype)
        if not len(contexts):
            raise InputError("logs must have rows, got none")
        if "propensities" in arrays:
            check_propensities("propensities", arrays["propensities"], lambda row: f"row {row}")
        if "times" in arrays and (np.diff(arrays["times"]) < 0).any():
            raise InputError("times must rise from row to row, got one before its predecessor: sort the rows by time")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        ids = self.action_ids or tuple(str(action) for action in range(len(features)))
        if len(ids) != len(features):
            raise InputError(f"action_ids must be A={len(features)} names, got {len(ids)}")
        object.__setattr__(self, "action_ids", ids)
        set_likelihood(self)

    def __repr__(self) -> str:
        """Return a line with sizes, without arrays."""
        sizes = f"{len(self.action_ids)} actions, {self.contexts.shape[1]} context entries"
        features = f"{self.action_features.shape[1]} action features"
        known = "without" if self.propensities is None else "with"
        outcomes = f"{self.likelihood} outcomes, {known} propensities"
        return f"Logs({self.name}: {len(self)} rows, {sizes}, {features}, {outcomes})"

    def __len__(self) -> int:
        """Return n."""
        return len(self.contexts)

    @property
    def content_hash(self) -> str:
        """The sha256 of what was logged."""
        return digest(self.actions, self.contexts, self.outcomes, self.action_features)

    def choose(self, rows: np.ndarray) -> "Logs":
        """Return the log of some of the rows, in rising order; all actions stay in it."""
        parts = {name: array[rows] for name in ROWS if (array := getattr(self, name)) is not None}
        return replace(self, **parts)

    def streams(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each task, its rows and the actions that it has, in rising order."""
        if self.tasks is None:
            yield np.arange(len(self)), np.arange(len(self.action_features))
            return
        order = np.argsort(self.tasks, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(self.tasks[order])) + 1):
            yield rows, np.unique(self.actions[rows])


ROWS = ("actions", "contexts", "outcomes", "propensities", "times", "tasks")  # what has an entry for each row


def read_logs(
    data: Any,
    roles: Roles,
    *,
    action_table: Any = None,
    likelihood: Likelihood | None = None,
    encoding: Encoding | None = None,
) -> Logs:
    """Read a log; only columns with a role are taken.

    Args:
        data: A CSV or Parquet file, a pyarrow table or a pandas data frame, with one row for each decision.
        roles: The columns of action, outcome, context and so on.
        action_table: A table of the same kinds with one row for each action, which then has the action features, and
            the columns of action and task under the log's names. None: the log itself has them.
        likelihood: What an outcome is; None: Bernoulli if all outcomes are 0 or 1, else Gaussian.
        encoding: How a model reads the columns, which is followed; None: by what is in them.
    """
    table = read_table("data", data, (roles.action, roles.task))
    of_actions = None if action_table is None else read_table("action_table", action_table, (roles.action, roles.task))
    found = find_columns(roles, table.columns, None if of_actions is None else of_actions.columns)
    table.check_rows()
    table.check_complete([*found.used, *(found.action_features if of_actions is None else ())])
    keys = [name for name in (found.task, found.action) if name is not None]
    ids, actions, first = number_actions(table, keys)
    columns, contexts = encode(table, found.context, None if encoding is None else encoding.contexts)
    known = None if encoding is None else encoding.action_features
    if of_actions is None:
        check_constant(table, found.action_features, actions, first, ids)
        feature_columns, features = encode(table.take(first), found.action_features, known)
    else:
        feature_columns, features = join_features(of_actions, keys, found.action_features, ids, known)
    outcomes = numbers(table, found.outcome).astype(np.float32)
    if likelihood is not None:
        likelihood.check(f"outcome in {table.name}", outcomes)
    logs = Logs(
        actions,
        contexts,
        outcomes,
        features,
        tuple("/".join(key) for key in ids),
        _propensities(table, found, roles, actions, ids),
        None,
        _tasks(ids, actions) if found.task is not None else None,
        likelihood,  # type: ignore[arg-type]
        Encoding(columns, feature_columns),
        found,
        table.name[1:-1] if table.name.startswith("'") else table.name,  # a file's has quotes
    )
    return logs if found.time is None else _sort(logs, read_times(table, found.time))


def check_propensities(name: str, values: np.ndarray, where: Any) -> None:
    """Raise unless all are in (0, 1]; ``where`` names a row."""
    odd = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(odd):
        raise InputError(f"{name} must lie in (0, 1], got {values[odd[0]]:g} in {where(odd[0])}")


def number_actions(table: LogTable, keys: Sequence[str]) -> tuple[list[tuple[str, ...]], np.ndarray, np.ndarray]:
    """Return the ids of actions in the order of their first rows, each row's action (n,), and the first rows (A,)."""
    codes = np.zeros(len(table), np.int64)
    texts = []
    for key in keys:
        values = table.column(key)
        if pa.types.is_nested(values.type):
            raise InputError(f"column {key!r} of {table.name} must hold an id in every row, got {values.type}")
        encoded = values.combine_chunks().dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        texts.append(([str(value) for value in encoded.dictionary.to_pylist()], encoded.indices.to_numpy()))
    _, first, owners = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = first[order]
    ids = [tuple(names[indices[row]] for names, indices in texts) for row in first]
    return ids, place[owners.reshape(-1)], first


def _tasks(ids: Sequence[tuple[str, ...]], actions: np.ndarray) -> np.ndarray:
    """Return each row's task, numbered in the order of the first rows."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(key[0], len(places)) for key in ids], np.int64)[actions]


def check_constant(
    table: LogTable, columns: Sequence[str], actions: np.ndarray, first: np.ndarray, ids: Sequence[tuple[str, ...]]
) -> None:
    """Raise unless every action feature is the same in all rows of an action."""
    for column in columns:
        values = table.column(column)
        codes = numbers(table, column) if is_number(values) else values.combine_chunks().dictionary_encode().indices
        seen = np.asarray(codes)
        odd = np.flatnonzero(seen != seen[first][actions])
        if len(odd):
            one, other = (values[int(row)].as_py() for row in (first[actions[odd[0]]], odd[0]))
            rule = f"column {column!r} of {table.name} must be the same in every row of an action"
            what = f"got {one!r} and {other!r} for action {'/'.join(ids[actions[odd[0]]])!r} in {table.where(odd[:1])}"
            raise InputError(f"{rule}, {what}: name it as context, or give each version an id of its own")


def join_features(
    table: LogTable,
    keys: Sequence[str],
    columns: Sequence[str],
    ids: Sequence[tuple[str, ...]],
    known: Sequence[Column] | None,
) -> tuple[tuple[Column, ...], np.ndarray]:
    """Return how features become numbers, and those of the logged actions, from a table with a row for each action."""
    missing = [key for key in keys if key not in table.columns]
    if missing:
        raise InputError(f"{table.name} must have the column {missing[0]!r}, got {', '.join(table.columns)}")
    table.check_rows()
    table.check_complete([*keys, *columns])
    listed, owners, first = number_actions(table, keys)
    if len(listed) < len(table):
        row = int(np.flatnonzero(first[owners] != np.arange(len(table)))[0])
        twice = "/".join(listed[owners[row]])
        raise InputError(
            f"{table.name} must have each action once, got {twice!r} again in {table.where(np.array([row]))}"
        )
    places = {key: i for i, key in enumerate(listed)}
    unknown = [key for key in ids if key not in places]
    if unknown:
        raise InputError(f"{table.name} must have the features of every action, got none for {'/'.join(unknown[0])!r}")
    return encode(table.take(np.array([places[key] for key in ids])), columns, known)


def _propensities(
    table: LogTable, found: Found, roles: Roles, actions: np.ndarray, ids: Sequence[tuple[str, ...]]
) -> np.ndarray | None:
    if found.propensity is not None:
        return read_propensities(table, found.propensity)
    if roles.propensity != UNIFORM:
        return None
    of_task = _tasks(ids, np.arange(len(ids))) if found.task is not None else np.zeros(len(ids), np.int64)
    return 1 / np.bincount(of_task)[of_task][actions]


def read_propensities(table: LogTable, column: str) -> np.ndarray:
    """Check that a column has probabilities in (0, 1]; return it, (rows,)."""
    values = numbers(table, column)
    check_propensities(f"column {column!r} of {table.name}", values, lambda row: table.where(np.array([row])))
    return values


def read_times(table: LogTable, column: str) -> np.ndarray:
    """Return times as numbers, dates in seconds."""
    values = _dates(table.column(column))
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy() / 1e6
    if not is_number(values):
        rule = f"column {column!r} of {table.name} must hold numbers or dates, as 2026-01-31 12:00:00"
        raise InputError(f"{rule}, got {table.first_odd(column, datetime.fromisoformat)}")
    return numbers(table, column)


def _dates(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as the dates that a CSV file's would be; the texts themselves if they are none."""
    if is_text(values):
        for unit, zone in product(("s", "ns"), (None, "UTC")):
            with suppress(pa.ArrowInvalid):
                return values.cast(pa.timestamp(unit, zone))
    return values


def _sort(logs: Logs, times: np.ndarray) -> Logs:
    order = np.argsort(times, kind="stable")
    return replace(logs.choose(order), times=times[order])
