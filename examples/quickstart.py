"""Play one task by hand with `gym.make`, then many at once with `rollout`."""

import argparse

import gymnasium as gym

import gents_gym

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100)
parser.add_argument("--horizon", type=int, default=500)
arguments = parser.parse_args()

# One task, one decision at a time: an ordinary Gymnasium environment.
env = gents_gym.RecordRegret(gym.make("gents_gym/Synthetic-v0", horizon=arguments.horizon, render_mode="ansi"))
observation, info = env.reset(seed=0)
terminated = False
while not terminated:
    action = int(observation["action_features"].sum(axis=1).argmax())  # play the action with the largest features
    observation, reward, terminated, truncated, info = env.step(action)
print(env.render())
print("regret of playing the action with the largest features:", info["regret"])

# Many tasks side by side, played by agents of ours.
envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
for name in ("random", "lints", "linucb", "linucb(intercept=True)"):
    record = gents_gym.rollout(envs, gents_gym.make_agent(name), seed=0)
    found = record.summary()["expected"]
    print(f"{name:<24} expected regret {found['mean']:6.1f} ± {found['se']:.1f}, 99 % quantile {found['q99']:.1f}")
