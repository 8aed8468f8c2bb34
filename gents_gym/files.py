"""Whole files or none: bytes go to a temporary name first and take the real one when they are on disk."""

import os
import tempfile
from pathlib import Path

from gents_gym.checks import InputError

PART = ".part"  # ending of a file that is being written


def write_whole(path: str | Path, data: bytes) -> Path:
    """Write ``data`` to ``path`` so that no reader, and no crash, ever meets a part of it."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"path must lie in a folder that exists, got '{path}'")
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def remove_parts(folder: Path) -> None:
    """Remove what a killed :func:`write_whole` left in ``folder``."""
    for path in folder.glob(f".*{PART}"):
        path.unlink(missing_ok=True)


def new_folder(name: str, path: str | Path) -> Path:
    """Create ``path`` as an output folder, or raise unless it is absent or empty, and writable."""
    path = Path(path)
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{name} must be a folder, got the file '{path}'")
        if path.is_dir():
            remove_parts(path)
        if path.is_dir() and any(path.iterdir()):
            raise InputError(f"{name} must be a new or empty folder, got '{path}', which has files in it")
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"{name} must be a writable folder, got '{path}' ({error.strerror})") from error
    return path
