"""Makes vector environments and task distributions from specs such as "id(option=value)"."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.construct import make_tasks, parse_spec
from gents_gym.envs.register import ENV_ARGUMENTS, VECTOR_ENTRY_POINT
from gents_gym.modules import import_named
from gents_gym.types import TaskDistribution

HARNESS_OPTIONS = ("split", "num_envs", "autoreset_mode", "copy", "vectorization_mode", "vector_kwargs", "wrappers")


def find_env(env: str) -> tuple[EnvSpec, dict[str, Any]]:
    """Return the Gymnasium spec and the options that ``env`` names; in "module:id" the module is imported first."""
    name, options = parse_spec(env)
    module, _, plain = name.rpartition(":")
    try:
        if module:
            import_named(module)
        return gym.spec(plain), options
    except Exception as error:  # whatever a user's module raises at import is the user's to read
        what = "" if isinstance(error, gym.error.Error | ImportError | InputError) else f"{type(error).__name__}: "
        unknown = not module and isinstance(error, gym.error.NamespaceNotFound)
        hint = f" If a module of yours registers it, name that first: 'my_module:{plain}'." if unknown else ""
        hint = f" Did you mean 'gents_gym/{name}'?" if f"gents_gym/{name}" in registry.ENVIRONMENTS else hint
        raise InputError(f"env {env!r} cannot be made: {what}{error}{hint}") from error


def _check_options(env: str, options: dict[str, Any]) -> None:
    for option in options:
        if option in HARNESS_OPTIONS:
            raise InputError(f"env's options must be options of the tasks, got {option!r} in {env!r}")


def make_envs(env: str, num_envs: int, split: str = "test") -> gym.vector.VectorEnv[Any, Any, Any]:
    """Return the vector environment that ``env`` names, with ``num_envs`` slots."""
    spec, options = find_env(env)
    _check_options(env, options)
    if spec.vector_entry_point == VECTOR_ENTRY_POINT:
        options = {"split": split, "autoreset_mode": "Disabled", "copy": False, **options}
    try:
        envs = gym.make_vec(spec, num_envs=num_envs, **options)
    except InputError:
        raise
    except (gym.error.Error, ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"env {env!r} cannot be made: {error}") from error
    check_observations(envs)
    return envs


def check_observations(envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
    """Raise unless the environment's observations have "context" and "action_features"."""
    space = envs.single_observation_space
    if not isinstance(space, spaces.Dict) or not {"context", "action_features"} <= space.keys():
        raise InputError(f"envs must observe 'context' and 'action_features', got {envs!r} with {space}")


def env_setting(env: str) -> str | None:
    """Return the id of the task distribution that ``env`` is registered with; None if it is not one of ours."""
    spec, _ = find_env(env)
    return spec.kwargs.get("tasks")


def find_distribution(env: str) -> TaskDistribution | None:
    """Return the task distribution of one of our environments, with the options in its spec; None for others."""
    spec, options = find_env(env)
    _check_options(env, options)
    if spec.vector_entry_point != VECTOR_ENTRY_POINT:
        return None
    given = {**spec.kwargs, **options}
    return make_tasks(given["tasks"], **{name: value for name, value in given.items() if name not in ENV_ARGUMENTS})


def get_distribution(tasks: str | TaskDistribution) -> TaskDistribution:
    """Return the task distribution that ``tasks`` is, or names by its own id or that of one of our environments."""
    if not isinstance(tasks, str):
        return tasks
    is_env = re.search(r"/|-v\d+$", parse_spec(tasks)[0])
    return env_distribution(tasks) if is_env else make_tasks(tasks)


def env_distribution(env: str) -> TaskDistribution:
    """Return the task distribution of one of our environments. Raises for other environments."""
    distribution = find_distribution(env)
    if distribution is None:
        raise InputError(f"env must be one of gents_gym's, with a task distribution, got {env!r}")
    return distribution
