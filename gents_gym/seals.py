"""Seals files with checksums: each holds its own sha256, and a JSON file also those of the files it describes.

A file's own sha256 is computed with zeros in its place. Every byte counts, whatever the format.
"""

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import safe_open

from gents_gym.checks import InputError
from gents_gym.files import check_file, read_file, write_whole

BLANK = "0" * 64  # placeholder for a file's own sha256 while that is computed
SHA256 = re.compile("[0-9a-f]{64}")


def is_sha256(value: Any) -> bool:
    """Return whether ``value`` is a text that can be a sha256."""
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def sha256(data: bytes) -> str:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def seal(data: bytes) -> bytes:
    """Return a file's bytes with ``BLANK`` replaced by their sha256."""
    return data.replace(BLANK.encode(), sha256(data).encode(), 1)


def check_seal(path: Path, data: bytes, claimed: str | None) -> None:
    """Raise if a file's bytes do not have their own sha256; files of earlier versions, without one, are noted."""
    if claimed is None:
        note(f"'{path}' has no sha256, like files of earlier versions, so damage would go unnoticed")
    elif sha256(data.replace(claimed.encode(), BLANK.encode(), 1)) != claimed:
        raise InputError(f"'{path}' is damaged: it does not match its sha256")


def check_described(path: Path, claimed: str | None) -> None:
    """Raise if a file's sha256 differs from the one in the JSON file that describes it, if there is one."""
    if claimed is not None and sha256(read_file(path)) != claimed:
        raise InputError(f"'{path}' is damaged: it does not match its sha256")


def write_described(folder: Path, name: str, value: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write files and, last, the JSON file ``name`` with ``value``, the sha256 of each file and its own."""
    for other, data in files.items():
        write_whole(folder / other, data)
    hashes = {**{other: sha256(data) for other, data in files.items()}, name: BLANK}
    text = json.dumps({**value, "sha256": hashes}, indent=2) + "\n"
    write_whole(folder / name, seal(text.encode()))


def read_tensors(path: Path, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the tensors and the labels of a safetensors file. Raises an OSError or a SafetensorError.

    Args:
        path: The file.
        framework: The kind of tensors, "numpy" or "pt".
    """
    check_file("it", path)
    with safe_open(path, framework=framework) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def read_sealed_tensors(path: Path, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the same for a file that holds its own sha256 among its labels. Raises if it does not match."""
    tensors, labels = read_tensors(path, framework)
    check_seal(path, read_file(path), labels.pop("sha256", None))
    return tensors, labels


@lru_cache(maxsize=1000)
def note(text: str) -> None:
    """Print a line to stderr, or to the program's log; once per process."""
    logging.getLogger("gents_gym").warning(text)
