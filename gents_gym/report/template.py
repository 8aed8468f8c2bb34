"""Fills the templates of pages: markup, style, script and data become one offline file."""

import html
import json
import math
import re
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np


def fill_page(folder: Traversable, name: str, title: str, data: Any, style: str = "") -> str:
    """Return a whole page, with style, script and data in it.

    Args:
        folder: The folder of the template's files, ``name``.html, .css and .js.
        name: Name of the template.
        title: Title of the page.
        data: The data for the script: numbers, texts, arrays, lists and dictionaries.
        style: Style rules that come before the template's own.
    """
    # JSON needs no "<", so no name in the data can end the script element.
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(title),
        "style": style + (folder / f"{name}.css").read_text(encoding="utf-8"),
        "script": (folder / f"{name}.js").read_text(encoding="utf-8"),
        "data": text,
    }
    template = (folder / f"{name}.html").read_text(encoding="utf-8")
    return re.sub("@(title|style|script|data)@", lambda match: parts[match[1]], template)


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values: five digits of each number, and null for NaN."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
