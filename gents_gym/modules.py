"""Imports the modules that specs name; only these and their imports are searched for in the current folder, last."""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from gents_gym.checks import InputError

MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external")  # modules whose frames are in between
_NAMED: set[str] = set()  # top-level modules that are being imported because a spec names them
_FOUND: dict[str, str] = {}  # the folder of each top-level module that was found in a current folder


class _CurrentFolder:
    """Finds a user's own modules in the current folder: those that specs name, and their imports from it.

    A folder on ``sys.path`` would be searched for every import of every library: pandas would run a stray
    ``numexpr.py``.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        folder = os.getcwd() if name in _NAMED else _FOUND.get(_importer())
        if path is not None or folder is None:  # a package's modules are found in the package
            return None
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None:
            _FOUND[name] = folder
        return spec


def _importer() -> str:
    """Return the top-level name of the module whose import statement is running."""
    frame = sys._getframe(2)  # the frame that called the finder
    while (name := str(frame.f_globals.get("__name__")).partition(".")[0]) in MACHINERY and frame.f_back is not None:
        frame = frame.f_back
    return name


def import_named(module: str) -> ModuleType:
    """Return the module that a spec names, imported; importing it runs its code.

    Raises:
        InputError: The module belongs to the standard library, which has nothing that a spec can name.
        Exception: Whatever the module raises.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        raise InputError(f"it must be in a module outside the standard library, got {module!r}")
    if _CurrentFolder not in sys.meta_path:
        sys.meta_path.append(_CurrentFolder)
    _NAMED.add(top)
    try:
        return importlib.import_module(module)
    finally:
        _NAMED.discard(top)
