"""Turns any function ``act(observation) -> action`` into a batched agent."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from gents_gym.agents.per_task import PerTask
from gents_gym.checks import InputError
from gents_gym.construct import find


def from_callable(function: str | Callable[[dict[str, Any]], int]) -> PerTask:
    """Return an agent that plays ``function(observation)`` in every task.

    All tasks share the function, so it must keep no state between calls. For an agent that learns, use ``per-task``.

    Args:
        function: Takes the observation of the single environment, ``{"context": (D,), "action_features": (A, F)}``,
            and returns the action's number; or its name, ``package.module:function``.
    """
    act = find("function", function, {}) if isinstance(function, str) else function
    if not callable(act):
        raise InputError(f"function must be a function of the observation, or its name, got {act!r}")
    return PerTask(lambda: SimpleNamespace(act=act))
