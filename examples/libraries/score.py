"""Plays the test split with a policy of another library, and compares its reward with a random player."""

import importlib.metadata
from collections.abc import Callable

import gymnasium as gym
import numpy as np

import gents_gym  # noqa: F401  (registers the environments)

ID = "gents_gym/Synthetic-v0"
SIZES = {"horizon": 50, "n_actions": 5}
TASKS = 200

Choose = Callable[[dict[str, np.ndarray]], np.ndarray]  # observations of B tasks to actions (B,)


def earned(choose: Choose) -> float:
    """Return the reward per decision over the test split's first tasks."""
    envs = gym.make_vec(ID, num_envs=TASKS, **SIZES)
    observation, _ = envs.reset(seed=0)
    total = 0.0
    for _ in range(SIZES["horizon"]):
        observation, reward, *_ = envs.step(np.asarray(choose(observation)).reshape(TASKS))
        total += reward.mean()
    return total / SIZES["horizon"]


def flat(observation: dict[str, np.ndarray], keys: tuple[str, ...] = ("context", "action_features")) -> np.ndarray:
    """Return one row per task; the order of the keys is Gymnasium's by default, and alphabetical in some libraries."""
    return np.concatenate([observation[key].reshape(TASKS, -1) for key in keys], axis=1)


def report(library: str, steps: int, choose: Choose) -> None:
    """Print the library's version, the steps it was trained for and what it earns."""
    rng = np.random.default_rng(0)
    chance = earned(lambda _: rng.integers(SIZES["n_actions"], size=TASKS))
    version = importlib.metadata.version(library)
    print(f"{library} {version}, gymnasium {gym.__version__}: trained for {steps} steps; reward per decision on the")
    print(f"test split {earned(choose):.3f}, of a random player {chance:.3f}")
