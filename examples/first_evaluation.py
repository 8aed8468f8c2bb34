# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
#     language: python
# ---

# %% [markdown]
# # First evaluation
#
# This notebook compares TS-Gen with LinUCB and with a small agent of our own. It is made from
# `examples/first_evaluation.py` by `make notebook`. The environment variables `TASKS` and `HORIZON` set its size.

# %%
import os
import tempfile

import gymnasium as gym
import numpy as np

import gents_gym

TASKS = int(os.environ.get("TASKS", 20))  # tasks that every agent plays
HORIZON = int(os.environ.get("HORIZON", 100))  # decisions of a task
ENV = f"gents_gym/Synthetic-v0(horizon={HORIZON})"

# %% [markdown]
# ## One task by hand
#
# An episode is a task: ten actions with features, and a context at each decision.

# %%
env = gym.make("gents_gym/Synthetic-v0", horizon=HORIZON)
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step(3)
observation["context"], reward

# %% [markdown]
# ## Many tasks with an agent
#
# The record shows the mean, the standard error and the quantiles of the reward and of three regrets.

# %%
record = gents_gym.rollout(ENV, "ts-gen", tasks=TASKS, seed=0)
record

# %% [markdown]
# ## An agent of our own
#
# It plays the action of the best mean reward so far, and a random one in 10 % of decisions.


# %%
class EpsilonMean:
    """Plays the action of the best mean reward so far, and sometimes a random one."""

    def reset(self, info, rngs):
        self.rngs, self.reward_fn = rngs, info.reward_fn
        self.counts = np.ones((len(info), info.n_actions))
        self.sums = np.ones((len(info), info.n_actions))

    def act(self, context):
        best = (self.sums / self.counts).argmax(axis=1)
        draws = [(rng.random(), rng.integers(self.counts.shape[1])) for rng in self.rngs]
        return np.array([other if u < 0.1 else b for b, (u, other) in zip(best, draws, strict=True)])

    def observe(self, context, action, outcome):
        rows = np.arange(len(action))
        self.counts[rows, action] += 1
        self.sums[rows, action] += self.reward_fn(outcome)


gents_gym.testing.check_agent(EpsilonMean)  # raises at the first violation

# %% [markdown]
# ## All agents on the same tasks

# %%
with tempfile.TemporaryDirectory() as folder:
    found = gents_gym.evaluate(["ts-gen", "linucb", EpsilonMean], folder, env=ENV, tasks=TASKS, workers=1)
records = found.records[ENV]
print(gents_gym.compare(records, "ts-gen", "linucb", "expected"))
found

# %%
found.plot()
