"""The bridge to stable-baselines3: a Gymnasium vector environment in, a stable-baselines3 ``VecEnv`` out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from gents_gym.checks import InputError, need

VecEnv: Any = need("stable_baselines3.common.vec_env", "gents_gym.envs.sb3", "sb3").VecEnv


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """All slots of a native vector environment, stepped at once, for ``PPO(policy, SB3VecEnv(envs))`` and the like.

    The seed that an algorithm sets starts the environment's stream at the next reset, which tells every slot its
    tasks; ``set_options`` hands its options to the vector environment. A slot has no attributes or methods of its own.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Wrap a vector environment, wrappers around it included; its autoreset mode must be SAME_STEP."""
        if not isinstance(envs, VectorEnv) or envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise InputError(f"envs must be a vector environment with the autoreset mode SAME_STEP, got {envs!r}")
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Start an episode in every slot; return the observations."""
        observation, info = self.envs.reset(seed=self._seeds[0], options=self._options[0] or None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = _by_slot(info, self.num_envs)
        return _writable(observation)

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions (B,) of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play them; return observations, rewards (B,), ends of episodes (B,) and a dict per slot."""
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        infos = _by_slot(info, self.num_envs)
        ended = terminated | truncated
        for i in np.flatnonzero(ended).tolist():  # what belongs to the new episode is told apart from the old one's
            self.reset_infos[i] = infos[i]
            infos[i] = {**infos[i].pop("final_info"), "terminal_observation": infos[i].pop("final_obs")}
        for slot, cut in zip(infos, (truncated & ~terminated).tolist(), strict=True):
            slot["TimeLimit.truncated"] = cut
        return _writable(observation), reward.astype(np.float32), ended, infos

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        """Return one frame per slot."""
        return self.envs.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the environment's attribute, once for each slot."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: slots share one environment."""
        raise InputError(f"attributes of a slot cannot be set, for slots share one environment, got {attr_name!r}")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Refuse: slots share one environment."""
        raise InputError(f"methods of a slot cannot be called, for slots share one environment, got {method_name!r}")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each slot: wrappers of single environments are nowhere in a native one."""
        return [False] * len(list(self._get_indices(indices)))


def _writable(observation: Any) -> Any:
    """Return the observations with what cannot be written to copied, as torch wants it."""
    if isinstance(observation, dict):
        return {key: _writable(array) for key, array in observation.items()}
    return observation if observation.flags.writeable else observation.copy()


def _by_slot(info: dict[str, Any], n_slots: int) -> list[dict[str, Any]]:
    """Return a dict per slot of what Gymnasium tells in arrays, each with a mask beside it."""
    told: list[dict[str, Any]] = [{} for _ in range(n_slots)]
    for key, values in info.items():
        if key.startswith("_"):
            continue
        each = _by_slot(values, n_slots) if isinstance(values, dict) else values.tolist()
        mask = info.get(f"_{key}")
        for i in range(n_slots) if mask is None else np.flatnonzero(mask).tolist():
            told[i][key] = each[i]
    return told
