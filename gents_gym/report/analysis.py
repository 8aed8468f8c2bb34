"""Computes totals per task, tables, curves and distributions from the records of an evaluation."""

from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.evaluation.measures import Records, measures, totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import Evaluation

Row = dict[str, Any]


def summary_rows(env: str, records: Records, baseline: str | None = None) -> list[Row]:
    """Return a row per agent: mean, s.e., median and tails of each measure's totals, and the time per decision.

    It also has the reward per decision and, with a ``baseline`` among the agents, the lift over it.
    """
    rows, names = [], measures(records)
    for agent, record in records.items():
        found = record.summary()
        row: Row = {"env": env, "agent": agent, "privileged": record.privileged, "tasks": len(record.actions)}
        for measure in names:
            row.update({f"{measure}_{statistic}": value for statistic, value in found[measure].items()})
        rate = per_decision(record)
        row.update(reward_per_decision=float(rate.mean()), reward_per_decision_se=_error(rate))
        if baseline is not None:
            row.update(zip(("lift", "lift_se"), lift(record, records[baseline]), strict=True))
        rows.append({**row, "ms_per_decision": 1e3 * record.seconds_per_decision})
    return rows


def per_decision(record: Rollout) -> np.ndarray:
    """Return each task's reward per decision, (B,)."""
    rate: np.ndarray = totals(record, "reward") / (record.actions >= 0).sum(axis=1)
    return rate


def lift(record: Rollout, baseline: Rollout) -> tuple[float, float]:
    """Return by what share the mean reward per decision exceeds the baseline's on the same tasks, and its s.e.

    The s.e. of the ratio is by the delta method, task by task. If the baseline's mean is not above 0, a share of it is
    meaningless, and both are NaN.
    """
    ours, theirs = per_decision(record), per_decision(baseline)
    if theirs.mean() <= 0:
        return np.nan, np.nan
    ratio = ours.mean() / theirs.mean()
    return float(ratio - 1), _error(ours - ratio * theirs) / float(theirs.mean())


def choose_baseline(records: Records) -> str:
    """Return the default baseline: random, or the agent with the least reward."""
    means = {agent: float(per_decision(record).mean()) for agent, record in records.items()}
    plain = [agent for agent, record in records.items() if not record.privileged] or list(records)
    return "random" if "random" in records else min(plain, key=means.__getitem__)


def _error(values: np.ndarray) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def curve(record: Rollout, measure: str, points: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps, the mean over tasks of the cumulative measure at these steps, and its s.e., (P,) each.

    Args:
        record: The record.
        measure: A regret's name, or "reward".
        points: The most steps to keep, evenly spread, including the first and the last.
    """
    mean, error = record.curve(measure)
    kept = _spread(len(mean), points)
    return kept + 1, mean[kept], error[kept]


def distribution(record: Rollout, measure: str, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks' totals in order and the share of tasks that are at or below them, (P,) each.

    Args:
        record: The record.
        measure: A regret's name, or "reward".
        points: The most totals to keep, evenly spread, including the least and the largest.
    """
    values = np.sort(totals(record, measure))
    kept = _spread(len(values), points)
    return values[kept], (kept + 1) / len(values)


def _spread(size: int, points: int) -> np.ndarray:
    """Return at most ``points`` indices into ``size`` values, with both ends."""
    points = min(check_integer("points", points, 2), size)
    return np.linspace(0, size - 1, points).round().astype(int)


def rliable_scores(found: Evaluation, measure: str = "reward") -> dict[str, np.ndarray]:
    """Return scores in rliable's format: by agent, an array (runs, tasks) in which more is better.

    A task of rliable is an environment here, and its runs are the tasks drawn from it, the independent repetitions that
    rliable resamples. A score is a mean per decision, so that horizons do not matter; regrets are negated. Agents that
    have not played all environments are left out.

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
