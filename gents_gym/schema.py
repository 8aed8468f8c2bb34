"""Checks whole JSON values against a schema, so that readers need no checks of their own.

A schema is a type, a union of types, or a function that returns whether a value is valid. ``[schema]`` is a list and
``{str: schema}`` an object with any names; ``{"name": schema, "name?": schema}`` is an object with exactly these names,
of which those with "?" may be missing.
"""

from typing import Any


def positive(value: Any) -> bool:
    """Return whether ``value`` is a whole number above 0."""
    return whole(value) and value > 0


def whole(value: Any) -> bool:
    """Return whether ``value`` is a whole number of at least 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_schema(value: Any, schema: Any, place: str = "it") -> None:
    """Raise a ValueError that names the first place at which ``value`` breaks ``schema``."""
    if isinstance(schema, dict):
        _check_object(value, schema, place)
    elif isinstance(schema, list):
        _need(isinstance(value, list), place, value)
        for i, entry in enumerate(value):
            check_schema(entry, schema[0], f"{place}[{i}]")
    elif isinstance(schema, type) or not callable(schema):
        _need(isinstance(value, schema) and (schema is bool or not isinstance(value, bool)), place, value)
    else:
        _need(schema(value), place, value)


def _check_object(value: Any, schema: dict[Any, Any], place: str) -> None:
    _need(isinstance(value, dict), place, value)
    names = dict.fromkeys(value, schema[str]) if str in schema else {name.rstrip("?"): schema[name] for name in schema}
    missing = [name for name in names if name not in value and f"{name}?" not in schema]
    unknown = [name for name in value if name not in names]
    for kind, odd in (("lacks", missing), ("has an unknown", unknown)):
        if odd:
            raise ValueError(f"{place} {kind} {odd[0]!r}")
    for name, entry in value.items():
        check_schema(entry, names[name], f"{place}[{name!r}]")


def _need(right: bool, place: str, value: Any) -> None:
    if not right:
        raise ValueError(f"{place} is {repr(value)[:60]}")
