"""Columns as numbers: numbers are taken as they are, categories become one entry for each level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gents_gym.checks import InputError, check_number
from gents_gym.logs.table import LogTable

MOST_LEVELS = 50  # of a category; a column of more distinct texts is a text
FEW_LEVELS = 10  # that a category may have however few its rows are


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers."""

    name: str
    levels: tuple[str, ...] | None = None  # of a category; None: a number

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the entries that the column becomes."""
        return (self.name,) if self.levels is None else tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, role: str, value: Any) -> list[float]:
        """Return the entries of one value; ``role`` is for the errors."""
        name = f"column {self.name!r} of {role}"
        if self.levels is None:
            return [check_number(name, float(value) if isinstance(value, bool | np.bool_) else value)]
        if not isinstance(value, str) or value not in self.levels:
            raise InputError(f"{name} must have a level that the model knows, {', '.join(self.levels)}, got {value!r}")
        return [float(level == value) for level in self.levels]

    def __str__(self) -> str:
        """Return the name, with the levels of a category behind it."""
        return self.name if self.levels is None else f"{self.name} (one-hot: {', '.join(self.levels)})"


@dataclass(frozen=True)
class Encoding:
    """How the columns of a log became contexts and action features; a model keeps it as JSON."""

    contexts: tuple[Column, ...]
    action_features: tuple[Column, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            role: [
                {"name": column.name} | ({"levels": list(column.levels)} if column.levels else {}) for column in part
            ]
            for role, part in (("contexts", self.contexts), ("action_features", self.action_features))
        }

    @classmethod
    def from_json(cls, value: Any) -> "Encoding":
        """Return what :meth:`to_json` wrote; a name alone is a number's. Raises if it is something else."""
        try:
            return cls(*(tuple(_column(one) for one in value[role]) for role in ("contexts", "action_features")))
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"columns of a model must be names with levels, got {value!r}") from error


def _column(value: Any) -> Column:
    if isinstance(value, str):
        return Column(value)
    levels = value.get("levels")
    named = isinstance(value["name"], str)
    if not named or not (levels is None or all(isinstance(level, str) for level in levels)):
        raise TypeError(value)
    return Column(value["name"], None if levels is None else tuple(levels))


def encode(
    table: LogTable, names: Sequence[str], known: Sequence[Column] | None = None
) -> tuple[tuple[Column, ...], np.ndarray]:
    """Return how columns become numbers, and the numbers, (rows, entries) float32.

    Args:
        table: The table; no value may be missing.
        names: The columns.
        known: How a model reads them, which is followed; None: texts are categories of the levels that occur.
    """
    if known is not None and [column.name for column in known] != list(names):
        wanted = ", ".join(column.name for column in known) or "none"
        raise InputError(f"columns must be those of the model, {wanted}, got {', '.join(names) or 'none'}")
    columns, parts = [], [np.empty((len(table), 0), np.float32)]
    for i, name in enumerate(names):
        column, numbers = _encode(table, name, None if known is None else known[i])
        columns.append(column)
        parts.append(numbers)
    return tuple(columns), np.concatenate(parts, axis=1)


def encode_one(role: str, values: Mapping[Any, Any], columns: Sequence[Column]) -> np.ndarray:
    """Return the entries of values that are given by the names of a model's columns, in any order.

    Args:
        role: What they are, for the errors.
        values: A number or a level for each column.
        columns: How the model reads them.
    """
    names = [column.name for column in columns]
    rule = f"{role} must have a value for each column of the model, {', '.join(names)}"
    for name in names:
        if name not in values:
            raise InputError(f"{rule}, got none for {name!r}")
    for name in values:
        if name not in names:
            raise InputError(f"{rule}, got the unknown column {name!r}")
    return np.array([entry for column in columns for entry in column.encode(role, values[column.name])])


def is_text(values: pa.ChunkedArray) -> bool:
    """Return whether a column holds texts."""
    return pa.types.is_string(values.type) or pa.types.is_large_string(values.type)


def is_number(values: pa.ChunkedArray) -> bool:
    """Return whether a column holds numbers or truth values."""
    kind = values.type
    tests: tuple[Any, ...] = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def numbers(table: LogTable, name: str) -> np.ndarray:
    """Check that a column has finite numbers; return it, (rows,) float64."""
    values = table.column(name)
    if not is_number(values):
        raise InputError(f"column {name!r} of {table.name} must hold numbers, got {table.first_odd(name, float)}")
    found = values.cast(pa.float64(), safe=False).to_numpy()
    with np.errstate(over="ignore"):
        odd = np.flatnonzero(~np.isfinite(found.astype(np.float32)))
    if len(odd):
        raise InputError(
            f"column {name!r} of {table.name} must be finite, got {found[odd[0]]} in {table.where(odd[:1])}"
        )
    return found


def _encode(table: LogTable, name: str, known: Column | None) -> tuple[Column, np.ndarray]:
    values = table.column(name)
    if not is_text(values):
        if known is not None and known.levels is not None:
            raise InputError(f"column {name!r} of {table.name} must hold texts, as the model's, got {values.type}")
        if not is_number(values):
            rule = f"column {name!r} of {table.name} must hold numbers or categories"
            raise InputError(f"{rule}, got {values.type}: turn it into numbers first")
        return Column(name), numbers(table, name).astype(np.float32)[:, None]
    if known is None:
        known = Column(name, _levels(table, name, values))
    if known.levels is None:
        raise InputError(f"column {name!r} of {table.name} must hold numbers, as the model's, got texts")
    places: Mapping[str, int] = {level: i for i, level in enumerate(known.levels)}
    encoded = values.combine_chunks().dictionary_encode()
    seen = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy()
    for code, level in enumerate(seen):
        if level not in places:
            line = table.where(np.flatnonzero(codes == code)[:1])
            raise InputError(
                f"column {name!r} of {table.name} must have a level that the model knows, {', '.join(known.levels)}, "
                f"got {level!r} in {line}"
            )
    chosen = np.array([places[level] for level in seen], np.int64)[codes]
    return known, np.eye(len(places), dtype=np.float32)[chosen]


def _levels(table: LogTable, name: str, values: pa.ChunkedArray) -> tuple[str, ...]:
    """Return the levels of a category in order. Raises if there are so many that it is a text."""
    found = pc.unique(values).to_pylist()
    if len(found) > MOST_LEVELS or (len(found) > FEW_LEVELS and 2 * len(found) > len(values)):
        rule = f"column {name!r} of {table.name} must hold numbers or at most {MOST_LEVELS} categories"
        hint = "embed texts first and name the columns of numbers, or leave the column out"
        raise InputError(f"{rule}, got {len(found)} distinct texts in {len(values)} rows: {hint}")
    return tuple(sorted(found))
