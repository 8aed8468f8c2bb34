"""Imports the modules that specs name; the current folder is searched for them last, and for nobody else's imports."""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from gents_gym.checks import InputError

MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external")  # whose frames stand in between
_NAMED: set[str] = set()  # top-level modules that are being imported because a spec names them
_FOUND: dict[str, str] = {}  # the folder of each top-level module that was found in a current folder


class _CurrentFolder:
    """Finds a user's own modules in the current folder: those that specs name, and what these import from it.

    A folder on ``sys.path`` would serve every import of every library: a stray ``numexpr.py`` would run as a part of
    pandas.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        folder = os.getcwd() if name in _NAMED else _FOUND.get(_importer())
        if path is not None or folder is None:  # a package's modules are searched for in the package
            return None
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None:
            _FOUND[name] = folder
        return spec


def _importer() -> str:
    """Return the top-level name of the module whose import statement is under way."""
    frame = sys._getframe(2)  # who asked the finder
    while (name := str(frame.f_globals.get("__name__")).partition(".")[0]) in MACHINERY and frame.f_back is not None:
        frame = frame.f_back
    return name


def import_named(module: str) -> ModuleType:
    """Return the module that a spec names, imported; naming a module runs its code.

    Raises:
        InputError: The module is of the standard library, which holds nothing that a spec can ask for.
        Exception: Whatever the module raises.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        raise InputError(f"it must be of a module outside the standard library, got {module!r}")
    if _CurrentFolder not in sys.meta_path:
        sys.meta_path.append(_CurrentFolder)
    _NAMED.add(top)
    try:
        return importlib.import_module(module)
    finally:
        _NAMED.discard(top)
