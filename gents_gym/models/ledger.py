"""Records the decisions of B tasks: the actions and contexts, and which outcomes have arrived."""

import copy
from collections.abc import Callable

import numpy as np

from gents_gym.checks import InputError, check_actions, check_array, check_contexts, check_integer
from gents_gym.likelihoods import Likelihood
from gents_gym.numerics.rounds import is_rising
from gents_gym.types import Feedback, TaskInfo

GROWTH = 64  # rows that an unknown horizon starts with
KEPT = ("contexts", "actions", "seen", "outcomes")  # what a state holds; rows are derived from contexts


class Ledger:
    """Rows of decisions, one per task and time; row ``time`` holds the context of the next decision.

    Attributes:
        time: t, decisions so far.
        contexts: (B, ≥t, D) float32; known future contexts are already in place.
        rows: The contexts in the form that a model reads, (B, ≥t, K) float32; each is mapped once.
        actions: (B, ≥t).
        seen: The actions whose outcomes have arrived, (B, ≥t); -1 if one is still missing.
        outcomes: (B, ≥t) float32, valid if they have arrived.
        n_known: The number of contexts that were fully known from the start.
        known: Contexts that were partly known from the start, (B, n, D), NaN in unknown entries; None: there are none.
    """

    def __init__(self, info: TaskInfo, rows: Callable[[np.ndarray], np.ndarray]) -> None:
        """Start without decisions; ``rows`` maps each context on its own, (..., D) to (..., K)."""
        self.time, self.n_known = 0, 0
        self.known: np.ndarray | None = None
        self._map, self._current = rows, -1  # the latest decision whose context is in place
        self._horizon, self._n_actions = info.horizon, info.n_actions
        n_tasks, size, n_context = len(info), info.horizon or GROWTH, info.context_dim
        self.contexts = np.zeros((n_tasks, size, n_context), np.float32)
        self.rows = np.zeros((n_tasks, size, rows(np.zeros((1, n_context), np.float32)).shape[1]), np.float32)
        self.actions, self.seen = np.full((2, n_tasks, size), -1)
        self.outcomes = np.zeros((n_tasks, size), np.float32)
        if info.known_contexts is not None:
            known = np.array(info.known_contexts)
            unknown = np.isnan(known) if known.dtype.kind == "f" else np.zeros(known.shape, np.bool_)
            whole = np.where(unknown, 0, known)
            whole = check_array("known_contexts", whole, "(B, T, D)", (n_tasks, -1, n_context))
            if unknown.any():
                self.known = np.where(unknown, np.float32(np.nan), whole)
            else:
                self.n_known = whole.shape[1]
                self._fill(whole)

    def insert_known(self, contexts: np.ndarray, first: int) -> bool:
        """Overwrite imagined entries of future contexts with what is known; return whether anything is.

        Args:
            contexts: Imagined contexts of the decisions from ``first`` on, (B, M, n, D); they are changed.
            first: The number of the first of these decisions.
        """
        if self.known is None:
            return False
        known = self.known[:, None, first : first + contexts.shape[2]]  # (B, 1, ≤n, D)
        into = contexts[:, :, : known.shape[2]]
        np.copyto(into, known, where=~np.isnan(known))
        return True

    def map_contexts(self, contexts: np.ndarray) -> np.ndarray:
        """Return the rows of contexts, (..., D) to (..., K)."""
        return self._map(contexts)

    def check_contexts(self, contexts: np.ndarray) -> np.ndarray:
        """Check that contexts are (B, C, D) or (B, D); return them as (B, C, D), with C = 1 for the latter."""
        return check_contexts(contexts, len(self.contexts), self.contexts.shape[2])

    def end(self, rows: int | None) -> int:
        """Return the number of rows of a completed table, with ``rows`` imputed ones, or up to the horizon."""
        self._check_turn()
        if rows is not None:
            return self.time + check_integer("rows", rows, 1)
        if self._horizon is None:
            raise InputError("rows (the option m of an agent) must be given if the horizon is not known, got None")
        return self._horizon

    def face(self, context: np.ndarray) -> None:
        """Make ``context`` (B, D) the current one."""
        t = self.time
        if self._current == t and np.array_equal(self.contexts[:, t], context):
            return  # it was already checked and mapped
        context = self.check_contexts(context)[:, 0]
        self._grow(t + 1)
        self.contexts[:, t], self.rows[:, t], self._current = context, self._map(context), t

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task."""
        self._check_turn()
        action = check_actions(action, len(self.contexts), self._n_actions)
        self.face(context)
        self.actions[:, self.time], self.seen[:, self.time] = action, -1
        self.time += 1

    def arrive(self, feedback: Feedback, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Enter outcomes of open rows, and return their tasks, decisions and values, checked, (n,) each."""
        task, decision = np.asarray(feedback.task), np.asarray(feedback.decision)
        if task.shape != decision.shape or task.ndim != 1:
            raise InputError(f"task and decision must have shape (n,), got {task.shape} and {decision.shape}")
        outcome = check_array("outcome", feedback.outcome, "(n,)", task.shape)
        if not len(task):
            return task.astype(np.int64), decision.astype(np.int64), outcome
        likelihood.check("outcome", outcome)
        self._check_open(task, decision)
        self.outcomes[task, decision] = outcome
        self.seen[task, decision] = self.actions[task, decision]
        return task, decision, outcome

    def _check_open(self, task: np.ndarray, decision: np.ndarray) -> None:
        """Raise unless each pair (n,) names a row without an outcome, once."""
        if task.dtype.kind not in "iu" or decision.dtype.kind not in "iu":
            raise InputError(f"task and decision must be whole numbers, got {task.dtype} and {decision.dtype}")
        cells = self._cells(task, decision)
        twice = not is_rising(cells) and len(np.unique(cells)) < len(cells)
        if twice or np.count_nonzero(self.seen[task, decision] >= 0):
            raise InputError("an outcome must arrive once for each decision, got one a second time")

    def pick(self, tasks: np.ndarray) -> "Ledger":
        """Return a copy of the tasks at ``tasks``."""
        other = copy.copy(self)
        for name in (*KEPT, "rows"):
            setattr(other, name, getattr(self, name)[tasks])
        other.known = None if self.known is None else self.known[tasks]
        return other

    def widen(self, n_actions: int) -> None:
        """Allow this many actions."""
        self._n_actions = n_actions

    def check_forgettable(self, rows: int) -> None:
        """Raise unless the first rows of every task can be dropped."""
        if self.n_known or self._horizon is not None:
            raise InputError("rows can be forgotten only if neither the horizon nor future contexts are known")
        if check_integer("rows", rows, 0) > self.time:
            raise InputError(f"rows must be at most the {self.time} made so far, got {rows}")

    def forget(self, rows: int) -> None:
        """Drop the first rows of every task; the remaining rows are numbered from 0 again."""
        self.check_forgettable(rows)
        for name in (*KEPT, "rows"):
            array = getattr(self, name)
            array[:, : self.time - rows] = array[:, rows : self.time].copy()
            array[:, self.time - rows : self.time] = 0  # as if they were never made
        self.time, self._current = self.time - rows, -1

    def state(self) -> dict[str, np.ndarray]:
        """Return the rows so far as plain arrays."""
        return {name: getattr(self, name)[:, : self.time].copy() for name in KEPT}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Replace the rows with those that :meth:`state` returned."""
        n_tasks, _, n_context = self.contexts.shape
        contexts = check_array("contexts", state["contexts"], "(B, t, D)", (n_tasks, -1, n_context))
        if self._horizon is not None and contexts.shape[1] > self._horizon:
            raise InputError(f"state must have at most {self._horizon} rows, the horizon, got {contexts.shape[1]}")
        for name in KEPT[1:]:
            check_array(name, state[name], "(B, t)", contexts.shape[:2])
        actions, seen = state["actions"], state["seen"]
        if not np.isin(actions, np.arange(self._n_actions)).all() or not ((seen == -1) | (seen == actions)).all():
            rule = f"actions must lie in [0, {self._n_actions}), and seen must be -1 or the action"
            raise InputError(f"{rule}, got other numbers in the state")
        self.time, self._current = contexts.shape[1], -1
        self._fill(contexts)
        for name in KEPT[1:]:
            getattr(self, name)[:, : self.time] = state[name]

    def _check_turn(self) -> None:
        if self.time == self._horizon:
            raise InputError(f"act must be called at most {self.time} times, the horizon, got one more")

    def _cells(self, task: np.ndarray, decision: np.ndarray) -> np.ndarray:
        """Check that decisions were made; return the index of each cell of the table, (n,)."""
        n_tasks = len(self.seen)
        try:
            return np.ravel_multi_index((task, decision), (n_tasks, self.time))
        except ValueError:
            if task.min() < 0 or task.max() >= n_tasks:
                raise InputError(f"task must lie in [0, {n_tasks}), got {task.min()} to {task.max()}") from None
            got = f"{decision.min()} to {decision.max()}"
            rule = f"decision must be one of the {self.time} made so far, from 0 on"
            raise InputError(f"{rule}, got {got}") from None

    def _fill(self, contexts: np.ndarray) -> None:
        n = contexts.shape[1]
        self._grow(n)
        self.contexts[:, :n], self.rows[:, :n] = contexts, self._map(contexts)

    def _grow(self, size: int) -> None:
        """Make room for ``size`` rows."""
        if size > self.contexts.shape[1]:
            for name in (*KEPT, "rows"):
                array = getattr(self, name)
                room = np.zeros((len(array), max(size, 2 * array.shape[1]), *array.shape[2:]), array.dtype)
                room[:, : array.shape[1]] = array
                setattr(self, name, room)
