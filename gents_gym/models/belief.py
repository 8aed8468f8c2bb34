"""Builds the belief of a per-action model: it turns the model's three methods into all those that agents use."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from gents_gym.checks import InputError, TaskError, check_array, check_integer, check_rngs
from gents_gym.likelihoods import BERNOULLI, Likelihood
from gents_gym.models.contexts import check_contexts, stack
from gents_gym.models.ledger import KEPT, Ledger
from gents_gym.models.lookahead import errors_of, find_outlook
from gents_gym.models.picked import Bank, imagine
from gents_gym.models.tree import fill_tree, map_tree, tree_leaves
from gents_gym.numerics.rounds import rounds
from gents_gym.types import ActionModel, Completion, Feedback, Outlook, TaskInfo


class Kernel(Protocol):
    """What a kind of model does with the states of B·A actions; action a of task b has row b·A + a.

    "Rows" are contexts in the form that the kernel reads; each context is mapped to its row once.
    """

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return the rows of contexts, (..., D) to (..., K)."""
        ...

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the part of rows that is context features; None if the model has none."""
        ...

    def predict(self, state: Any, contexts: np.ndarray) -> np.ndarray:
        """Return the parameters of every action's outcome, (B, C, D) to (B, C, A, ...)."""
        ...

    def variance(self, state: Any, contexts: np.ndarray, info: TaskInfo) -> np.ndarray | None:
        """Return the variance of the mean rewards under the belief, (B, C, D) to (B, C, A); None if unknown."""
        ...

    def look_ahead(
        self, state: Any, row: np.ndarray, rows: np.ndarray, counts: np.ndarray, info: TaskInfo
    ) -> Outlook | None:
        """Return the value of further observations; None if there is no faster way than forks.

        Args:
            state: The state of B·A actions.
            row: The row of the current context, (B, K).
            rows: The rows of imagined contexts, (B, C, K).
            counts: Numbers of observations, rising, (n,).
            info: What is known of the tasks.
        """
        ...

    def absorb(
        self, state: Any, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray, shape: Any
    ) -> Any:
        """Return the state with n outcomes appended, at most one per task; it may be the same object, modified.

        Args:
            state: The state of B·A actions.
            task: (n,).
            action: (n,).
            rows: (n, K).
            outcome: (n,) float32.
            shape: (B, A).
        """
        ...

    def generate(
        self, state: Any, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A) with every missing outcome drawn, row by row; the state stays unchanged.

        The last row is NaN or infinite for an action if any of its predictions was, since outcomes need not show this.

        Args:
            state: The state of B·A actions after all that was observed.
            rows: (B, T', K).
            played: The action whose outcome was observed in a row, (B, T'); -1 for none.
            seen: That outcome, (B, T').
            noise: The likelihood's random numbers, (B, T', A).
        """
        ...


@runtime_checkable
class HasKernel(Protocol):
    """A model with its own kernel."""

    def kernel(self) -> Kernel:
        """Return the kernel."""
        ...


class RowByRow:
    """The kernel of any per-action model: it calls the model's three methods, one row of all actions at a time."""

    def __init__(self, model: ActionModel, likelihood: Likelihood = BERNOULLI) -> None:
        self._model, self._likelihood = model, likelihood
        self._takes_tensors = isinstance(model, torch.nn.Module)

    def start(self, action_features: np.ndarray) -> Any:
        """Return the state of N actions with empty histories, (N, F)."""
        with torch.no_grad():
            return self._model.start(self._given(action_features))

    def try_out(self, action_features: np.ndarray, context_dim: int) -> None:
        """Raise unless the three methods return the right shapes, for actions (N, F) and one row of each."""
        size = len(action_features)
        contexts = np.tile(np.linspace(-1, 1, context_dim, dtype=np.float32), (size, 1))  # (N, D)
        outcomes = np.full(size, 0 if self._likelihood.support is None else self._likelihood.support[0], np.float32)
        verb = "start"
        try:
            with torch.no_grad():
                state = self.start(action_features)
                check_state("start", state, size)
                verb = "predict"
                self._parameters(state, contexts, size)
                verb = "append"
                given = (contexts, outcomes, np.ones(size, np.bool_))
                after = self._model.append(state, *(self._given(part) for part in given))
                check_state("append", after, size)
                map_tree(lambda *_: None, state, after)
        except InputError:
            raise
        except Exception as error:
            rule = f"model must support {verb} for {size} actions with contexts of {context_dim} entries"
            raise InputError(f"{rule}, got {type(error).__name__}: {error}") from error

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return the contexts themselves."""
        return contexts

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the model's features of the contexts; None if it has none."""
        return ask_optional(self._model, "context_features", rows)

    def predict(self, state: Any, contexts: np.ndarray) -> np.ndarray:
        """Return the parameters of every action's outcome, (B, C, D) to (B, C, A, ...)."""
        n_actions = len(next(tree_leaves(state))) // len(contexts)
        each = (np.repeat(part, n_actions, axis=0) for part in contexts.swapaxes(0, 1))
        found = [self._parameters(state, context, n_actions) for context in each]
        shape = (len(contexts), n_actions, *self._likelihood.shape)
        return np.stack([part.reshape(shape) for part in found], axis=1)

    def variance(self, state: Any, contexts: np.ndarray, info: TaskInfo) -> np.ndarray | None:
        """Return None: the model's three methods give no variances."""
        return None

    def look_ahead(
        self, state: Any, row: np.ndarray, rows: np.ndarray, counts: np.ndarray, info: TaskInfo
    ) -> Outlook | None:
        """Return None: only forks show what an observation would change."""
        return None

    def absorb(
        self, state: Any, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray, shape: Any
    ) -> Any:
        """Return the state with the outcomes appended."""
        where = np.zeros(shape, np.bool_)
        where[task, action] = True
        contexts, outcomes = np.zeros((shape[0], rows.shape[1]), np.float32), np.zeros(shape[0], np.float32)
        contexts[task], outcomes[task] = rows, outcome
        each = (np.repeat(part, shape[1], axis=0) for part in (contexts, outcomes))  # (B·A, D), (B·A,)
        with torch.no_grad():
            return self._model.append(state, *(self._given(part) for part in (*each, where.reshape(-1))))

    def generate(
        self, state: Any, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A), drawn row by row through the model's methods."""
        n_tasks, n_rows, n_actions = noise.shape
        table = np.empty_like(noise)
        missing = played[..., None] != np.arange(n_actions)  # (B, T', A)
        for t in range(n_rows):
            context = np.repeat(rows[:, t], n_actions, axis=0)  # (B·A, D)
            parameters = self._parameters(state, context, n_actions)
            outcome = self._likelihood.sample(parameters, noise[:, t].reshape(-1))
            with torch.no_grad():
                given = (context, outcome, missing[:, t].reshape(-1))
                state = self._model.append(state, *(self._given(part) for part in given))
            table[:, t] = np.where(missing[:, t], outcome.reshape(n_tasks, n_actions), seen[:, t, None])
        return table

    def _parameters(self, state: Any, context: np.ndarray, n_actions: int) -> np.ndarray:
        """Return the model's predictions for tasks of A actions, as an array (N, ...) in double precision."""
        with torch.no_grad():
            found = self._model.predict(state, self._given(context))
        found = np.asarray(found.numpy() if isinstance(found, torch.Tensor) else found, np.float64)
        if found.shape != (wanted := (len(context), *self._likelihood.shape)):
            raise InputError(f"the model's predict must return shape {wanted} for N={len(context)}, got {found.shape}")
        try:
            self._likelihood.check_parameters("what the model's predict returns", found)
        except TaskError as error:
            error.position //= n_actions
            raise
        return found

    def _given(self, array: np.ndarray) -> Any:
        return torch.tensor(array) if self._takes_tensors else array


class ActionBelief:
    """The belief of a per-action model: the states of all actions' histories, and the rows decided so far.

    For each action, observed outcomes come first, then every missing outcome in the order of the rows, each drawn given
    all before it (algorithm "Posterior sampling via autoregressive generation"). States include what was observed, so a
    decision appends only what is new.
    """

    def __init__(
        self,
        model: ActionModel,
        info: TaskInfo,
        rngs: Sequence[np.random.Generator],
        bank: np.ndarray | None = None,
        alpha: float = 0.0,
        likelihood: Likelihood = BERNOULLI,
    ) -> None:
        """Start with empty histories.

        Args:
            model: The model.
            info: What is known of the tasks.
            rngs: One generator per task.
            bank: Training contexts (n, D) to draw from, or None.
            alpha: Mass of the bank in the urn of the context model "seen", in contexts.
            likelihood: What the model's outcomes are.
        """
        check_likelihood(likelihood, info)
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        self._info, self._rngs, self._likelihood = info, check_rngs(rngs, len(info)), likelihood
        general = RowByRow(model, likelihood)
        self._start = general.start
        self._ordered = bool(getattr(model, "ordered", False))
        self._kernel: Kernel = model.kernel() if isinstance(model, HasKernel) else general
        if self._kernel is general:
            general.try_out(features[0], info.context_dim)
        # Task by task, because products round differently for other numbers of rows.
        self._state = map_tree(_join, *(self._start(task) for task in features))
        self._base = map_tree(_copy, self._state) if self._ordered else ()  # before the rows of the ledger
        bank = np.zeros((0, info.context_dim), np.float32) if bank is None else bank
        self._bank = check_array("the model's bank", bank, "(n, D)", (-1, info.context_dim))
        self._alpha = alpha
        self._bank_rows = self._kernel.rows(self._bank)  # (n, K)
        self._ledger = Ledger(info, self._kernel.rows)

    def expected(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A); only for ``actions`` (B, n) if given."""
        found = self._kernel.predict(self._states(actions), self._ledger.check_contexts(contexts))
        means = self._likelihood.expected_reward(self._info.reward_fn, found)
        return means if np.ndim(contexts) == 3 else means[:, 0]

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray | None:
        """Return the variance of those means under the belief, in the same shapes; None if the model has none."""
        found = self._kernel.variance(self._states(actions), self._ledger.check_contexts(contexts), self._info)
        return found if found is None or np.ndim(contexts) == 3 else found[:, 0]

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task."""
        self._ledger.decide(context, action)

    def observe(self, feedback: Feedback) -> None:
        """Learn outcomes of open rows; the outcomes of one task are appended in the order of ``feedback``.

        If the model's rows have an order and one comes late, the model is run again on all rows of that action.
        """
        task, decision, _ = self._ledger.arrive(feedback, self._likelihood)
        if not len(task):
            return
        if self._ordered:
            order = np.argsort(decision, kind="stable")
            task, decision = self._rewind(task[order], decision[order])
        self._state = self._absorb(self._state, task, decision)

    def _absorb(self, state: Any, task: np.ndarray, decision: np.ndarray) -> Any:
        """Return the state with rows of decisions (n,) of tasks (n,) appended; those of one task one at a time."""
        ledger, shape = self._ledger, (len(self._info), self._info.n_actions)
        for part in rounds(task):
            at = task[part], decision[part]
            given = (at[0], ledger.actions[at], ledger.rows[at], ledger.outcomes[at], shape)
            state = self._kernel.absorb(state, *given)
        return state

    def _rewind(self, task: np.ndarray, decision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take actions that have later rows than these back to their base; return the rows to append, by decision."""
        n_actions, seen = self._info.n_actions, self._ledger.seen[:, : self._ledger.time]
        own = task * n_actions + self._ledger.actions[task, decision]
        new = np.zeros(seen.shape, np.bool_)
        new[task, decision] = True
        latest = np.full(len(seen) * n_actions, -1)  # each action's last row among those already appended
        tasks, times = np.nonzero((seen >= 0) & ~new)
        np.maximum.at(latest, tasks * n_actions + seen[tasks, times], times)
        late = np.unique(own[decision < latest[own]])
        if not len(late):
            return task, decision
        self._state = map_tree(lambda old, base: _put(old, late, base[late]), self._state, self._base)
        times, tasks = np.nonzero((np.isin(_owners(seen, n_actions), late) | new).T)  # by decision
        return tasks, times

    def complete(
        self,
        context: np.ndarray,
        rows: int | None = None,
        draws: int = 1,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Completion:
        """Return completed tables, drawn given all that was observed; see :class:`gents_gym.types.Belief`."""
        check_integer("draws", draws, 1)
        check_contexts(contexts)
        ledger = self._ledger
        t, end = ledger.time, ledger.end(rows)
        ledger.face(context)
        imagined, mapped = self._imagine(end - t - 1, draws, contexts, t + 1)  # (B, M, T', D), (B, M, T', K)
        features = self._kernel.features(mapped)
        state, seen, n_actions = self._columns(actions)
        if draws > 1:
            state = map_tree(lambda part: _repeat(part, len(self._info), draws), state)
        flat = mapped.reshape(-1, end, mapped.shape[3])  # (B·M, T', K)
        if rows is None:
            table = self._generate(state, flat, seen[:, :t], draws, n_actions)
            return Completion(imagined, table, None, features, t)
        table, weights = observed_cells(ledger.outcomes[:, :t], seen, end, draws, n_actions)
        table[:, :, t:] = self._generate(state, flat[:, t:], seen[:, :0], draws, n_actions)
        return Completion(imagined, table, weights, features, t)

    def look_ahead(
        self,
        context: np.ndarray,
        counts: np.ndarray,
        size: int,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Outlook:
        """Return the value of further observations; see :class:`gents_gym.types.LooksAhead`."""
        check_integer("size", size, 1)
        check_contexts(contexts)
        ledger = self._ledger
        ledger.end(1)
        ledger.face(context)
        imagined, rows = self._imagine(size, 1, contexts, 0)  # (B, 1, C, D), (B, 1, C, K)
        state = self._states(actions)
        found = self._kernel.look_ahead(state, ledger.rows[:, ledger.time], rows[:, 0], counts, self._info)
        if found is not None:
            return found
        current = ledger.contexts[:, ledger.time]
        apart = partial(self._observe_apart, actions)
        return find_outlook(self, self._info, current, imagined[:, 0], counts, apart, actions)

    def fork(self, tasks: np.ndarray) -> "ActionBelief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with its own random numbers."""
        tasks = check_tasks(tasks, len(self._info))
        other = copy.copy(self)
        n_actions = self._info.n_actions
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        rows = (tasks[:, None] * n_actions + np.arange(n_actions)).reshape(-1)
        other._state, other._base = map_tree(lambda part: part[rows], (self._state, self._base))
        other._ledger = self._ledger.pick(tasks)
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), without observations."""
        info, n_tasks = self._info, len(self._info)
        size = np.shape(info.action_features)[2]
        new = check_array("action_features", action_features, "(B, n, F)", (n_tasks, -1, size))
        started = map_tree(_join, *(self._start(task) for task in new))

        def together(old: Any, fresh: Any) -> Any:
            parts = [part.reshape(n_tasks, -1, *part.shape[1:]) for part in (old, fresh)]
            return _join(*parts, axis=1).reshape(-1, *old.shape[1:])

        fresh = (started, started if self._ordered else ())
        self._state, self._base = map_tree(together, (self._state, self._base), fresh)
        features = np.concatenate([info.action_features, new], axis=1)
        self._info = replace(info, action_features=features, n_actions=features.shape[1], texts=None)
        self._ledger.widen(features.shape[1])

    def reseed(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw from these generators from now on, one per task."""
        self._rngs = check_rngs(rngs, len(self._info))

    def forget(self, rows: int) -> None:
        """Drop the first rows of every task; what was learned from them stays."""
        self._ledger.check_forgettable(rows)
        if self._ordered:
            decision, task = np.nonzero(self._ledger.seen[:, :rows].T >= 0)
            self._base = self._absorb(self._base, task, decision)
        self._ledger.forget(rows)

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that was observed and inferred as plain arrays."""
        leaves = (np.asarray(leaf).copy() for leaf in tree_leaves((self._state, self._base)))
        return {**self._ledger.state(), **{f"state.{i}": leaf for i, leaf in enumerate(leaves)}}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Replace the state with one that :meth:`state` returned."""
        own = {f"state.{i}": leaf for i, leaf in enumerate(tree_leaves((self._state, self._base)))}
        if state.keys() != (names := {*KEPT, *own}):
            raise InputError(f"state must have {', '.join(sorted(names))}, got {', '.join(sorted(state))}")
        for name, leaf in own.items():
            if state[name].shape != (wanted := tuple(leaf.shape)):
                raise InputError(f"{name} must have shape {wanted} for these tasks, got {state[name].shape}")
        self._ledger.restore(state)
        leaves = (_like(leaf, state[name]) for name, leaf in own.items())
        self._state, self._base = fill_tree((self._state, self._base), leaves)

    def _observe_apart(
        self, actions: np.ndarray | None, places: np.ndarray, outcomes: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield predictions after imagined outcomes, as :func:`find_outlook` needs; only the action's own change."""
        n_tasks, n_actions, n = outcomes.shape
        own = np.repeat(np.arange(n_tasks * n_actions), n)  # each action's state, repeated for each outcome
        task, alone = own // n_actions, np.zeros(len(own), np.int64)
        given = (self._ledger.rows[task, self._ledger.time], outcomes.reshape(-1).astype(np.float32), (len(own), 1))
        state = self._kernel.absorb(
            map_tree(lambda part: part[own], self._states(actions)), np.arange(len(own)), alone, *given
        )
        with errors_of(n_actions * n):
            parameters = self._kernel.predict(state, places[task])  # (B·A·n, 1+C, 1, ...)
        found = self._likelihood.expected_reward(self._info.reward_fn, parameters)
        moved = found.reshape(n_tasks, n_actions, n, -1)  # (B, A, n, 1+C)
        now = self.expected(places, actions)  # (B, 1+C, A)
        for a in range(n_actions):
            after = np.repeat(now[:, None], n, axis=1)  # (B, n, 1+C, A)
            after[..., a] = moved[:, a]
            yield after

    def _imagine(self, count: int, draws: int, contexts: str | None, kept: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first ``kept`` contexts of the task itself followed by imagined ones, and their rows."""
        bank = Bank(self._bank, self._bank_rows, self._alpha)
        return imagine(self._ledger, bank, contexts, count, draws, self._rngs, kept)

    def _states(self, actions: np.ndarray | None) -> Any:
        """Return the states of ``actions`` (B, n); None: of all."""
        if actions is None:
            return self._state
        n_tasks, n_all = len(self._info), self._info.n_actions
        rows = (np.arange(n_tasks)[:, None] * n_all + check_columns(actions, n_tasks, n_all)).reshape(-1)
        return map_tree(lambda part: part[rows], self._state)

    def _columns(self, actions: np.ndarray | None) -> tuple[Any, np.ndarray, int]:
        """Return the states, the observed actions (B, t) and the number of the requested columns."""
        n_all, seen = self._info.n_actions, self._ledger.seen[:, : self._ledger.time]
        if actions is None:
            return self._state, seen, n_all
        state = self._states(actions)
        return state, place_columns(seen, actions, n_all), actions.shape[1]

    def _generate(self, state: Any, rows: np.ndarray, seen: np.ndarray, draws: int, n_actions: int) -> np.ndarray:
        """Return generated tables (B, M, T', A) over rows (B·M, T', K), the first of which may have observed cells."""
        n_all, n_rows, _ = rows.shape
        n_tasks, t = seen.shape
        played, outcomes = np.full((n_all, n_rows), -1), np.zeros((n_all, n_rows), np.float32)
        played.reshape(n_tasks, draws, n_rows)[:, :, :t] = seen[:, None]
        outcomes.reshape(n_tasks, draws, n_rows)[:, :, :t] = self._ledger.outcomes[:, None, :t]
        each = (rng for rng in self._rngs for _ in range(draws))
        noise = stack([self._likelihood.noise(rng, (n_rows, n_actions)) for rng in each])
        with errors_of(draws):
            table = self._kernel.generate(state, rows, played, outcomes, noise)
            check_array("what the model predicts", table[:, -1], "(B·M, A)", (n_all, n_actions), per_task=1)
        return table.reshape(n_tasks, draws, n_rows, n_actions)


def observed_cells(
    outcomes: np.ndarray, seen: np.ndarray, end: int, draws: int, n_actions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return tables (B, M, T', A) of the observed outcomes, and weights that are 0 in the other earlier cells.

    Args:
        outcomes: Of the rows so far, (B, t).
        seen: The columns that they are in, (B, t); -1 for none.
        end: T'.
        draws: M.
        n_actions: A.
    """
    t = seen.shape[1]
    # An action's rows are contiguous, as fits read them.
    table, weights = np.zeros((2, len(seen), draws, n_actions, end), np.float32).swapaxes(3, 4)
    weights[:, :, t:] = 1
    known = (seen[..., None] == np.arange(n_actions)).astype(np.float32)  # (B, t, A)
    weights[:, :, :t] = known[:, None]
    table[:, :, :t] = (known * outcomes[..., None])[:, None]
    return table, weights


def place_columns(seen: np.ndarray, actions: np.ndarray, n_actions: int) -> np.ndarray:
    """Return where observed actions (B, t) are among the columns ``actions`` (B, n); -1 for those that are not."""
    place = np.full((len(seen), n_actions + 1), -1)
    np.put_along_axis(place, actions, np.arange(actions.shape[1])[None], axis=1)
    return np.take_along_axis(place, seen, axis=1)  # -1 finds the last entry, a -1


def check_state(verb: str, state: Any, size: int) -> None:
    """Raise unless ``state``, which a model's ``verb`` returned, is a tree of arrays with a row for each action."""
    rule = f"the model's {verb} must return an array with a row for each of {size} actions, or several, nested"
    if not list(tree_leaves(state)):
        raise InputError(f"{rule}, got {state!r}")
    for leaf in tree_leaves(state):
        if not isinstance(leaf, np.ndarray | torch.Tensor) or tuple(leaf.shape[:1]) != (size,):
            got = tuple(leaf.shape) if isinstance(leaf, np.ndarray | torch.Tensor) else repr(leaf)
            raise InputError(f"{rule}, got {got}")


def check_columns(actions: Any, n_tasks: int, n_actions: int) -> np.ndarray:
    """Check that ``actions`` (B, n) are different actions of each task, at least one; return them."""
    try:
        actions = np.asarray(actions)
    except ValueError:  # a ragged list
        raise InputError(f"actions must be whole numbers of shape (B, n) with B={n_tasks}, got {actions!r}") from None
    if actions.ndim != 2 or len(actions) != n_tasks or actions.dtype.kind not in "iu" or not actions.size:
        got = f"{actions.dtype}{actions.shape}"
        raise InputError(f"actions must be whole numbers of shape (B, n) with B={n_tasks}, got {got}")
    if actions.min() < 0 or actions.max() >= n_actions:
        raise InputError(f"actions must lie in [0, {n_actions}), got {actions.min()} to {actions.max()}")
    twice = (np.diff(np.sort(actions, axis=1), axis=1) == 0).any(axis=1)
    if twice.any():
        task = int(twice.argmax())
        raise TaskError(f"actions must differ from each other, got {actions[task].tolist()} for task {task}", task)
    return actions


def check_tasks(tasks: Any, n_tasks: int) -> np.ndarray:
    """Check that ``tasks`` (n,) are indices of the B tasks, at least one; return them."""
    tasks = np.asarray(tasks)
    if tasks.ndim != 1 or tasks.dtype.kind not in "iu" or not len(tasks):
        raise InputError(f"tasks must be whole numbers of shape (n,), at least one, got {tasks.dtype}{tasks.shape}")
    if tasks.min() < 0 or tasks.max() >= n_tasks:
        raise InputError(f"tasks must lie in [0, {n_tasks}), got {tasks.min()} to {tasks.max()}")
    return tasks


def ask_optional(model: Any, method: str, *arrays: np.ndarray) -> np.ndarray | None:
    """Return the result of an optional method of a per-action model; None if it has no such method."""
    found = getattr(model, method, None)
    return None if found is None else found(*arrays)


def check_likelihood(likelihood: Likelihood, info: TaskInfo) -> None:
    """Raise unless the tasks' outcomes are of the model's kind."""
    if not isinstance(likelihood, Likelihood):
        rule = "the model's likelihood must be a Bernoulli, Gaussian or Categorical of gents_gym"
        raise InputError(f"{rule}, got {likelihood!r}")
    if likelihood != info.likelihood:
        raise InputError(f"model must be of {info.likelihood} outcomes for these tasks, got {likelihood} ones")


def _owners(seen: np.ndarray, n_actions: int) -> np.ndarray:
    """Return the index b·A + a of the action that was observed in each row, (B, t); -1 for none."""
    return np.where(seen >= 0, np.arange(len(seen))[:, None] * n_actions + seen, -1)


def _put(part: Any, rows: np.ndarray, values: Any) -> Any:
    """Return a copy with some rows replaced."""
    part = _copy(part)
    part[rows] = values
    return part


def _copy(part: Any) -> Any:
    return part.clone() if isinstance(part, torch.Tensor) else part.copy()


def _join(*parts: Any, axis: int = 0) -> Any:
    return torch.cat(parts, axis) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts, axis)


def _repeat(part: Any, n_tasks: int, draws: int) -> Any:
    """Return each task's block of rows ``draws`` times."""
    if draws == 1:
        return part
    blocks = part.reshape(n_tasks, 1, -1, *part.shape[1:])
    shape = (n_tasks, draws, *blocks.shape[2:])
    spread = blocks.expand(shape) if isinstance(part, torch.Tensor) else np.broadcast_to(blocks, shape)
    return spread.reshape(-1, *part.shape[1:])


def _like(leaf: Any, array: np.ndarray) -> Any:
    return torch.from_numpy(array.copy()) if isinstance(leaf, torch.Tensor) else array.copy()
