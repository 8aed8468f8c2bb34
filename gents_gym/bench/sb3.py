"""Measures environment steps per second while stable-baselines3's PPO collects rollouts, bridged or not."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from gents_gym.bench.timing import Sizes, compete

ID = "gents_gym/Synthetic-v0"


def measure_sb3(sizes: Sizes) -> dict[str, float | None]:
    """Return the ratio of the two, with the rates that it comes from; None if the library is missing.

    Both have ``sizes.tasks`` environments; a rollout is one episode of each, including its reset and drawing its task.
    """
    if importlib.util.find_spec("stable_baselines3") is None:
        return {"ppo_rollout_speedup": None}
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    from gents_gym.envs.sb3 import SB3VecEnv

    torch.set_num_threads(1)
    horizon, n_envs = max(2, sizes.horizon // 5), sizes.tasks
    config: dict[str, Any] = {"split": "train", "horizon": horizon}
    bridged = SB3VecEnv(gym.make_vec(ID, num_envs=n_envs, **config))
    singles = make_vec_env(ID, n_envs=n_envs, env_kwargs=config)
    contestants = {
        "ppo_rollout_bridged_steps_per_second": _rollouts(bridged, horizon),
        "ppo_rollout_make_vec_env_steps_per_second": _rollouts(singles, horizon),
    }
    rates = compete(contestants, sizes.rounds)
    return {"ppo_rollout_speedup": rates.ratio(*contestants), **{name: rates.rate(name) for name in contestants}}


def _rollouts(envs: Any, horizon: int) -> Callable[[], float]:
    """Steps per second of one rollout; the update after it, one pass with one batch, is not timed."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    class Clock(BaseCallback):  # type: ignore[misc]
        def _on_rollout_start(self) -> None:
            self.started = time.perf_counter()

        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            self.seconds = time.perf_counter() - self.started

    steps = horizon * envs.num_envs
    model = PPO("MultiInputPolicy", envs, n_steps=horizon, batch_size=steps, n_epochs=1, device="cpu", seed=0)

    def run() -> float:
        clock = Clock()
        model.learn(steps, callback=clock)
        return steps / clock.seconds

    return run
