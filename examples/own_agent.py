"""Bring an agent of your own: batched with three verbs, or for one task at a time with `act` alone."""

import argparse

import gymnasium as gym
import numpy as np
from scipy.special import expit

import gents_gym
from gents_gym.agents.per_task import PerTask


class LogisticTS:
    """Thompson sampling on a Bayesian logistic regression per action, a Laplace approximation after each outcome."""

    def __init__(self, scale=1.0):
        self.scale = scale  # standard deviation of the prior, N(0, scale² I)

    def reset(self, info, rngs):  # B tasks with A actions; K = 1 + D coefficients each
        self.info, self.rngs, size = info, rngs, 1 + info.context_dim
        self.mean = np.zeros((len(info), info.n_actions, size))
        self.covariance = np.tile(self.scale**2 * np.eye(size), (len(info), info.n_actions, 1, 1))

    def act(self, context):
        x = self.features(context)  # (B, K)
        mean = np.einsum("bak,bk->ba", self.mean, x)
        variance = np.einsum("bakl,bk,bl->ba", self.covariance, x, x)
        noise = np.stack([rng.standard_normal(self.info.n_actions) for rng in self.rngs])
        return (mean + np.sqrt(variance) * noise).argmax(axis=1)

    def observe(self, context, action, outcome):
        x, reward, played = self.features(context), self.info.reward_fn(outcome), (np.arange(len(action)), action)
        direction = np.einsum("bkl,bl->bk", self.covariance[played], x)  # Px
        logit, variance = np.einsum("bk,bk->b", self.mean[played], x), np.einsum("bk,bk->b", direction, x)
        shift = np.zeros(
            len(action)
        )  # the mode is at mean + shift · Px, where shift = reward - σ(logit + variance · shift)
        for _ in range(10):  # Newton's method
            p = expit(logit + variance * shift)
            shift -= (shift - reward + p) / (1 + variance * p * (1 - p))
        p = expit(logit + variance * shift)
        shrink = p * (1 - p) / (1 + variance * p * (1 - p))
        self.mean[played] += shift[:, None] * direction
        self.covariance[played] -= shrink[:, None, None] * direction[:, :, None] * direction[:, None]

    def features(self, context):
        return np.column_stack([np.ones(len(context)), context])


class LargestFeature:
    """Needs no more than the observation of one task: the action whose features fit the context best."""

    def act(self, observation):
        return int((observation["action_features"] @ (1 + observation["context"][:2])).argmax())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--horizon", type=int, default=500)
    arguments = parser.parse_args()

    gents_gym.testing.check_agent(LogisticTS)  # says in plain words what is wrong, if something is

    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
    agents = {
        "LogisticTS": LogisticTS(),
        "LargestFeature": PerTask(LargestFeature),
        "linucb": gents_gym.make_agent("linucb"),
    }
    for name, agent in agents.items():
        found = gents_gym.rollout(envs, agent, seed=0).summary()["expected"]
        print(f"{name:<24} expected regret {found['mean']:6.1f} ± {found['se']:.1f}, 99 % quantile {found['q99']:.1f}")
