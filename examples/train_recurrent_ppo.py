"""Train sb3-contrib's RecurrentPPO to learn during a task (RL²), and compare it with our agents in an evaluation.

`VectorPreviousStep` shows the network what it played and earned last, and the time; its LSTM is the memory.
"""

import argparse
from pathlib import Path

import gymnasium as gym
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import VecMonitor

import gents_gym
from gents_gym.envs.sb3 import SB3VecEnv

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100)
parser.add_argument("--horizon", type=int, default=500)
parser.add_argument("--steps", type=int, default=2_000_000)
parser.add_argument("--envs", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/recurrent-ppo"))
arguments = parser.parse_args()

envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.envs, split="train", horizon=arguments.horizon)
model = RecurrentPPO(
    "MultiInputLstmPolicy",
    VecMonitor(SB3VecEnv(gents_gym.VectorPreviousStep(envs, time=True))),
    n_steps=min(128, arguments.horizon),  # the LSTM learns from sequences of so many decisions
    batch_size=16 * arguments.envs,
    gamma=0.99,  # what is learned now pays later
    policy_kwargs={"lstm_hidden_size": 128, "enable_critic_lstm": False, "shared_lstm": True},
    seed=arguments.seed,
    device="cpu",
)
model.learn(arguments.steps, progress_bar=True)
arguments.out.mkdir(parents=True, exist_ok=True)
model.save(arguments.out / "model.zip")

agent = f"sb3(path='{arguments.out}/model.zip'"
config = gents_gym.EvaluationConfig(
    (f"{agent})", f"{agent}, deterministic=False)", "linucb", "greedy"),
    env=(f"gents_gym/Synthetic-v0(horizon={arguments.horizon})",),
    tasks=arguments.tasks,
)
found = gents_gym.evaluate(config, arguments.out / "evaluation")
for name, record in found.records[config.env[0]].items():
    regret = record.summary()["expected"]
    print(f"{name:<64} expected regret {regret['mean']:6.1f} ± {regret['se']:.1f}, 99 % quantile {regret['q99']:.1f}")
