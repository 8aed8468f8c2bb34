"""Fills the templates of pages: markup, style, script and data become one offline file."""

import html
import json
import math
import re
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

GENERATOR = "gents_gym"
SHARED = resources.files("gents_gym.report") / "page"


def fill_page(folder: Traversable, name: str, title: str, data: Any, generator: str = GENERATOR) -> str:
    """Return a whole page, with style, script and data in it.

    Args:
        folder: Folder of the template's files: ``name``.html, its body, ``name``.js, and ``name``.css if it has any.
        name: Name of the template.
        title: Title of the page.
        data: The data for the script: numbers, texts, arrays, lists and dictionaries.
        generator: The program that made the page; pages are recognised by it.
    """
    # JSON needs no "<", so no name in the data can end the script element.
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    markup, style, script = (_read(folder / f"{name}.{end}") for end in ("html", "css", "js"))
    scripts = [
        f'<script type="application/json" id="data">{text}</script>',
        f"<script>\n{_read(SHARED / 'page.js')}\n{script}</script>",
    ]
    return wrap_page(title, "\n".join([markup, *scripts]), style, generator, "'unsafe-inline'")


def wrap_page(title: str, body: str, style: str = "", generator: str = GENERATOR, scripts: str = "'none'") -> str:
    """Return a page around its body.

    Args:
        title: Title of the page.
        body: Markup of the body.
        style: Style rules that come after those that all pages share.
        generator: The program that made the page.
        scripts: The sources of scripts that the page's security policy allows.
    """
    parts = {
        "title": html.escape(title),
        "generator": generator,
        "style": _read(SHARED / "page.css") + style,
        "scripts": scripts,
        "body": body,
    }
    return re.sub("@(title|generator|style|scripts|body)@", lambda match: parts[match[1]], _read(SHARED / "page.html"))


def _read(file: Traversable) -> str:
    """Return a template's text; none if there is no such file."""
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values: five digits of each number, and null for NaN."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
