"""Gives all agents a clear error for playing before ``reset``."""

from typing import TYPE_CHECKING, Any

from gents_gym.checks import InputError


class ResetError(InputError, AttributeError):
    """An agent was used before ``reset``, which sets what it needs."""


class Resettable:
    """An agent whose private attributes are set by ``reset``."""

    if not TYPE_CHECKING:  # otherwise every misspelt attribute would count as one of these

        def __getattr__(self, name: str) -> Any:
            """Raise; Python calls this only for missing attributes, so it costs nothing during play."""
            if name.startswith("_") and not name.startswith("__"):
                raise ResetError(f"reset must be called before act and observe, got a {type(self).__name__} without it")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
