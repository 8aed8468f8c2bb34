"""Reads labelled tables: scikit-learn's bundled sets, CSV and Parquet files, and OpenML sets."""

import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.files import as_path, read_file
from gents_gym.parquet import read_parquet

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
ENDINGS = (".csv", ".parquet")
OPENML = "openml/"  # prefix of OpenML names
LARGEST = 1e100  # largest number in a column: squares of larger ones may be infinite
MOST_CLASSES = 100  # most distinct numbers in a target that is treated as classes


class Table(NamedTuple):
    """Rows of numbers, each with a target."""

    inputs: np.ndarray  # (n, D) float64
    targets: np.ndarray  # (n,), numbers or texts
    names: tuple[str, ...] | None = None  # names of the classes 0, 1, …; None: the targets themselves name them


def load_table(dataset: str, target: str | None) -> Table:
    """Return the rows of a data set.

    Args:
        dataset: One of ``BUNDLED``, the path of a CSV or Parquet file, or "openml/NAME" or "openml/NAME/VERSION".
        target: The column to predict, for a file; None for other sets, which define their own.
    """
    if not isinstance(dataset, str):
        raise InputError(f"dataset must be the name of a data set or the path of a file, got {dataset!r}")
    if dataset.lower().endswith(ENDINGS):
        return _read_table(as_path("dataset", dataset), target)
    if Path(dataset).is_file():
        raise InputError(f"dataset must be a file that ends in {' or '.join(ENDINGS)}, got '{dataset}'")
    if target is not None:
        raise InputError(f"target must be None unless dataset is a CSV or Parquet file, got {target!r}")
    if dataset.startswith(OPENML):
        return _fetch(dataset)
    check_choice("dataset", dataset, (*BUNDLED, "PATH.csv", "PATH.parquet", f"{OPENML}NAME"))
    return _load_bundled(dataset)


@lru_cache(maxsize=len(BUNDLED))
def _load_bundled(name: str) -> Table:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    names = tuple(str(each) for each in found.target_names) if "target_names" in found else None
    return Table(found.data, found.target, names)


def _read_table(path: Path, target: str | None) -> Table:
    """Return the rows of a file: the column ``target``, and all others as numbers."""
    import pyarrow as pa
    from pyarrow import csv

    def read_csv(data: bytes) -> pa.Table:
        whole = csv.ReadOptions(use_threads=False)
        empty = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        return csv.read_csv(pa.BufferReader(data), read_options=whole, convert_options=empty)

    read: Callable[[bytes], pa.Table] = read_csv if path.suffix.lower() == ".csv" else read_parquet
    try:
        table = read(read_file(path))
    except (OSError, ValueError, KeyError) as error:  # pyarrow's are among these
        rule = "dataset must be a table with a row of column names"
        raise InputError(f"{rule}, got '{path}' ({' '.join(str(error).split())})") from error
    names = table.column_names
    if len(set(names)) < len(names):
        raise InputError(f"dataset must have columns of different names, got {', '.join(names)}")
    if target is None:
        raise InputError(f"target must name the column to predict, one of {', '.join(names)}, got None")
    check_choice("target, which must be a column:", target, names)
    if not table.num_rows or len(names) < 2:
        size = f"{table.num_rows} rows and {len(names) - 1} columns besides the target"
        raise InputError(f"dataset must have rows, and columns besides its target, got {size} in '{path}'")
    columns = {name: _column(name, table[name], name == target) for name in names}
    targets = columns.pop(target)
    return Table(np.stack([*columns.values()], axis=1).astype(np.float64), targets)


def _column(name: str, column: Any, is_target: bool) -> np.ndarray:
    """Return a column of a pyarrow table as numbers; the target may also be texts."""
    import pyarrow as pa

    if column.null_count:
        _refuse_missing(name, column.null_count)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_number or (is_target and is_text)):
        cure = "encode it as numbers, or take it out"
        raise InputError(f"column {name!r} must hold numbers{' or texts' * is_target}, got {kind}: {cure}")
    if is_text:
        return np.array(column.to_pylist(), np.str_)
    return _check_numbers(name, column.to_numpy().astype(np.float64))


def _check_numbers(name: str, values: np.ndarray) -> np.ndarray:
    if missing := int(np.isnan(values).sum()):
        _refuse_missing(name, missing)
    if (odd := np.abs(values) > LARGEST).any():
        raise InputError(f"column {name!r} must hold numbers within ±{LARGEST:g}, got {values[odd][0]:g}")
    return values


def _refuse_missing(name: str, count: int) -> None:
    rule = f"column {name!r} must have a value in every row"
    raise InputError(f"{rule}, got {count} missing ones: fill them in, or take the rows out")


def _fetch(dataset: str) -> Table:
    """Return an OpenML set, from scikit-learn's cache if it is there; nominal columns become one-hot."""
    from sklearn.datasets import fetch_openml

    name, _, version = dataset.removeprefix(OPENML).partition("/")
    if not name or not (version.isdecimal() or not version):
        raise InputError(f"dataset must be {OPENML}NAME or {OPENML}NAME/VERSION, got {dataset!r}")
    which = int(version) if version else "active"
    options = {"as_frame": False, "parser": "liac-arff", "n_retries": 1, "delay": 0.1}
    try:
        with warnings.catch_warnings():
            # scikit-learn warns that it tries again; if that fails too, the error says enough.
            warnings.filterwarnings("ignore", "Invalid cache|A network error")
            found = fetch_openml(name=name, version=which, **options)
    except OSError as error:
        where = f"OpenML cannot be reached ({' '.join(str(error).split())})"
        raise InputError(
            f"dataset {dataset!r} must be in scikit-learn's cache or come over a network: {where}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"dataset must be a table of OpenML's, got {dataset!r} ({' '.join(str(error).split())})"
        ) from error
    if found.target is None or np.ndim(found.target) != 1 or not isinstance(found.data, np.ndarray):
        raise InputError(f"dataset must be a dense table with one target, got {dataset!r}")
    categories = getattr(found, "categories", None) or {}
    parts = []
    for label, values in zip(found.feature_names, np.asarray(found.data, np.float64).T, strict=True):
        _check_numbers(label, values)
        count = len(categories.get(label) or ())
        parts.append(values[:, None] == np.arange(count) if count > 2 else values[:, None])
    targets = np.asarray(found.target)
    if targets.dtype == object:
        if missing := sum(value is None or value != value for value in targets):
            _refuse_missing("target", missing)
        targets = targets.astype(str)
    return Table(np.concatenate(parts, axis=1).astype(np.float64), targets)


def find_classes(table: Table, bins: int | None, learned: np.ndarray | None = None) -> tuple[np.ndarray, list[str]]:
    """Return each row's class, (n,) from 0 on, and the classes' names.

    Args:
        table: The rows.
        bins: Divide a numeric target into this many equally frequent classes; None: its values are classes.
        learned: The rows that determine the boundaries; None: all.
    """
    targets = table.targets
    if bins is not None:
        check_integer("bins", bins, 2)
        if targets.dtype.kind not in "biuf" or table.names is not None:
            raise InputError(f"bins must be None for a target of classes, got {bins}")
        known = targets if learned is None else targets[learned]
        edges = np.quantile(known, np.linspace(0, 1, bins + 1)[1:-1])
        if len(np.unique(np.searchsorted(edges, known))) < bins:
            raise InputError(f"bins must be few enough for the target's values, got {bins}, one of which is empty")
        bounds = ["…", *(f"{edge:.4g}" for edge in edges), "…"]
        return np.searchsorted(edges, targets), [f"{low} to {high}" for low, high in pairwise(bounds)]
    values, classes = np.unique(targets, return_inverse=True)
    if len(values) < 2:
        raise InputError(f"dataset must have two classes or more, got one, {values[0]}: there is nothing to choose")
    if targets.dtype.kind == "f" and table.names is None:
        if len(values) > MOST_CLASSES or (values != np.round(values)).any():
            rule = "bins must be given if the target is a quantity"
            raise InputError(f"{rule}, as in bins=5, got None for {len(values)} different numbers")
        values = values.astype(np.int64)
    if len(values) > len(targets) // 2:
        raise InputError(f"dataset must have fewer classes than half its rows, got {len(values)} of {len(targets)}")
    names = table.names or tuple(str(value) for value in values)
    return classes, [names[i] for i in range(len(values))]
