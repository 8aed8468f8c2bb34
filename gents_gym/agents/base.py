"""What all agents share: a clear error if one is asked to play before it was reset."""

from typing import TYPE_CHECKING, Any

from gents_gym.checks import InputError


class ResetError(InputError, AttributeError):
    """An agent was asked to play before ``reset``; it lacks what reset would have set."""


class Resettable:
    """An agent whose private attributes are set by ``reset``."""

    if not TYPE_CHECKING:  # or every misspelt attribute would pass as one of these

        def __getattr__(self, name: str) -> Any:
            """Raise; Python asks here only for attributes that are missing, so playing costs nothing more."""
            if name.startswith("_") and not name.startswith("__"):
                raise ResetError(f"reset must be called before act and observe, got a {type(self).__name__} without it")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
