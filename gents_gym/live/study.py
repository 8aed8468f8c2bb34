"""Measures what a window costs in regret: TS-Gen fits its policies to the latest rows alone.

Run it by ``python -m gents_gym.live.study``; docs/live.md has its table.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from gents_gym.construct import make_tasks
from gents_gym.live.store import Event, pack
from gents_gym.live.streams import Setting, Stream
from gents_gym.models.load import load_model
from gents_gym.types import Tasks, identity

MODEL = "synthetic-filter"
WINDOWS = (50, 200, 1000, 10_000)


def run_study(agent: str, windows: Sequence[int], tasks: Tasks, seed: int = 0) -> np.ndarray:
    """Return the regret of live streams against the best action in each context, (windows, B).

    A stream's random numbers are the same with every window, so differences between windows are paired.

    Args:
        agent: An agent on a model, with its options.
        windows: Rows that policies are fitted to.
        tasks: B tasks, each of which is one stream.
        seed: Seed of the agent.
    """
    model, size = load_model(MODEL), tasks.context_dim
    settings = [Setting(agent, model, size, seed, window, identity) for window in windows]
    return np.array([[_play(Stream(str(i), one), tasks[i]) for i in range(len(tasks))] for one in settings])


def _play(stream: Stream, task: Tasks) -> float:
    """Play one task to its end, with each outcome before the next decision, and return the regret."""
    assert task.means is not None
    for i, features in enumerate(task.action_features[0]):
        stream.apply(Event(i + 1, 0.0, stream.name, "add", action=str(i), vector=pack(features, np.float32)))
    regret = 0.0
    for t, context in enumerate(task.contexts[0]):
        action, _ = stream.choose(context, stream.live, False)
        made = Event(stream.seq + 1, 0.0, stream.name, "decide", action=str(action), vector=pack(context, np.float32))
        stream.apply(made)
        outcome = float(task.outcomes[0, t, action])
        stream.apply(Event(made.seq + 1, 0.0, stream.name, "outcome", decision=made.seq, value=outcome))
        regret += float(task.means[0, t].max() - task.means[0, t, action])
    return regret


def summarise(windows: Sequence[int], regret: np.ndarray) -> str:
    """Return a Markdown table of regret (windows, B): means, and how much more than with the last of the windows."""
    lines = ["| `window` | regret | more than with the last one |", "|---|---:|---:|"]
    for window, own in zip(windows, regret, strict=True):
        more = own - regret[-1]
        error = more.std(ddof=1) / np.sqrt(len(more))
        extra = "" if window == windows[-1] else f"{more.mean():+.1f} ± {error:.1f}"
        lines.append(f"| {window:,} | {own.mean():.1f} | {extra} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", default="ts-gen(m=64)")
    parser.add_argument("--windows", type=int, nargs="*", default=WINDOWS)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--decisions", type=int, default=2000)
    given = parser.parse_args()
    drawn = make_tasks("synthetic", horizon=given.decisions).sample(0, range(given.tasks), "validation")
    print(summarise(given.windows, run_study(given.agent, given.windows, drawn)))
