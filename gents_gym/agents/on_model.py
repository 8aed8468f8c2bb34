"""Shared by agents on a model: the belief about the tasks they play, updated at every decision."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gents_gym.agents.available import Available
from gents_gym.agents.late import LastAct
from gents_gym.checks import check_array
from gents_gym.models.load import begin_belief
from gents_gym.types import Feedback, TaskInfo

DEFAULT_MODEL = "filter"


def first_task(info: TaskInfo) -> tuple[TaskInfo, list[np.random.Generator], np.ndarray]:
    """Return the first task, a generator and a context (1, D), for trying an agent."""
    return info[0], [np.random.default_rng(0)], np.zeros((1, info.context_dim), np.float32)


class BeliefHolder:
    """The belief about the tasks that are played; outcomes arrive before the next decision, or later."""

    def __init__(self, model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks with a model, or with the name of one."""
        self.model, self.belief = begin_belief(model, info, rngs)
        self._tasks, self._n_actions = np.arange(len(info)), info.n_actions
        self._time, self._acted = 0, LastAct()

    def expected(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the mean rewards that the model expects, (B, D) to (B, A), or for the live actions, (B, n)."""
        if live is None:
            found, shape = self.belief.expected(context), (len(self._tasks), self._n_actions)
        else:
            found, shape = self.belief.expected(context, live.actions), live.actions.shape
        return check_array("what the model expects", found, "(B, A)", shape, np.float64, per_task=1)

    def variance(self, context: np.ndarray, live: Available | None = None) -> np.ndarray | None:
        """Return the variance of those means, in the same shapes; None if the model has none."""
        return self.belief.variance(context) if live is None else self.belief.variance(context, live.actions)

    def acts(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,), and keep them and the contexts (B, D) until :meth:`observe_late`."""
        return self._acted.keep(context, action)

    def decide(self, context: np.ndarray, action: np.ndarray) -> int:
        """Open a row, since the actions (B,) are played in the contexts (B, D); return the number of the decision."""
        self.belief.decide(context, action)
        self._time += 1
        return self._time - 1

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the belief with contexts (B, D), played actions (B,) and their outcomes (B,)."""
        outcome = check_array("outcome", outcome, "(B,)", (len(self._tasks),))
        self.model.likelihood.check("outcome", outcome)  # before the row is opened: an error must change nothing
        decision = self.decide(context, action)
        self.belief.observe(Feedback(self._tasks, np.full(len(self._tasks), decision), outcome))

    def observe_late(self, feedback: Feedback) -> None:
        """Open the row of the latest act, and update the belief with outcomes of this row or of earlier ones."""
        self.model.likelihood.check("outcome", np.asarray(feedback.outcome))
        self.decide(*self._acted.take())
        self.belief.observe(feedback)
