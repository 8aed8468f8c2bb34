"""Compares two agents: the difference of their totals per task, its interval, and a verdict in words."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from gents_gym.checks import InputError, check_choice, check_number
from gents_gym.evaluation.measures import CONFIDENCE, Records, measures, totals
from gents_gym.evaluation.rollout import Rollout


@dataclass(frozen=True)
class Difference:
    """An agent's totals minus the reference's: task by task, or between two sets of tasks."""

    agent: str
    reference: str
    measure: str
    tasks: int
    mean: float
    low: float  # lower end of the interval for the mean; NaN for a single task, as is ``high``
    high: float
    confidence: float
    share: float  # share of tasks in which the agent did better; NaN if unpaired
    reference_tasks: int | None = None  # the number of the reference's tasks, if they are different ones: unpaired

    @property
    def verdict(self) -> int:
        """1: the agent beats the reference; -1: the reference beats it; 0: neither is shown."""
        side = int(self.low > 0) - int(self.high < 0)
        return side if self.measure == "reward" else -side

    def __str__(self) -> str:
        less, what = ("less", f"{self.measure} regret") if self.measure != "reward" else ("more", "reward")
        if min(self.tasks, self.reference_tasks or self.tasks) < 2:
            return f"one task is not enough to compare {self.agent} with {self.reference}"
        low, high = (self.low, self.high) if self.verdict == 0 else sorted((abs(self.low), abs(self.high)))
        unpaired = f"unpaired, {self.tasks} and {self.reference_tasks} tasks"
        tasks = f"{self.tasks} paired tasks" if self.reference_tasks is None else unpaired
        interval = f"{100 * self.confidence:g} % interval {low:.2f} to {high:.2f}, {tasks}"
        if self.verdict == 0 and self.low == self.high == 0:
            return f"{self.agent} and {self.reference} have the same {what} in all tasks ({tasks})"
        if self.verdict == 0:
            return (
                f"no difference is shown between {self.agent} and {self.reference}: "
                f"{self.mean:+.2f} {what} per task, the first less the second ({interval})"
            )
        first, second = (self.agent, self.reference)[:: self.verdict]
        return f"{first} beats {second}: {abs(self.mean):.2f} {less} {what} per task ({interval})"


def compare(
    records: Records, agent: str, reference: str, measure: str = "expected", confidence: float = CONFIDENCE
) -> Difference:
    """Return how an agent's totals differ from the reference's on the same tasks.

    The interval is Student's t interval for the mean of the tasks' differences. Tasks are independent draws, and with
    the usual hundreds of them the mean is nearly normal. It needs no random numbers, so the same files always give the
    same words. It holds for this one pair: of twenty pairs of equal agents, one is expected to look different.

    Args:
        records: The records by agent, of one folder or several, on the same tasks by their hashes.
        agent: The first agent.
        reference: The second agent.
        measure: A regret's name, or "reward".
        confidence: Level of the interval, between 0 and 1.
    """
    for name, value in (("agent", agent), ("reference", reference)):
        check_choice(name, value, records)
    check_choice("measure", measure, measures(records))
    if not 0 < check_number("confidence", confidence) < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    _check_paired(records[agent], records[reference])
    pair = totals(records[agent], measure), totals(records[reference], measure)
    return difference((agent, reference), measure, *pair, confidence)


def compare_all(records: Records, measure: str, confidence: float = CONFIDENCE) -> dict[tuple[str, str], Difference]:
    """Return the differences of every pair of agents, by (agent, reference), in both orders."""
    sums = {agent: totals(record, measure) for agent, record in records.items()}
    pairs = [(one, other) for one in records for other in records if one != other]
    for one, other in pairs:
        _check_paired(records[one], records[other])
    return {pair: difference(pair, measure, sums[pair[0]], sums[pair[1]], confidence) for pair in pairs}


def mean_interval(values: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Return the mean of independent values (B,) and Student's interval for it; NaN for a single one."""
    n_values, mean, half = len(values), float(values.mean()), np.nan
    if n_values > 1:
        half = stats.t.ppf((1 + confidence) / 2, n_values - 1) * values.std(ddof=1) / np.sqrt(n_values)
    return mean, mean - float(half), mean + float(half)


def _check_paired(one: Rollout, other: Rollout) -> None:
    rule = "records must have the same tasks to be compared"
    if one.indices != other.indices:
        raise InputError(f"{rule}, got different task numbers")
    if len(one.tasks) != len(other.tasks):
        raise InputError(f"{rule}, which shows in blocks of the same size, got {len(one.tasks)} and {len(other.tasks)}")
    if one.tasks != other.tasks:
        raise InputError(f"{rule}, got tasks with different hashes: another seed, split, environment or version")


def difference(
    pair: tuple[str, str], measure: str, one: np.ndarray, other: np.ndarray, confidence: float = CONFIDENCE
) -> Difference:
    """Return the difference of totals on the same tasks, (B,) each."""
    differences = one - other  # (B,)
    better = differences > 0 if measure == "reward" else differences < 0
    found = mean_interval(differences, confidence)
    return Difference(*pair, measure, len(differences), *found, confidence, float(better.mean()))


def unpaired_difference(
    pair: tuple[str, str], measure: str, one: np.ndarray, other: np.ndarray, confidence: float = CONFIDENCE
) -> Difference:
    """Return the difference of mean totals on different tasks, (B,) and (B',), with Welch's interval."""
    mean, low, high = float(one.mean() - other.mean()), np.nan, np.nan
    if min(len(one), len(other)) > 1:
        shares = [values.var(ddof=1) / len(values) for values in (one, other)]
        total = sum(shares)
        weights = sum(share**2 / (len(v) - 1) for share, v in zip(shares, (one, other), strict=True))
        half = stats.t.ppf((1 + confidence) / 2, total**2 / weights) * np.sqrt(total) if total > 0 else 0.0
        low, high = mean - float(half), mean + float(half)
    return Difference(*pair, measure, len(one), mean, low, high, confidence, np.nan, len(other))
