"""Play coba's learners through ``per-task``: an object with act and observe around each learner."""

import argparse
import sys

import gymnasium as gym
from coba.learners import BanditEpsilonLearner, LinTSLearner, LinUCBLearner
from score import ID, SIZES

import gents_gym
from gents_gym.agents.per_task import PerTask

SHARE = 0.8  # of a random player's regret, for every learner; they reach 0.44 to 0.64


class Coba:
    """A coba learner for one task; actions are their features followed by their one-hot numbers."""

    def __init__(self, learner, **options):
        self.make, self.options = learner, options

    def reset(self, info, rng):
        self.learner = self.make(**self.options, seed=int(rng.integers(2**31)))
        features, n_actions = info.action_features[0].tolist(), info.n_actions
        self.actions = [tuple(row) + tuple(float(i == j) for j in range(n_actions)) for i, row in enumerate(features)]

    def act(self, observation):
        action, self.probability = self.learner.predict(observation["context"].tolist(), self.actions)[:2]
        return self.actions.index(tuple(action))

    def observe(self, observation, action, reward):
        self.learner.learn(observation["context"].tolist(), self.actions[action], reward, self.probability)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20)
    envs = gym.make_vec(ID, num_envs=parser.parse_args().tasks, **SIZES)
    agents = {
        "coba's LinUCB": PerTask(lambda: Coba(LinUCBLearner, alpha=0.1)),
        "coba's LinTS": PerTask(lambda: Coba(LinTSLearner, v=0.1)),
        "coba's epsilon-greedy": PerTask(lambda: Coba(BanditEpsilonLearner, epsilon=0.05)),
        "our linucb": gents_gym.make_agent("linucb"),
        "random": gents_gym.make_agent("random"),
    }
    regret = {}
    for name, agent in agents.items():
        found = gents_gym.rollout(envs, agent, seed=0).summary()["expected"]
        print(f"{name:<24} expected regret {found['mean']:6.1f} ± {found['se']:.1f}")
        regret[name] = found["mean"]
    worst = max(found for name, found in regret.items() if name.startswith("coba"))
    if not worst <= SHARE * regret["random"]:
        sys.exit(f"coba: regret must be at most {SHARE} of a random player's, got {worst / regret['random']:.2f}")
