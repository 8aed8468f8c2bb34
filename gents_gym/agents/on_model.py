"""What agents on a model share: the belief of the tasks they play, kept up with every decision."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gents_gym.checks import check_array
from gents_gym.models.load import begin_belief
from gents_gym.types import Feedback, TaskInfo

DEFAULT_MODEL = "filter"


def first_task(info: TaskInfo) -> tuple[TaskInfo, list[np.random.Generator], np.ndarray]:
    """Return the first of the tasks, a generator and a context (1, D), to try an agent with."""
    return info[0], [np.random.default_rng(0)], np.zeros((1, info.context_dim), np.float32)


class BeliefHolder:
    """The belief of the tasks that are played, where every outcome arrives before the next decision."""

    def __init__(self, model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks with a model, or with what names one."""
        self.model, self.belief = begin_belief(model, info, rngs)
        self._tasks, self._n_actions, self._time = np.arange(len(info)), info.n_actions, 0

    def expected(self, context: np.ndarray) -> np.ndarray:
        """Return the mean rewards that the model expects, (B, D) to (B, A)."""
        found, shape = self.belief.expected(context), (len(self._tasks), self._n_actions)
        return check_array("what the model expects", found, "(B, A)", shape, np.float64, per_task=1)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Tell the belief what was played, (B, D) and (B,), and what came of it, (B,)."""
        outcome = check_array("outcome", outcome, "(B,)", (len(self._tasks),))
        self.model.likelihood.check("outcome", outcome)  # before the row is opened: nothing is half done
        self.belief.decide(context, action)
        self.belief.observe(Feedback(self._tasks, np.full(len(self._tasks), self._time), outcome))
        self._time += 1
