"""A shop that learns live: decisions as visitors come, clicks as they arrive, a restart, and a log in the end.

Items and visitors are invented. Everything that happens is in one file, ``decisions.db``, and so is the agent: the
second half of the day is played by another ``Live`` on the same file.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import gents_gym

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=2, help="shops, each a stream of its own")
parser.add_argument("--horizon", type=int, default=200, help="visitors of each shop")
arguments = parser.parse_args()
store = Path(tempfile.mkdtemp()) / "decisions.db"
shops = gents_gym.make_tasks("synthetic", horizon=arguments.horizon).sample(0, range(arguments.tasks), "test")
rng, waiting, clicks = np.random.default_rng(0), [], 0.0

for half in np.array_split(np.arange(arguments.horizon), 2):
    with gents_gym.Live(store, agent="ts-gen(m=64)", model="filter") as live:  # the second time, it goes on
        for shop in range(arguments.tasks) if half[0] == 0 else []:
            for i, features in enumerate(shops.action_features[shop]):
                live.add(f"item-{i}", features, stream=f"shop-{shop}")
        for t in half:
            for shop in range(arguments.tasks):
                decision = live.decide(shops.contexts[shop, t], stream=f"shop-{shop}", votes=t % 10 == 0)
                waiting.append((decision.id, shops.outcomes[shop, t, int(decision.action[5:])]))
            while waiting and rng.random() < 0.8:  # clicks arrive late and in any order; some never do
                decision_id, click = waiting.pop(rng.integers(len(waiting)))
                live.outcome(decision_id, click)
                clicks += click

log = gents_gym.read_decisions(store)  # what `gents-gym train --data` and `gents-gym offline --data` read
print(f"{len(log)} outcomes arrived of {arguments.tasks * arguments.horizon} decisions")
print(f"clicks per visitor: {clicks / len(log):.2f}; if items were shown at random: {shops.outcomes.mean():.2f}")
