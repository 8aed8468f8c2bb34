"""What agents on a model share: the belief of the tasks they play, kept up with every decision."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gents_gym.checks import check_array
from gents_gym.models.load import resolve_model
from gents_gym.types import Feedback, Model, TaskInfo

DEFAULT_MODEL = "filter"


class BeliefHolder:
    """The belief of the tasks that are played, where every outcome arrives before the next decision."""

    def __init__(self, model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks with a model, or with what names one."""
        self.model: Model = resolve_model(model, info)
        self.belief = self.model.begin(info, rngs)
        self._tasks, self._time = np.arange(len(info)), 0

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Tell the belief what was played, (B, D) and (B,), and what came of it, (B,)."""
        outcome = check_array("outcome", outcome, "(B,)", (len(self._tasks),))
        self.model.likelihood.check("outcome", outcome)  # before the row is opened: nothing is half done
        self.belief.decide(context, action)
        self.belief.observe(Feedback(self._tasks, np.full(len(self._tasks), self._time), outcome))
        self._time += 1
