"""Reads specs, "name(option=value, …)", and checks which ones a file may hold."""

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gents_gym.checks import InputError, check_choice

SPEC = re.compile(r"(?P<name>[\w.:/-]+)\s*(?:\((?P<options>.*)\))?", re.DOTALL)
OPTION = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>.*)", re.DOTALL)
BARE_WORD = re.compile(r"[\w.:/~-]+")


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split "name(option=value, …)" into the name and its options.

    Values are Python literals, bare words or specs; nothing is ever evaluated as code.
    """
    match = SPEC.fullmatch(spec.strip()) if isinstance(spec, str) else None
    if match is None:
        raise InputError(f"a spec must look like name or name(option=value, ...), got {spec!r}")
    options: dict[str, Any] = {}
    pending = ""
    for piece in (match["options"] or "").split(",") if (match["options"] or "").strip() else []:
        pending += piece
        option = OPTION.fullmatch(pending.strip())
        if option is None or option["name"] in options:
            raise InputError(f"options must be named, as in name(option=value), each once, got {spec!r}")
        try:
            options[option["name"]] = _literal(option["value"])
            pending = ""
        except ValueError:
            pending += ","  # the comma may be inside a list or a quoted text: try again with the next piece
    if pending:
        hint = "; in a dict, quote the names" if "{" in spec else ""
        raise InputError(
            f"an option's value must be a literal or a word, got {pending.strip(' ,')!r} in {spec!r}{hint}"
        )
    return match["name"], options


def write_spec(name: str, options: Mapping[str, Any]) -> str:
    """Return the text that :func:`parse_spec` splits into ``name`` and ``options``, which are literals or texts."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})" if options else name


def _literal(text: str) -> Any:
    """Return the literal or bare word that ``text`` is. Raises a ValueError if it is neither."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: endless signs or brackets
        if BARE_WORD.fullmatch(text) or _is_spec(text):
            return text
        raise ValueError(text) from None


def _is_spec(text: str) -> bool:
    """Return whether ``text`` is itself a name with options, as in ts-gen(model=mine:Model(rate=2))."""
    try:
        return bool(parse_spec(text)[1])
    except (InputError, RecursionError):
        return False


def check_registered(kind: str, spec: Any, known: Iterable[str]) -> str:
    """Check that a spec that was read from a file names only registered ids; return it.

    A file cannot name code: ``package.module:Class`` is only for what the user types or passes, also inside options.

    Args:
        kind: What is named, for the error.
        spec: The text in the file.
        known: The registered ids.
    """
    name, options = parse_spec(spec)
    # Checked after parsing, because a text can hide a colon behind an escape.
    if ":" in name or ":" in repr([*options.values()]):
        raise InputError(f"{kind} in a file must use registered ids, never package.module:Class, got {spec!r}")
    check_choice(kind, name, known)
    return str(spec)
