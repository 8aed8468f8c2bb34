"""Wrappers that show the previous action and reward, and the time, for agents whose memory is a recurrent network."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gents_gym.checks import InputError, check_flag
from gents_gym.envs.bases import VectorWrapperBase, WrapperBase

LATEST = 50.0  # more than log(1 + any number of decisions)


def _extend(space: spaces.Space[Any], actions: spaces.Space[Any], time: bool) -> spaces.Dict:
    """Return the single observation space with the new entries."""
    if not isinstance(space, spaces.Dict) or not isinstance(actions, spaces.Discrete) or actions.start != 0:
        rule = "env must have a Dict observation and a Discrete action space that starts at 0"
        raise InputError(f"{rule}, got {space} and {actions}")
    added = {
        "previous_action": spaces.Box(0, 1, (int(actions.n),), np.float32),
        "previous_reward": spaces.Box(-1e6, 1e6, (1,), np.float32),  # foreign environments' rewards vary
    }
    if check_flag("time", time):
        added["time"] = spaces.Box(0, LATEST, (1,), np.float32)
    return spaces.Dict({**space.spaces, **added})


class PreviousStep(WrapperBase, RecordConstructorArgs):
    """Adds ``previous_action`` (one-hot, (A,)) and ``previous_reward`` ((1,)) to the observation; zeros at reset.

    With ``time=True`` also ``time`` ((1,)), the logarithm of one plus the number of decisions so far: it needs no
    horizon, and is of a size that networks like.
    """

    def __init__(self, env: gym.Env[Any, Any], time: bool = False) -> None:
        """Wrap a single environment with a Dict observation and a Discrete action space."""
        RecordConstructorArgs.__init__(self, time=time)
        gym.Wrapper.__init__(self, env)
        self.observation_space = _extend(env.observation_space, env.action_space, time)
        self._shows_time = time
        self._decisions = 0

    def reset(self, **kwargs: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(**kwargs)
        self._decisions = 0
        return self._add(observation, None, 0.0), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._decisions += 1
        return self._add(observation, action, float(reward)), reward, terminated, truncated, info

    def _add(self, observation: dict[str, np.ndarray], action: Any, reward: float) -> dict[str, np.ndarray]:
        taken = np.zeros(self.action_space.n, np.float32)  # type: ignore[attr-defined]
        if action is not None:
            taken[action] = 1
        time = {"time": np.array([np.log1p(self._decisions)], np.float32)} if self._shows_time else {}
        return {**observation, "previous_action": taken, "previous_reward": np.array([reward], np.float32), **time}


class VectorPreviousStep(VectorWrapperBase):
    """The vector form of :class:`PreviousStep`: ``previous_action`` (B, A), ``previous_reward`` and ``time`` (B, 1)."""

    def __init__(self, env: VectorEnv[Any, Any, Any], time: bool = False) -> None:
        """Wrap a vector environment with a Dict observation and a Discrete action space."""
        super().__init__(env)
        self.single_observation_space = _extend(env.single_observation_space, env.single_action_space, time)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._shows_time = time
        self._n_actions = int(env.single_action_space.n)  # type: ignore[attr-defined]
        self._mode = env.metadata.get("autoreset_mode")
        self._began = np.zeros(env.num_envs, np.bool_)  # slots whose next step only resets (NEXT_STEP)
        self._decisions = np.zeros(env.num_envs, np.int64)  # so far, per slot
        self._last: dict[str, np.ndarray] = {}

    def reset(self, **kwargs: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Reset the environments, or those of ``options["reset_mask"]``."""
        mask = (kwargs.get("options") or {}).get("reset_mask")
        observation, info = self.env.reset(**kwargs)
        fresh = np.ones(self.num_envs, np.bool_) if mask is None else mask
        if not self._last:
            self._last = self._taken(np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs), fresh)
        for array in (*self._last.values(), self._decisions):
            array[fresh] = 0
        self._began[fresh] = False
        return {**observation, **{key: array.copy() for key, array in self._last.items()}}, info

    def step(self, actions: Any) -> tuple[dict[str, np.ndarray], Any, Any, Any, dict[str, Any]]:
        """Step the environments."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        self._decisions += 1
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            final = self._taken(actions, reward, np.zeros(self.num_envs, np.bool_))
            for i in np.flatnonzero(ended):
                info["final_obs"][i].update({key: array[i] for key, array in final.items()})
        fresh = ended if self._mode is AutoresetMode.SAME_STEP else self._began
        self._decisions[fresh] = 0
        self._last = self._taken(actions, reward, fresh)
        self._began = ended if self._mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, np.bool_)
        added = {key: array.copy() for key, array in self._last.items()}
        return {**observation, **added}, reward, terminated, truncated, info

    def _taken(self, actions: Any, reward: np.ndarray, fresh: np.ndarray) -> dict[str, np.ndarray]:
        """Return the new entries; zeros in the slots that have just been reset."""
        taken = np.zeros((self.num_envs, self._n_actions), np.float32)
        taken[np.arange(self.num_envs), actions] = 1
        taken[fresh] = 0
        earned = np.where(fresh, 0, reward).astype(np.float32)[:, None]
        time = {"time": np.log1p(self._decisions).astype(np.float32)[:, None]} if self._shows_time else {}
        return {"previous_action": taken, "previous_reward": earned, **time}
