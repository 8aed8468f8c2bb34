"""What the records of an evaluation say: totals per task, tables, curves and distributions out of :class:`Rollout`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.evaluation.regret import REGRETS
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import Evaluation

Records = Mapping[str, Rollout]  # by agent, all on the same tasks
Row = dict[str, Any]
CONFIDENCE = 0.95  # of intervals


def measures(records: Records) -> tuple[str, ...]:
    """Return what can be compared: the regrets that every record has, and the reward.

    The one to look at leads: ``best`` if the oracle is a poor yardstick.
    """
    found = [name for name in REGRETS if all(name in record.regret for record in records.values())]
    if poor_yardstick(records) is not None:
        found.sort(key="best".__ne__)
    return (*found, "reward")


def poor_yardstick(records: Records) -> str | None:
    """Return a sentence if an agent beats the oracle that regrets are measured against; None if none does.

    The oracle is fitted to the table's outcomes, and can overfit them. Its own ``best`` regret is an agent's ``best``
    less its ``expected`` regret. An agent beats it if the interval for the mean ``expected`` regret is below zero.
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


def _is_negative(values: np.ndarray) -> bool:
    """Return whether Student's interval for the mean lies below zero."""
    if len(values) < 2:
        return False
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return bool(values.mean() + half < 0)


def totals(record: Rollout, measure: str) -> np.ndarray:
    """Return each task's cumulative regret, or its reward, (B,)."""
    return record.cumulative(measure)[:, -1]


def summary_rows(env: str, records: Records) -> list[Row]:
    """Return a row per agent: mean, s.e., median and tail of each measure's totals, and the time per decision."""
    rows, names = [], measures(records)
    for agent, record in records.items():
        found = record.summary()
        row: Row = {"env": env, "agent": agent, "privileged": record.privileged, "tasks": len(record.actions)}
        for measure in names:
            row.update({f"{measure}_{statistic}": value for statistic, value in found[measure].items()})
        rows.append({**row, "ms_per_decision": 1e3 * record.seconds_per_decision})
    return rows


def curve(record: Rollout, measure: str, points: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps, the mean over tasks of what is cumulated up to them, and its s.e., (P,) each.

    Args:
        record: What happened.
        measure: A regret's name, or "reward".
        points: How many steps to keep at the most, evenly spread, with the first and the last among them.
    """
    mean, error = record.curve(measure)
    kept = _spread(len(mean), points)
    return kept + 1, mean[kept], error[kept]


def distribution(record: Rollout, measure: str, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks' totals in order and the share of tasks that are at or below them, (P,) each.

    Args:
        record: What happened.
        measure: A regret's name, or "reward".
        points: How many totals to keep at the most, evenly spread, with the least and the largest among them.
    """
    values = np.sort(totals(record, measure))
    kept = _spread(len(values), points)
    return values[kept], (kept + 1) / len(values)


def _spread(size: int, points: int) -> np.ndarray:
    """Return at most ``points`` indices into ``size`` values, with both ends."""
    points = min(check_integer("points", points, 2), size)
    return np.linspace(0, size - 1, points).round().astype(int)


def rliable_scores(found: Evaluation, measure: str = "reward") -> dict[str, np.ndarray]:
    """Return scores as rliable takes them: by agent, an array (runs, tasks) in which more is better.

    What rliable calls a task is an environment here, and its runs are the tasks drawn from it: those are the
    independent repetitions that it resamples. A score is a mean per decision, so that horizons do not weigh; regrets
    are negated. Agents that have not played all environments are left out.

    Args:
        found: The results.
        measure: A regret's name, or "reward".
    """
    environments = list(found.records.values())
    agents = [agent for agent in found.manifest["agents"] if all(agent in records for records in environments)]
    if not agents or len(environments) < len(found.manifest["env"]):
        raise InputError("found must hold an agent that has played all environments, got none")
    for records in environments:
        check_choice("measure", measure, measures(records))
    sign = 1 if measure == "reward" else -1

    def scores(record: Rollout) -> np.ndarray:
        return sign * totals(record, measure) / (record.actions >= 0).sum(axis=1)

    return {agent: np.stack([scores(records[agent]) for records in environments], axis=1) for agent in agents}
