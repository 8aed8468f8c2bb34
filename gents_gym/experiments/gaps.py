"""Goals as paired differences: the regret of one agent less that of another, its interval, and a verdict."""

from dataclasses import dataclass

import numpy as np

from gents_gym.checks import InputError
from gents_gym.evaluation.measures import totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.report.comparison import mean_interval
from gents_gym.report.tables import escape

GOAL_HEADS = "| goal | difference | 95 % interval | tasks | verdict |"


@dataclass(frozen=True)
class Gap:
    """A difference on common tasks with its interval, and what it says of a goal."""

    goal: str
    mean: float
    low: float
    high: float
    tasks: int

    @property
    def verdict(self) -> str:
        """Whether the goal, at most zero, is met."""
        return "met" if self.high <= 0 else "not met" if self.low > 0 else "not shown"

    @property
    def row(self) -> str:
        """The row of a Markdown table."""
        interval = f"{self.low:.1f} to {self.high:.1f}"
        return f"| {escape(self.goal)} | {self.mean:+.1f} | {interval} | {self.tasks} | {self.verdict} |"


def mean_gap(goal: str, differences: np.ndarray) -> Gap:
    """Return the mean of the tasks' differences (B,), with Student's interval."""
    return Gap(goal, *mean_interval(differences), len(differences))


def paired(*records: Rollout, measure: str = "expected") -> list[np.ndarray]:
    """Return the regrets of agents in the tasks that all of them have played, (B,) each."""
    n_tasks, n_blocks = min(len(one.actions) for one in records), min(len(one.tasks) for one in records)
    if len({one.tasks[:n_blocks] for one in records}) > 1:
        raise InputError("agents of a regime must have played the same first tasks, got tasks with different hashes")
    return [totals(one, measure)[:n_tasks] for one in records]
