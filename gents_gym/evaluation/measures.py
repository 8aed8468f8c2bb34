"""Defines the measures that agents are compared by: regrets, rewards, totals per task, and which to show first."""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from gents_gym.evaluation.regret import REGRETS
from gents_gym.evaluation.rollout import Rollout
from gents_gym.words import count

Records = Mapping[str, Rollout]  # by agent, all on the same tasks
CONFIDENCE = 0.95  # level of the intervals
TAILS = {"reward": {"q10": 0.1, "q01": 0.01}}  # quantiles of a measure's bad tail; for regrets it is the upper one
UPPER = {"q90": 0.9, "q99": 0.99}


def measures(records: Records) -> tuple[str, ...]:
    """Return the measures that can be compared: the regrets that every record has, and the reward.

    ``best`` comes first if the oracle is a poor yardstick.
    """
    found = [name for name in REGRETS if all(name in record.regret for record in records.values())]
    if poor_yardstick(records) is not None:
        found.sort(key="best".__ne__)
    return (*found, "reward")


def main_measure(records: Records) -> str:
    """Return the measure to look at first: expected regret, or best regret if the oracle is a poor yardstick."""
    found = measures(records)
    return "expected" if "expected" in found and found[0] != "best" else found[0]


def bad_tail(measure: str, n_tasks: int) -> dict[str, str]:
    """Return the quantiles of a measure's bad tail and their column heads, by key.

    A quantile beyond all but one of ``n_tasks`` is marked "†", because it is nearly the worst task.
    """
    quantiles = TAILS.get(measure, UPPER)
    return {key: f"{100 * q:g} %{'†' if n_tasks * min(q, 1 - q) < 0.999 else ''}" for key, q in quantiles.items()}


def tail_note(measure: str, n_tasks: int) -> str:
    """Return the meaning of the mark of :func:`bad_tail`; an empty text if nothing is marked."""
    marked = [head.rstrip("†") for head in bad_tail(measure, n_tasks).values() if head.endswith("†")]
    extreme = "minimum" if measure == "reward" else "maximum"
    tasks = count(n_tasks, "task")
    return f"† of {tasks}, the {' and '.join(marked)} quantile is nearly the {extreme}" if marked else ""


def poor_yardstick(records: Records) -> str | None:
    """Return a sentence if an agent beats the oracle that regrets are measured against; None if none does.

    The oracle is fitted to the table's outcomes, and can overfit them. Its own ``best`` regret is any agent's ``best``
    minus that agent's ``expected`` regret. An agent beats it if the interval for the mean ``expected`` regret is below
    zero.
    """
    known = {agent: record for agent, record in records.items() if {"expected", "best"} <= record.regret.keys()}
    better = [agent for agent, record in known.items() if _is_negative(totals(record, "expected"))]
    if not better:
        return None
    means = {agent: float(totals(known[agent], "best").mean()) for agent in better}
    first = min(better, key=means.__getitem__)
    oracle = means[first] - float(totals(known[first], "expected").mean())
    return (
        f"The oracle is a poor yardstick here: its own best regret is {oracle:.1f} per task, that of {first} is "
        f"{means[first]:.1f}. Oracle and expected regret are measured against it; compare agents by best regret."
    )


def remark_lines(records: Records) -> list[str]:
    """Return the records' remarks, each once, behind the agents that it is about."""
    agents: dict[str, list[str]] = {}
    for agent, record in records.items():
        for remark in record.remarks:
            agents.setdefault(remark, []).append(agent)
    return [f"{', '.join(names)}: {remark}" for remark, names in agents.items()]


def _is_negative(values: np.ndarray) -> bool:
    """Return whether Student's confidence interval for the mean lies below zero."""
    if len(values) < 2:
        return False
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return bool(values.mean() + half < 0)


def totals(record: Rollout, measure: str) -> np.ndarray:
    """Return each task's cumulative regret, or its reward, (B,)."""
    return record.cumulative(measure)[:, -1]
