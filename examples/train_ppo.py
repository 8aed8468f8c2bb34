"""Train stable-baselines3's PPO on the train split, save it, and compare it with our agents in an evaluation.

PPO without a memory cannot learn during a task: it plays what is best on average for these features and this context.
"""

import argparse
from pathlib import Path

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

import gents_gym
from gents_gym.envs.sb3 import SB3VecEnv

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100)
parser.add_argument("--horizon", type=int, default=500)
parser.add_argument("--steps", type=int, default=1_000_000)
parser.add_argument("--envs", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/ppo"))
arguments = parser.parse_args()

# The native vector environment, bridged: 64 tasks per step.
envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.envs, split="train", horizon=arguments.horizon)
model = PPO(
    "MultiInputPolicy",
    VecMonitor(SB3VecEnv(envs)),
    n_steps=64,
    batch_size=16 * arguments.envs,
    gamma=0.0,  # what is played changes no later context, and without a memory nothing later at all
    seed=arguments.seed,
    device="cpu",
)
model.learn(arguments.steps, progress_bar=True)
arguments.out.mkdir(parents=True, exist_ok=True)
model.save(arguments.out / "model.zip")

config = gents_gym.EvaluationConfig(
    (f"sb3(path='{arguments.out}/model.zip')", "linucb", "greedy"),
    env=(f"gents_gym/Synthetic-v0(horizon={arguments.horizon})",),
    tasks=arguments.tasks,
)
found = gents_gym.evaluate(config, arguments.out / "evaluation")
for name, record in found.records[config.env[0]].items():
    regret = record.summary()["expected"]
    print(f"{name:<40} expected regret {regret['mean']:6.1f} ± {regret['se']:.1f}, 99 % quantile {regret['q99']:.1f}")
