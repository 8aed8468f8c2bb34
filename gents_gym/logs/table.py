"""Reads tables of logs: CSV and Parquet files, and tables in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gents_gym.checks import InputError
from gents_gym.files import check_file
from gents_gym.parquet import read_parquet

SHOWN = 5  # lines that a message names


@dataclass(frozen=True, eq=False)
class LogTable:
    """A table with the name that messages give it."""

    table: pa.Table
    name: str
    is_csv: bool = False
    rows: np.ndarray | None = None  # where the rows are in the file, if only some were taken; None: all

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.table)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column; texts in a dictionary are texts."""
        values = self.table.column(name)
        return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values

    def take(self, rows: np.ndarray) -> "LogTable":
        """Return a table of some of the rows, which messages still name by their places in the whole one."""
        places = rows if self.rows is None else self.rows[rows]
        return replace(self, table=self.table.take(rows), rows=places)

    def where(self, rows: np.ndarray) -> str:
        """Return where rows are: lines of a CSV file, whose first has the names, or rows counted from 0."""
        rows = rows if self.rows is None else self.rows[rows]
        unit, first = ("line", 2) if self.is_csv else ("row", 0)
        shown = ", ".join(str(row + first) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        return f"{unit}{'s' if len(rows) > 1 else ''} {shown}{more}"

    def first_odd(self, column: str, read: Callable[[Any], Any]) -> str:
        """Return the first value of a column that ``read`` cannot read, and where it is; the column's type if none."""
        values = self.column(column)
        for row, value in enumerate(values.to_pylist()):
            try:
                read(value)
            except (TypeError, ValueError):
                return f"{value!r} in {self.where(np.array([row]))}"
        return str(values.type)

    def missing(self, column: str) -> np.ndarray:
        """Return the rows of a column without a value, NaN included."""
        values = self.column(column)
        gaps = pc.is_null(values, nan_is_null=True) if pa.types.is_floating(values.type) else pc.is_null(values)
        return np.flatnonzero(gaps.to_numpy())

    def check_complete(self, columns: Sequence[str]) -> None:
        """Raise unless the columns have a value in every row."""
        gaps = {column: rows for column in columns if len(rows := self.missing(column))}
        if gaps:
            found = "; ".join(f"{column!r} in {self.where(rows)}" for column, rows in gaps.items())
            rule = f"every row of {self.name} must have a value in the columns that are used"
            raise InputError(f"{rule}, got none for {found}: fill them in, or leave rows or columns out")

    def check_rows(self) -> None:
        """Raise unless there are rows."""
        if not len(self):
            raise InputError(f"{self.name} must have rows, got none")


def read_table(name: str, data: Any, ids: Sequence[str | None] = ()) -> LogTable:
    """Read a table.

    Args:
        name: The argument's name, for the errors.
        data: A CSV or Parquet file, a pyarrow table, or a pandas data frame.
        ids: Columns of a CSV file that are ids, not numbers: 007 is not 7.
    """
    try:
        if isinstance(data, str | Path):
            return _unique(LogTable(_read(data, ids), f"'{data}'", _is_csv(data)))
        table = data if isinstance(data, pa.Table) else pa.Table.from_pandas(data, preserve_index=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        got = f"'{data}'" if isinstance(data, str | Path) else "a table"
        raise InputError(
            f"{name} must be a Parquet or CSV file, got {got} ({(str(error) or repr(error)).splitlines()[0]})"
        ) from error
    except (TypeError, AttributeError, ImportError) as error:
        rule = "a Parquet or CSV file, a pyarrow table or a pandas data frame"
        raise InputError(f"{name} must be {rule}, got {type(data).__name__}") from error
    return _unique(LogTable(table, f"the table {name!r}"))


def _is_csv(path: str | Path) -> bool:
    return str(path).lower().endswith(".csv")


def _read(path: str | Path, ids: Sequence[str | None]) -> pa.Table:
    check_file("it", path)
    if not _is_csv(path):
        return read_parquet(Path(path).read_bytes())
    types = {name: pa.string() for name in ids if name is not None}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = pa.csv.read_csv(path, convert_options=options)
    if table.num_columns == 1 and (other := {";", "\t"} & {*table.column_names[0]}):
        raise ValueError(f"it has one column; its names are separated by {min(other)!r}, which must be commas")
    return table


def _unique(found: LogTable) -> LogTable:
    twice = [column for column in found.columns if found.columns.count(column) > 1]
    if twice:
        raise InputError(f"{found.name} must have each column once, got {twice[0]!r} twice")
    return found
