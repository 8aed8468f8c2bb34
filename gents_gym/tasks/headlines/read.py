"""Reads the distinct headlines of a file: MIND's news.tsv, CSV, TSV, JSON or plain lines."""

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.files import as_path

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".txt": "lines"}
COLUMNS = ("headline", "title")  # names tried if no column is given
MIND_TITLE = 3  # column of the title in news.tsv: id, category, subcategory, title, abstract, url, …
SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate, which JSON can hold and text files cannot
MIND_ROW = re.compile(r"N\d+\t[^\t]*\t[^\t]*\t")


def read_headlines(
    path: str | Path, format: str = "auto", column: str | None = None, max_length: int = 500
) -> tuple[list[str], dict[str, int]]:
    """Return a file's distinct headlines in order, and the numbers of rows read, empty and repeated.

    Headlines that differ only in case, spacing or Unicode form count as one; the first spelling is kept.

    Args:
        path: The file, in UTF-8.
        format: "mind", "csv", "tsv", "jsonl", "lines", or "auto": by the name's ending, and by the first line. A file
            of JSON may also be one array of objects.
        column: The column of a CSV, TSV or JSON file, in any case; None: "headline" or "title".
        max_length: A longer headline is an error, because it is most likely from another column.
    """
    check_integer("max_length", max_length, 1)
    lines = _lines(as_path("headlines", path))
    if check_choice("format", format, ("auto", "mind", "csv", "tsv", "jsonl", "lines")) == "auto":
        format = _guess(Path(path), lines)
    if column is not None and format in ("mind", "lines"):
        raise InputError(f"column must be left out for the format {format}, got {column!r}")
    readers = {"mind": _mind, "csv": _table, "tsv": _table, "jsonl": _json, "lines": _plain}
    found: dict[str, str] = {}
    counts = {"rows": 0, "empty": 0, "repeated": 0}
    for place, raw in readers[format](lines, format, column, str(path)):
        text = " ".join(unicodedata.normalize("NFC", raw).split())
        if len(text) > max_length:
            rule = f"headlines must have at most {max_length} characters, got {len(text)} in {place} of '{path}'"
            raise InputError(f"{rule}: name the right --column or --format, or raise --max-length")
        key = unicodedata.normalize("NFKC", text).casefold()
        counts["rows"] += 1
        counts["empty"] += not text
        counts["repeated"] += bool(text) and key in found
        if text:
            found.setdefault(key, text)
    return list(found.values()), counts


def _lines(path: Path) -> list[str]:
    """Return the file's lines. Only a newline ends one: titles contain other line-break characters of Unicode."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"headlines must be a readable file, got '{path}' ({error.strerror})") from error
    try:
        text, bad = data.decode("utf-8-sig"), data.find(b"\0")  # English in UTF-16 decodes, but contains zeros
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        where = f"byte 0x{data[bad]:02x} in line {1 + data.count(10, 0, bad)} of '{path}'"
        raise InputError(f"headlines must be UTF-8, got {where}: convert it first, for instance with iconv")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _guess(path: Path, lines: list[str]) -> str:
    format = FORMATS.get(path.suffix.lower())
    if format is None:
        rule = f"one of {', '.join(FORMATS)} if no format is given"
        raise InputError(f"headlines must be a file with an ending that is {rule}, got '{path}': give --format")
    return "mind" if format == "tsv" and MIND_ROW.match(lines[0]) else format


def _plain(lines: list[str], format: str, column: str | None, path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        yield f"line {number}", line


def _mind(lines: list[str], format: str, column: str | None, path: str) -> Iterator[tuple[str, str]]:
    """Yield column 4; tabs separate columns, and quotes have no meaning."""
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t")
        if len(cells) <= MIND_TITLE and line:
            where = f"{len(cells)} columns in line {number} of '{path}'"
            raise InputError(f"a row of MIND's news.tsv must have a title in column 4, got {where}")
        yield f"line {number}", cells[MIND_TITLE] if line else ""


def _table(lines: list[str], format: str, column: str | None, path: str) -> Iterator[tuple[str, str]]:
    # Strict, because a quote that is opened by mistake would silently join rows.
    reader = csv.reader((line + "\n" for line in lines), delimiter="," if format == "csv" else "\t", strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        index = header.index(_column(column, header, f"'{path}'"))
        for row in reader:
            if row and len(row) <= index:
                where = f"{len(row)} columns in line {reader.line_num} of '{path}'"
                raise InputError(f"every row must have the column {header[index]!r}, got {where}")
            yield f"line {reader.line_num}", row[index] if row else ""
    except csv.Error as error:
        rule = f"headlines must be a {format.upper()} file, got '{path}' ({error} in line {reader.line_num})"
        raise InputError(f"{rule}: close quoted cells and double their quotes, or give JSON lines") from error


def _json(lines: list[str], format: str, column: str | None, path: str) -> Iterator[tuple[str, str]]:
    for place, row in _objects(lines, path):
        if row == "":
            yield place, ""
            continue
        if not isinstance(row, dict):
            every = place.split()[0]
            raise InputError(f"every {every} must be a JSON object, got a {type(row).__name__} in {place} of '{path}'")
        value = row[_column(column, list(row), f"{place} of '{path}'")]
        if value is not None and not (isinstance(value, str) and SURROGATE.search(value) is None):
            raise InputError(f"headlines must be texts, got {value!r} in {place} of '{path}'")
        yield place, value or ""


def _objects(lines: list[str], path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of JSON lines, or an empty text for an empty line; or the entries of a JSON array."""
    if next((line for line in lines if line.strip()), "").lstrip().startswith("["):
        rule = "a file that begins with [ must be one JSON array of objects"
        for number, row in enumerate(_parse("\n".join(lines), f"{rule}, got '{path}'"), start=1):
            yield f"entry {number}", row
        return
    for number, line in enumerate(lines, start=1):
        rule = f"every line must be a JSON object, got line {number} of '{path}'"
        yield f"line {number}", _parse(line, rule) if line.strip() else ""


def _parse(text: str, rule: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{rule} ({error})") from error


def _column(column: str | None, known: list[str], where: str) -> str:
    """Return the wanted one of the ``known`` columns; case matters only between names that differ in nothing else."""
    wanted = COLUMNS if column is None else (str(column),)
    if column is not None and known.count(column) == 1:
        return column
    matches = ([name for name in known if name.casefold() == want.casefold()] for want in wanted)
    found = next((names for names in matches if names), [])
    if len(found) > 1:
        hint = "rename one" if len(set(found)) == 1 else "give --column in the right case"
        raise InputError(f"headlines must have one column {found[0]!r}, got {where} with {found}: {hint}")
    if not found:
        rule = " or ".join(repr(name) for name in wanted)
        raise InputError(f"headlines must have a column {rule}, got {where} with {known[:20]}: give --column")
    return found[0]
