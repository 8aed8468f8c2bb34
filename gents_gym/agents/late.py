"""Remembers an agent's decisions until their late outcomes arrive."""

from collections.abc import Iterator

import numpy as np

from gents_gym.checks import InputError
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.ledger import Ledger
from gents_gym.numerics.rounds import rounds
from gents_gym.types import Feedback, TaskInfo


class LastAct:
    """The contexts and actions of the latest ``act``, until ``observe_late`` takes them."""

    def __init__(self) -> None:
        self._kept: tuple[np.ndarray, np.ndarray] | None = None

    def keep(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,), and keep copies of them and of the contexts (B, D)."""
        self._kept = np.array(context), action.copy()
        return action

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """Return contexts and actions, once. Raises if there are none."""
        if self._kept is None:
            raise InputError("observe_late must follow act, once for each decision")
        kept, self._kept = self._kept, None
        return kept


class OpenDecisions:
    """The decisions of an agent without a belief: contexts and actions by number, for outcomes that arrive late."""

    def __init__(self, info: TaskInfo) -> None:
        """Start B new tasks."""
        self._info, self._acted = info, LastAct()
        self._ledger: Ledger | None = None  # made on demand: if outcomes arrive in time, nothing has to be remembered

    def acts(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,), and keep them and the contexts (B, D) until :meth:`arrive`."""
        return self._acted.keep(context, action)

    def arrive(self, feedback: Feedback) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Number the latest act, and yield what arrived: tasks (n,), contexts (n, D), actions (n,), outcomes (n,).

        Each part names a task at most once. The outcomes of one task keep their order in ``feedback``.
        """
        if self._ledger is None:
            self._ledger = Ledger(self._info, lambda contexts: contexts[..., :0])
        ledger = self._ledger
        ledger.decide(*self._acted.take())
        task, decision, _ = ledger.arrive(feedback, GAUSSIAN)  # any number is allowed: the agent learns from rewards
        outcome = np.asarray(feedback.outcome, np.float64)
        for part in rounds(task) if len(task) else ():
            at = task[part], decision[part]
            yield at[0], ledger.contexts[at], ledger.actions[at], outcome[part]
