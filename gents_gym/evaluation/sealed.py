"""Reads and writes sealed files: JSON objects and tables that carry the sha256 of their content.

A file that is damaged or not ours is named in an error instead of being used or overwritten.
"""

import hashlib
import io
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from gents_gym.checks import InputError
from gents_gym.drawing.style import SOFTWARE
from gents_gym.evaluation.grid import FORMAT
from gents_gym.files import digest, read_file
from gents_gym.parquet import read_parquet
from gents_gym.schema import check_schema

LABEL = b"gents_gym"  # key of the label in a Parquet file's schema


def seal(label: Mapping[str, Any], content: str = "") -> str:
    """Return the sha256 of a label and of the content that it labels."""
    return hashlib.sha256(json.dumps([label, content], sort_keys=True).encode()).hexdigest()


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as text, with its sha256."""
    return (json.dumps({**value, "sha256": seal(value)}, indent=2) + "\n").encode()


def read_json(path: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that :func:`json_bytes` wrote. Raises if it is damaged or does not match the schema."""
    try:
        data = read_file(path)
        value: dict[str, Any] = json.loads(data)
        del value["sha256"]
        whole = json_bytes(value) == data and value["format"] == FORMAT
        check_schema(value, {"format": str, **schema})
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise foreign(path) from error
    if not whole:
        raise foreign(path)
    return value


def table_bytes(table: pa.Table, label: Mapping[str, Any]) -> bytes:
    """Return a table as a Parquet file, with a label and the sha256 of both in its schema."""
    sealed = json.dumps({**label, "sha256": seal(label, _content(table))})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({LABEL: sealed}), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def read_table(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return a table that :func:`table_bytes` wrote, and its label. Raises if the file is damaged."""
    try:
        table = read_parquet(read_file(path))
        label = json.loads(table.schema.metadata[LABEL])
        claimed = label.pop("sha256")
        whole = claimed == seal(label, _content(table)) and label["format"] == FORMAT
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError, pa.ArrowException) as error:
        raise foreign(path) from error
    if not whole:
        raise foreign(path)
    return table, label


def _content(table: pa.Table) -> str:
    """Return the sha256 of the columns' names, types and values."""
    return digest(np.array([f"{field.name} {field.type}" for field in table.schema]), *_arrays(table))


def _arrays(table: pa.Table) -> Iterator[np.ndarray]:
    for column in table.columns:
        if pa.types.is_list(column.type):
            yield pc.list_value_length(column).to_numpy()
            column = pc.list_flatten(column)
        array = column.to_numpy()
        yield array.astype(str) if array.dtype == object else array


def foreign(path: Path) -> InputError:
    """Return the error for a file that is not ours."""
    return InputError(f"'{path}' is damaged or not of this evaluation: move it away, and start again")


def read_exactly(path: Path) -> dict[str, Any]:
    """Return a Parquet file's label. Raises if any byte differs from what this version writes."""
    table, label = read_table(path)
    if table_bytes(table, label) != read_file(path):
        raise foreign(path)
    return label


def check_figure(path: Path) -> None:
    """Raise if a PNG is not whole, or was not drawn by us."""
    try:
        data = io.BytesIO(read_file(path))
        # A warning: it is very large. No reader but PNG's is tried, whatever the file holds.
        with warnings.catch_warnings(action="error"), Image.open(data, formats=["PNG"]) as image:
            image.verify()  # the checksums of its parts
            ours = image.info.get("Software") == SOFTWARE
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError) as error:  # a broken PNG
        raise foreign(path) from error
    if not ours:
        raise foreign(path)
