"""Bring an agent of your own: batched with three verbs, or for one task at a time with `act` alone."""

import argparse

import gymnasium as gym
import numpy as np

import gents_gym
from gents_gym.agents.per_task import PerTask


class EpsilonFirst:
    """Plays every action a few times in turn, then the one with the best mean reward so far; contexts are ignored."""

    def __init__(self, rounds=5):
        self.rounds = rounds

    def reset(self, info, rngs):
        self.sums = np.zeros((len(info), info.n_actions))
        self.counts = np.zeros((len(info), info.n_actions))
        self.reward_fn = info.reward_fn

    def act(self, context):
        least = self.counts.argmin(axis=1)
        means = self.sums / np.maximum(self.counts, 1)
        return np.where(self.counts.min(axis=1) < self.rounds, least, means.argmax(axis=1))

    def observe(self, context, action, outcome):
        tasks = np.arange(len(action))
        self.sums[tasks, action] += self.reward_fn(outcome)
        self.counts[tasks, action] += 1


class LargestFeature:
    """Needs no more than the observation of one task: the action whose features fit the context best."""

    def act(self, observation):
        return int((observation["action_features"] @ (1 + observation["context"][:2])).argmax())


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100)
parser.add_argument("--horizon", type=int, default=500)
arguments = parser.parse_args()

envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
agents = {
    "EpsilonFirst": EpsilonFirst(),
    "LargestFeature": PerTask(LargestFeature),
    "linucb": gents_gym.make_agent("linucb"),
}
for name, agent in agents.items():
    found = gents_gym.rollout(envs, agent, seed=0).summary()["expected"]
    print(f"{name:<24} expected regret {found['mean']:6.1f} ± {found['se']:.1f}, 99 % quantile {found['q99']:.1f}")
