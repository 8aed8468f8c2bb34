"""What agents on a model share: the belief of the tasks they play, kept up with every decision."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gents_gym.agents.late import LastAct
from gents_gym.agents.live import Live
from gents_gym.checks import check_array
from gents_gym.models.load import begin_belief
from gents_gym.types import Feedback, TaskInfo

DEFAULT_MODEL = "filter"


def first_task(info: TaskInfo) -> tuple[TaskInfo, list[np.random.Generator], np.ndarray]:
    """Return the first of the tasks, a generator and a context (1, D), to try an agent with."""
    return info[0], [np.random.default_rng(0)], np.zeros((1, info.context_dim), np.float32)


class BeliefHolder:
    """The belief of the tasks that are played; outcomes arrive before the next decision, or later by its number."""

    def __init__(self, model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks with a model, or with what names one."""
        self.model, self.belief = begin_belief(model, info, rngs)
        self._tasks, self._n_actions = np.arange(len(info)), info.n_actions
        self._time, self._acted = 0, LastAct()

    def expected(self, context: np.ndarray, live: Live | None = None) -> np.ndarray:
        """Return the mean rewards that the model expects, (B, D) to (B, A), or of the live actions, (B, n)."""
        if live is None:
            found, shape = self.belief.expected(context), (len(self._tasks), self._n_actions)
        else:
            found, shape = self.belief.expected(context, live.actions), live.actions.shape
        return check_array("what the model expects", found, "(B, A)", shape, np.float64, per_task=1)

    def variance(self, context: np.ndarray, live: Live | None = None) -> np.ndarray | None:
        """Return the variance of those means, in the same shapes; None if the model has none."""
        return self.belief.variance(context) if live is None else self.belief.variance(context, live.actions)

    def acts(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,), and keep them and the contexts (B, D) until :meth:`observe_late`."""
        return self._acted.keep(context, action)

    def decide(self, context: np.ndarray, action: np.ndarray) -> int:
        """Open a row: the actions (B,) are played in the contexts (B, D). Return the number of the decision."""
        self.belief.decide(context, action)
        self._time += 1
        return self._time - 1

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Tell the belief what was played, (B, D) and (B,), and what came of it, (B,)."""
        outcome = check_array("outcome", outcome, "(B,)", (len(self._tasks),))
        self.model.likelihood.check("outcome", outcome)  # before the row is opened: nothing is half done
        decision = self.decide(context, action)
        self.belief.observe(Feedback(self._tasks, np.full(len(self._tasks), decision), outcome))

    def observe_late(self, feedback: Feedback) -> None:
        """Open the row of the latest act, and tell the belief what arrived, of this row or of earlier ones."""
        self.model.likelihood.check("outcome", np.asarray(feedback.outcome))
        self.decide(*self._acted.take())
        self.belief.observe(feedback)
