"""Plays the test split with a policy of another library, and compares its reward with a random player."""

import importlib.metadata
import sys
from collections.abc import Callable

import gymnasium as gym
import numpy as np

import gents_gym  # noqa: F401  (registers the environments)

ID = "gents_gym/Synthetic-v0"
SIZES = {"horizon": 50, "n_actions": 5}
TASKS = 200
MARGIN = 0.05  # reward per decision that training is worth at least; the libraries reach 0.13 to 0.14

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


def flat(observation: dict[str, np.ndarray]) -> np.ndarray:
    """Return one row per task, with the keys in alphabetical order, as in Gymnasium's Dict spaces."""
    return np.concatenate([observation[key].reshape(TASKS, -1) for key in sorted(observation)], axis=1)


def report(library: str, steps: int, choose: Choose) -> None:
    """Print the library's version, its steps of training and what it earns; exit with 1 if that is too little."""
    rng = np.random.default_rng(0)
    chance, found = earned(lambda _: rng.integers(SIZES["n_actions"], size=TASKS)), earned(choose)
    version = importlib.metadata.version(library)
    print(f"{library} {version}, gymnasium {gym.__version__}: trained for {steps} steps; reward per decision on the")
    print(f"test split {found:.3f}, of a random player {chance:.3f}")
    if not found >= chance + MARGIN:
        sys.exit(f"{library}: a trained policy must earn {MARGIN} more than a random player, got {found - chance:.3f}")
