"""Paired comparisons: two agents' records on the same tasks in, a difference with its interval and a verdict out."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from gents_gym.checks import InputError, check_choice, check_number
from gents_gym.evaluation.rollout import Rollout
from gents_gym.report.analysis import CONFIDENCE, Records, measures, totals


@dataclass(frozen=True)
class Difference:
    """An agent's totals less the reference's, task by task."""

    agent: str
    reference: str
    measure: str
    tasks: int
    mean: float
    low: float  # of the interval for the mean; NaN with a single task, as is ``high``
    high: float
    confidence: float
    share: float  # of tasks in which the agent did better

    @property
    def verdict(self) -> int:
        """1: the agent beats the reference; -1: the reference beats it; 0: neither is shown."""
        side = int(self.low > 0) - int(self.high < 0)
        return side if self.measure == "reward" else -side

    def __str__(self) -> str:
        less, what = ("less", f"{self.measure} regret") if self.measure != "reward" else ("more", "reward")
        if self.tasks < 2:
            return f"one task does not tell {self.agent} from {self.reference}"
        low, high = (self.low, self.high) if self.verdict == 0 else sorted((abs(self.low), abs(self.high)))
        interval = f"{100 * self.confidence:g} % interval {low:.2f} to {high:.2f}, {self.tasks} paired tasks"
        if self.verdict == 0:
            return (
                f"no difference is shown between {self.agent} and {self.reference}: "
                f"{self.mean:+.2f} {what} per task ({interval})"
            )
        first, second = (self.agent, self.reference)[:: self.verdict]
        return f"{first} beats {second}: {abs(self.mean):.2f} {less} {what} per task ({interval})"


def compare(
    records: Records, agent: str, reference: str, measure: str = "expected", confidence: float = CONFIDENCE
) -> Difference:
    """Return how an agent's totals differ from the reference's on the same tasks.

    The interval is Student's t for the mean of the tasks' differences. Tasks are independent draws, and with hundreds
    of them, as is usual, the mean is near normal; it needs no random numbers, so the same files always give the same
    words. It holds for this one pair: of twenty pairs of equals, one is expected to look unequal.

    Args:
        records: What happened, by agent; of one folder or several, on the same tasks by their hashes.
        agent: The one.
        reference: The other.
        measure: A regret's name, or "reward".
        confidence: Of the interval, between 0 and 1.
    """
    for name, value in (("agent", agent), ("reference", reference)):
        check_choice(name, value, records)
    check_choice("measure", measure, measures(records))
    if not 0 < check_number("confidence", confidence) < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    _check_paired(records[agent], records[reference])
    pair = totals(records[agent], measure), totals(records[reference], measure)
    return _difference((agent, reference), measure, *pair, confidence)


def compare_all(records: Records, measure: str, confidence: float = CONFIDENCE) -> dict[tuple[str, str], Difference]:
    """Return the differences of every two agents, by (agent, reference), in both orders."""
    sums = {agent: totals(record, measure) for agent, record in records.items()}
    pairs = [(one, other) for one in records for other in records if one != other]
    for one, other in pairs:
        _check_paired(records[one], records[other])
    return {pair: _difference(pair, measure, sums[pair[0]], sums[pair[1]], confidence) for pair in pairs}


def mean_interval(values: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Return the mean of independent values (B,) and Student's interval for it; NaN around a single one."""
    n_values, mean, half = len(values), float(values.mean()), np.nan
    if n_values > 1:
        half = stats.t.ppf((1 + confidence) / 2, n_values - 1) * values.std(ddof=1) / np.sqrt(n_values)
    return mean, mean - float(half), mean + float(half)


def _check_paired(one: Rollout, other: Rollout) -> None:
    rule = "records must be of the same tasks to be compared"
    if one.indices != other.indices:
        raise InputError(f"{rule}, got different task numbers")
    if len(one.tasks) != len(other.tasks):
        raise InputError(f"{rule}, which shows in blocks of the same size, got {len(one.tasks)} and {len(other.tasks)}")
    if one.tasks != other.tasks:
        raise InputError(f"{rule}, got tasks with different hashes: another seed, split, environment or version")


def _difference(
    pair: tuple[str, str], measure: str, one: np.ndarray, other: np.ndarray, confidence: float
) -> Difference:
    differences = one - other  # (B,)
    better = differences > 0 if measure == "reward" else differences < 0
    found = mean_interval(differences, confidence)
    return Difference(*pair, measure, len(differences), *found, confidence, float(better.mean()))
