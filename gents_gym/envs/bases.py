"""Gymnasium's base classes with their type arguments, for type checkers alone.

Some of them cannot be subscripted at run time before Gymnasium 1.4, and libraries pin older versions.
"""

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

Observation = dict[str, np.ndarray]

if TYPE_CHECKING:
    EnvBase = gym.Env[Observation, np.int64]
    VectorEnvBase = VectorEnv[Observation, np.ndarray, np.ndarray]
    WrapperBase = gym.Wrapper[Any, Any, Any, Any]
    VectorWrapperBase = VectorWrapper[Any, Any, Any, Any, Any]
else:
    EnvBase, VectorEnvBase, WrapperBase, VectorWrapperBase = gym.Env, VectorEnv, gym.Wrapper, VectorWrapper
