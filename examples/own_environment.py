"""Bring tasks of your own: a task distribution becomes an environment, single and vector, by one call."""

import argparse
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from scipy.special import expit

import gents_gym
from gents_gym.randomness import stream


@dataclass(frozen=True)
class Doses:
    """Which dose for which patient? A dose helps some more than others, and too much of it harms."""

    n_actions: int = 5
    horizon: int = 200
    context_dim: int = 3

    def sample(self, seed, indices, split="test"):
        rngs = [stream(seed, "task", index, split) for index in indices]  # task i from its own generator alone
        doses, patients, helped, chances = self.draw(rngs, self.n_actions, self.horizon)
        return gents_gym.Tasks(doses, patients, helped, means=chances, oracle="logistic")

    def sample_actions(self, seed, indices, n_rows, split="train"):  # history, for agents that are fitted to some
        rngs = [stream(seed, "actions", index, split) for index in indices]
        doses, patients, helped, _ = self.draw(rngs, 1, n_rows)
        return gents_gym.ActionRows(doses[:, 0], patients, helped[:, :, 0])

    def draw(self, rngs, n_actions, n_rows):
        parts = [self.draw_one(rng, n_actions, n_rows) for rng in rngs]
        return (np.stack(part) for part in zip(*parts, strict=True))

    def draw_one(self, rng, n_actions, n_rows):
        doses, harm = rng.uniform(0, 2, n_actions), rng.uniform(0.5, 1)
        patients, needs = rng.normal(size=(n_rows, self.context_dim)), rng.normal(1, 0.5, self.context_dim)
        chances = expit(np.outer(patients @ needs, doses) - harm * doses**2)  # (T, A)
        return doses[:, None], patients, rng.random(chances.shape) < chances, chances


gents_gym.register_tasks("examples/Doses-v0", "own_environment:Doses")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--horizon", type=int, default=200)
    arguments = parser.parse_args()

    gents_gym.testing.check_vector_env("examples/Doses-v0")  # says in plain words what is wrong, if something is

    env = gym.make("examples/Doses-v0", n_actions=3)
    print("one task:", env.reset(seed=0)[0])
    envs = gym.make_vec("examples/Doses-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
    for name in ("random", "linucb(intercept=True)", "lints(intercept=True)"):
        found = gents_gym.rollout(envs, name, seed=0).summary()["expected"]
        print(f"{name:<24} expected regret {found['mean']:6.1f} ± {found['se']:.1f}, 99 % quantile {found['q99']:.1f}")
