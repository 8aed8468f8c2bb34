"""The bridge to stable-baselines3: makes a Gymnasium vector environment one of its ``VecEnv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from gents_gym.checks import InputError, InputTypeError, need
from gents_gym.envs.vector import BanditVectorEnv

VecEnv: Any = need("stable_baselines3.common.vec_env", "gents_gym.envs.sb3", "sb3").VecEnv
MASKED = (BanditVectorEnv, SyncVectorEnv, AsyncVectorEnv)  # their reset takes a mask


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """All slots of a native vector environment, stepped at once, for ``PPO(policy, SB3VecEnv(envs))`` and the like.

    stable-baselines3 expects a slot that ends to begin again in the same step. An environment of another autoreset
    mode is reset by the bridge, so any mode will do. The seed that an algorithm sets starts the environment's stream
    at the next reset, which decides every slot's tasks; ``set_options`` hands its options to the vector environment.
    A slot has no attributes or methods of its own.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Wrap a vector environment, wrappers around it included.

        One whose autoreset mode is not SAME_STEP must be ours or Gymnasium's ``SyncVectorEnv`` or ``AsyncVectorEnv``:
        others need not know how to reset some slots only.
        """
        if not isinstance(envs, VectorEnv):
            raise InputTypeError(f"envs must be a vector environment, as gym.make_vec makes, got {envs!r}")
        self._same_step = envs.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP
        if not self._same_step and not isinstance(envs.unwrapped, MASKED):
            raise InputError(f"envs must have the autoreset mode SAME_STEP or know options['reset_mask'], got {envs!r}")
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Start an episode in every slot; return the observations."""
        observation, info = self.envs.reset(seed=self._seeds[0], options=self._options[0] or None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = _by_slot(info, self.num_envs)
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions (B,) of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play them; return observations, rewards (B,), ends of episodes (B,) and a dict per slot."""
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        infos, ended = _by_slot(info, self.num_envs), terminated | truncated
        if ended.any():
            observation = self._begin(observation, infos, ended)
        for slot, cut in zip(infos, (truncated & ~terminated).tolist(), strict=True):
            slot["TimeLimit.truncated"] = cut
        return observation, reward.astype(np.float32), ended, infos

    def _begin(self, observation: Any, infos: list[dict[str, Any]], ended: np.ndarray) -> Any:
        """Return observations with new episodes in ended slots; put the final observations into ``infos``."""
        over = np.flatnonzero(ended).tolist()
        if self._same_step:
            for i in over:
                self.reset_infos[i] = infos[i]
                infos[i] = {**infos[i].pop("final_info"), "terminal_observation": infos[i].pop("final_obs")}
            return observation
        fresh, info = self.envs.reset(options={"reset_mask": ended})
        begun = _by_slot(info, self.num_envs)
        for i in over:
            infos[i]["terminal_observation"] = _slot(observation, i)
            self.reset_infos[i] = begun[i]
        return fresh

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
        """Return each slot's row of ``action_masks``; refuse all else, for slots share one environment."""
        if method_name == "action_masks":
            masks = self.get_attr(method_name)[0]()  # (B, A)
            return [masks[i] for i in self._get_indices(indices)]
        raise InputError(f"methods of a slot cannot be called, for slots share one environment, got {method_name!r}")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each slot: wrappers of single environments are nowhere in a native one."""
        return [False] * len(list(self._get_indices(indices)))


def _slot(observation: Any, i: int) -> Any:
    """Return a copy of what slot i observes."""
    if isinstance(observation, dict):
        return {key: _slot(array, i) for key, array in observation.items()}
    return observation[i].copy()


def _by_slot(info: dict[str, Any], n_slots: int) -> list[dict[str, Any]]:
    """Return a dict per slot of what Gymnasium returns in arrays, each with a mask beside it."""
    infos: list[dict[str, Any]] = [{} for _ in range(n_slots)]
    for key, values in info.items():
        if key.startswith("_"):
            continue
        each = _by_slot(values, n_slots) if isinstance(values, dict) else values.tolist()
        mask = info.get(f"_{key}")
        for i in range(n_slots) if mask is None else np.flatnonzero(mask).tolist():
            infos[i][key] = each[i]
    return infos
