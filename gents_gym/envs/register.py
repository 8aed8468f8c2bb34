"""Environments by one call: an id, a task distribution and its options in, a Gymnasium registration out."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import parse_env_id
from gymnasium.envs.registration import registry as known

from gents_gym.checks import InputError
from gents_gym.construct import make_tasks
from gents_gym.envs.delay import make_delay
from gents_gym.envs.turnover import make_turnover
from gents_gym.types import TaskDistribution

ENTRY_POINT = "gents_gym.envs.bandit:BanditEnv"
VECTOR_ENTRY_POINT = "gents_gym.envs.vector:BanditVectorEnv"
FEEDBACK_ARGUMENTS = ("delay", "batch", "turnover")  # the environment's, and may be registered
HARNESS_ARGUMENTS = ("tasks", "num_envs", "split", "autoreset_mode", "copy", "render_mode")
ENV_ARGUMENTS = (*HARNESS_ARGUMENTS, *FEEDBACK_ARGUMENTS)  # no distribution's option


def register_tasks(env_id: str, tasks: str | Callable[..., TaskDistribution], /, **options: Any) -> None:
    """Register a task distribution as an environment, single and vector, for ``gym.make`` and ``gym.make_vec``.

    The options are defaults: ``gym.make(env_id, horizon=50)`` gives another. Registering the same once more changes
    nothing. In a worker process, or on the command line, "module:id" imports the module that registers.

    Args:
        env_id: With a namespace and a version: "me/Mine-v0".
        tasks: ``package.module:Class``, a registered id ("synthetic"), or a class that can be imported by its name.
        **options: The distribution's arguments, and ``delay``, ``batch`` and ``turnover`` of the environment: plain
            JSON values, so that the environment's spec can be written down.
    """
    _check_id(env_id)
    name = _importable(tasks)
    _check_options(options)
    # What cannot be made shows here, not when it is first played.
    make_tasks(name, **{option: value for option, value in options.items() if option not in FEEDBACK_ARGUMENTS})
    make_delay(options.get("delay", 0), options.get("batch", 1))
    make_turnover(options.get("turnover"))
    arguments = {"tasks": name, **options}
    if env_id in known:
        if known[env_id].vector_entry_point == VECTOR_ENTRY_POINT and known[env_id].kwargs == arguments:
            return
        raise InputError(f"env_id must be new, got {env_id!r}, which is registered with {known[env_id].kwargs}")
    register(env_id, arguments)


def register(env_id: str, arguments: Mapping[str, Any]) -> None:
    """Register an environment with Gymnasium; nothing is imported or checked."""
    gym.register(env_id, ENTRY_POINT, vector_entry_point=VECTOR_ENTRY_POINT, kwargs=dict(arguments))


def _check_id(env_id: str) -> None:
    rule = "env_id must have a namespace, a name and a version, as 'me/Mine-v0'"
    try:
        namespace, _, version = parse_env_id(env_id)
    except (gym.error.Error, TypeError):
        raise InputError(f"{rule}, got {env_id!r}") from None
    if namespace is None or version is None or ":" in env_id:
        raise InputError(f"{rule}, got {env_id!r}")


def _importable(tasks: Any) -> str:
    """Return the id or ``package.module:Class`` of ``tasks``. Raises if another process could not import it."""
    name = tasks
    if not isinstance(tasks, str):
        name = f"{getattr(tasks, '__module__', '')}:{getattr(tasks, '__qualname__', '<nameless>')}"
    if "<" in name or name.startswith("__main__:"):
        instead = "move it to a module, or play gents_gym.BanditVectorEnv(tasks, num_envs) without an id"
        raise InputError(f"tasks must be importable by name in any process, got {tasks!r}: {instead}")
    return str(name)


def _check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in HARNESS_ARGUMENTS:
            raise InputError(f"options must be the task distribution's, got {name!r}, an argument of the environment")
        try:
            plain = json.loads(json.dumps(value, allow_nan=False)) == value
        except (TypeError, ValueError):
            plain = False
        if not plain:
            raise InputError(f"option {name!r} must be a plain JSON value, got {value!r}")
