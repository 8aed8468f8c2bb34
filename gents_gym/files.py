"""Writes files whole or not at all: bytes go to a temporary file, which is renamed when they are on disk.

A run that fills a folder keeps its plan there, so that a killed run can continue.
"""

import errno
import hashlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, InputTypeError

PART = ".gents_gym.part"  # suffix of a file that is being written, used by nothing else
PLAN = "run.json"  # the file with the plan of an unfinished run in a folder


def write_whole(path: str | Path, data: bytes) -> Path:
    """Write ``data`` to ``path`` so that neither readers nor crashes ever see a part of it; the umask applies."""
    path = as_path("path", path)
    if not os.path.isdir(path.parent):
        raise InputError(f"path must lie in a folder that exists, got '{path}'")
    if path.is_dir():
        raise InputError(f"path must be a file, got the folder '{path}'")
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}{PART}")
    # Never through a link that someone planted.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def as_path(name: str, value: Any) -> Path:
    """Check that ``value`` can be a path; return it as one."""
    try:
        path = Path(value)
        os.lstat(path)
    except (TypeError, ValueError) as error:  # ValueError: a NUL, or characters that the file system cannot encode
        raise InputTypeError(f"{name} must be a path, got {value!r}") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{name} must be a path, got '{path}' ({error.strerror})") from error
    return path


def check_target(name: str, value: Any) -> Path:
    """Check that ``value`` can be written, before long work that writes in the end; return it as a path."""
    path = as_path(name, value)
    try:
        place = _existing(path.absolute())
        with tempfile.TemporaryFile(dir=place if place.is_dir() else place.parent):
            return path
    except OSError as error:
        raise InputError(f"{name} must be a place that can be written, got '{path}' ({error.strerror})") from error


def new_file(name: str, value: Any) -> Path:
    """Check that a new file can be written at ``value``; return it as a path."""
    path = check_target(name, value)
    if os.path.lexists(path) or not os.path.isdir(path.parent):
        raise InputError(f"{name} must be a new file in a folder that exists, got '{path}'")
    return path


def _existing(path: Path) -> Path:
    """Return the path if it exists, or else the nearest folder above it that does."""
    try:
        os.stat(path)
        return path
    except FileNotFoundError:
        return _existing(path.parent)


def check_file(name: str, path: str | Path) -> None:
    """Raise an InputError if ``path`` is not a regular file: reading from a FIFO or a device would wait.

    A missing or inaccessible file raises an OSError.
    """
    if not stat.S_ISREG(os.stat(as_path(name, path)).st_mode):
        raise InputError(f"{name} must be a regular file, got '{path}'")


def read_file(path: Path) -> bytes:
    """Return the bytes of a regular file."""
    check_file("it", path)
    return path.read_bytes()


def own_folder(path: Path) -> Path:
    """Make a folder inside one of ours. Raises if a link is there: links may be planted and are not followed."""
    if path.is_symlink():
        raise InputError(f"'{path}' must be a folder, got a link: remove it, and start again")
    path.mkdir(exist_ok=True)
    return path


def digest(*arrays: np.ndarray) -> str:
    """Return the sha256 of the arrays, their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def is_part(path: Path) -> bool:
    """Return whether a killed :func:`write_whole` left this file."""
    return path.name.startswith(".") and path.name.endswith(PART)


def remove_parts(folder: Path) -> None:
    """Remove what a killed :func:`write_whole` left in ``folder``."""
    for path in folder.glob(f".*{PART}"):
        if not path.is_dir():
            path.unlink(missing_ok=True)


@contextmanager
def held(name: str, folder: Path) -> Iterator[None]:
    """Reserve a folder for one writer, by flock: the system releases it when the process dies; raise if it is taken."""
    if os.name != "posix":  # systems without flock
        yield
        return
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{name} must be a folder that can be read, got '{folder}' ({error.strerror})") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InputError(f"{name} must have one writer at a time, got '{folder}', which another has open") from error
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def new_folder(name: str, path: str | Path) -> Path:
    """Create ``path`` as an output folder. It must be absent or empty, and writable."""
    path = as_path(name, path)
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{name} must be a folder, got the file '{path}'")
        if path.is_dir() and not all(is_part(inside) for inside in path.iterdir()):
            raise InputError(f"{name} must be a new or empty folder, got '{path}', which has files in it")
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path), held(name, path):
            remove_parts(path)
    except OSError as error:
        raise InputError(f"{name} must be a writable folder, got '{path}' ({error.strerror})") from error
    return path


def kept_plan(out: Path, defaults: Mapping[str, Any] | None = None) -> Any:
    """Return the plan of the unfinished run in the folder; None if there is none.

    Args:
        out: The folder.
        defaults: Default values of the configuration's fields: a plan of an earlier version may lack some.
    """
    path = out / PLAN
    try:
        kept = json.loads(read_file(path)) if path.exists() else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"out must hold a run to continue, got '{out}' with a damaged {PLAN}") from error
    return fill_plan(kept, defaults)


def fill_plan(plan: Any, defaults: Mapping[str, Any] | None) -> Any:
    """Return a plan whose configuration has defaults for missing fields."""
    if isinstance(plan, dict) and isinstance(plan.get("config"), dict):
        return {**plan, "config": {**(defaults or {}), **plan["config"]}}
    return plan


def check_plan(out: Path, kept: Any, plan: dict[str, Any]) -> None:
    """Raise, naming what differs, unless the plan ``kept`` in the folder equals ``plan``."""
    if kept != plan:
        known = kept if isinstance(kept, dict) and isinstance(kept.get("config"), dict) else {"config": {}}
        odd = [key for key in plan["config"] if known["config"] and known["config"].get(key) != plan["config"][key]]
        odd = odd or [key for key in plan if known.get(key) != plan[key]] or ["plan"]
        rule = "out must be new, or hold a run of this configuration to continue"
        raise InputError(f"{rule}, got '{out}' with another {odd[0]}")


@contextmanager
def open_run(out: Path, plan: dict[str, Any], defaults: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Hold the folder with the plan, JSON values, in it; an unfinished run there must have the same plan.

    Args:
        out: The folder.
        plan: The plan of the run.
        defaults: Default values of the configuration's fields: a plan of an earlier version may lack some.
    """
    if kept_plan(out, defaults) is None:
        new_folder("out", out)
    with held("out", out):
        kept = kept_plan(out, defaults)
        if kept is None:
            write_whole(out / PLAN, (json.dumps(plan, indent=2) + "\n").encode())
        else:
            check_plan(out, kept, plan)
            remove_parts(out)
        yield
