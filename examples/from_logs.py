"""From a log to an answer: check a CSV file, train p_θ on it, and ask what other agents would have earned.

A website shows each visitor one of its items and logs what was shown and whether it was clicked on. Here it is
invented: many days, each with ten items of its own, and a policy that favours some items by the visitor. With a CSV
file of yours, name its columns in ``ROLES``.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import gents_gym
from gents_gym.logs.check import check_data
from gents_gym.logs.describe import describe
from gents_gym.offline.page import conclusions, limits, warnings, write_answers
from gents_gym.offline.study import Linear, draw_actions
from gents_gym.training.folder import split_time, train_to_folder

ROLES = gents_gym.Roles(
    action="item",
    outcome="click",
    context=("u*", "device"),
    action_features=("price", "age"),
    time="ts",
    propensity="p",
    task="day",
)
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100, help="days")
parser.add_argument("--horizon", type=int, default=300, help="visitors of a day")
parser.add_argument("--agents", nargs="+", default=["greedy", "linucb"])
arguments = parser.parse_args()
folder = Path(tempfile.mkdtemp())

# 1. A log, as any website could have it: one row per visitor, with the probability of what was shown.
days = gents_gym.make_tasks("synthetic", horizon=arguments.horizon).sample(0, range(arguments.tasks), "train")
rng = np.random.default_rng(0)
contexts = days.contexts.reshape(-1, days.context_dim)  # (rows, D)
shares = Linear(rng.normal(size=(days.context_dim, days.n_actions)), 1.0, uniform=0.5).probabilities(contexts)
shown, rows = draw_actions(shares, rng.random(len(contexts))), np.arange(len(contexts))
day = rows // arguments.horizon
features = days.action_features[day, shown]
log = {"ts": rows, "day": day, "item": shown, "click": days.outcomes.reshape(-1, days.n_actions)[rows, shown]}
log |= {f"u{j}": contexts[:, j] for j in range(days.context_dim)}
log |= {"device": np.array(["mobile", "desktop"])[rng.integers(2, size=len(rows))], "p": shares[rows, shown]}
pa.csv.write_csv(pa.table({**log, "price": features[:, 0], "age": features[:, 1]}), folder / "site.csv")

# 2. What is in it, and what is odd about it?
checked = check_data(folder / "site.csv", ROLES)
print("\n".join([*checked.odd, *checked.fatal]) or "nothing odd was found")
logs = gents_gym.read_logs(folder / "site.csv", ROLES)
print("\n".join(describe(logs)))

# 3. Train on the earlier days; the latest fifth of the rows validates.
config = gents_gym.preset_config("filter", horizon=arguments.horizon, choose=False)
train_to_folder(*split_time(logs, 0.2), config, folder / "model", "logs: site.csv")
print((folder / "model" / "README.md").read_text().partition("| held-out loss")[2].splitlines()[2])

# 4. What would other agents have earned on the latest days? The command line does all this too: see docs/logs.md.
asked = gents_gym.OfflineConfig(last=0.2, orders=2, tables=4)
answers = gents_gym.evaluate_offline(logs, arguments.agents, folder / "model", asked)
print(f"the logged policy earned {answers.logged.value:.3f} clicks per visitor")
print("\n".join([*conclusions(answers), *warnings(answers), *limits(answers)]))
print(f"the whole table, and a page: {write_answers(answers, folder / 'answers')}")
