"""Train p_θ on the log of another policy, and compare with training on complete data.

An ε-greedy LinUCB plays tasks of the train split; of each decision, the log keeps the context, the action and
its outcome. Most actions are played seldom, so their rows are few.
"""

import argparse
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gents_gym
from gents_gym.agents.linucb import LinUCB
from gents_gym.training.data import read_logs
from gents_gym.training.folder import split_actions
from gents_gym.training.losses import measure


class EpsilonGreedyLinUCB:
    """Plays LinUCB's action, or, one time in ten, any."""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon
        self.greedy = LinUCB(intercept=True)

    def reset(self, info, rngs):
        self.n_actions, self.rngs = info.n_actions, rngs
        self.greedy.reset(info, rngs)

    def act(self, context):
        explore = np.array([rng.random() < self.epsilon for rng in self.rngs])
        anything = np.array([rng.integers(self.n_actions) for rng in self.rngs])
        return np.where(explore, anything, self.greedy.act(context))

    def observe(self, context, action, outcome):
        self.greedy.observe(context, action, outcome)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=1000)
parser.add_argument("--horizon", type=int, default=500)
arguments = parser.parse_args()

# Play, and write the log as anyone's log could be: a table of decisions, and a table of actions.
envs = gym.make_vec(
    "gents_gym/Synthetic-v0",
    num_envs=arguments.tasks,
    horizon=arguments.horizon,
    split="train",
    autoreset_mode="Disabled",
)
record = gents_gym.rollout(envs, EpsilonGreedyLinUCB(), seed=0)
tasks = envs.unwrapped.tasks
task = np.repeat(np.arange(arguments.tasks), arguments.horizon)
contexts = tasks.contexts.reshape(-1, tasks.context_dim)
log = {"task": task, "action": record.actions.ravel(), "outcome": record.rewards.ravel()}
log |= {f"x{j}": contexts[:, j] for j in range(tasks.context_dim)}
played = np.unique(np.stack([log["task"], log["action"]], axis=1), axis=0)  # an action without rows teaches nothing
features = tasks.action_features[played[:, 0], played[:, 1]]
actions = {"task": played[:, 0], "action": played[:, 1], "z1": features[:, 0], "z2": features[:, 1]}
folder = Path(tempfile.mkdtemp())
pq.write_table(pa.table(log), folder / "logs.parquet")
pq.write_table(pa.table(actions), folder / "z.parquet")
counts = np.unique(log["task"] * tasks.n_actions + log["action"], return_counts=True)[1]
print(f"logged {len(task)} decisions of {len(played)} actions; rows per action: median {np.median(counts):.0f}, "
      f"from {counts.min()} to {counts.max()}")  # fmt: skip

# Train on the log, and on complete rows of as many actions.
config = gents_gym.preset_config("filter", horizon=arguments.horizon, choose=False)  # outcomes are linear here
logged, _ = gents_gym.train(*split_actions(read_logs(folder / "logs.parquet", folder / "z.parquet"), 0.2, 0), config)
complete_rows = gents_gym.RowSets.from_rows(
    gents_gym.make_tasks("synthetic").sample_actions(0, range(len(played)), arguments.horizon)
)
complete, _ = gents_gym.train(*split_actions(complete_rows, 0.2, 0), config)

# Compare on held-out actions.
rows = gents_gym.make_tasks("synthetic").sample_actions(0, range(2 * arguments.tasks), arguments.horizon, "test")
exact = gents_gym.ExactModel(gents_gym.make_tasks("synthetic").truth, n_weighted=64)
losses = measure({"logged": logged, "complete": complete, "exact": exact}, rows)
for name in ("logged", "complete", "exact"):
    mean, error = losses.mean(name, arguments.horizon)
    gap, gap_error = losses.gap(name, "exact", arguments.horizon)
    print(f"{name:<10} loss {mean:.4f} ± {error:.4f}, above exact by {gap:.5f} ± {gap_error:.5f} nats per step")
