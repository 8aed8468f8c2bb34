"""Checks the contract of per-action models: start, predict and append; raises at the first violation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gents_gym.checks import InputError
from gents_gym.likelihoods import Likelihood
from gents_gym.models.belief import check_state
from gents_gym.models.tree import map_tree, tree_leaves
from gents_gym.testing.believer import check_same, watched
from gents_gym.testing.contract import breach
from gents_gym.types import ActionModel, Tasks

STATE_ADVICE = "keep everything that append learns in the state that it returns, and nothing in self"
COPY_ADVICE = "make a new state: state = state.copy(), or state + change instead of state += change"


@dataclass(frozen=True, eq=False)
class Histories:
    """Rows of N actions: features (N, F), contexts (T, N, D) and outcomes (T, N)."""

    features: np.ndarray
    contexts: np.ndarray
    outcomes: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks) -> "Histories":
        """Return all actions of the tasks, each with its own outcomes; task by task."""
        features = tasks.action_features.reshape(-1, tasks.action_features.shape[2])
        contexts = np.repeat(tasks.contexts, tasks.n_actions, axis=0).swapaxes(0, 1)  # (T, B·A, D)
        return cls(features, contexts, tasks.outcomes.swapaxes(0, 1).reshape(tasks.horizon, -1))

    def pick(self, rows: Sequence[int]) -> "Histories":
        """Return the rows of some actions."""
        return Histories(self.features[rows], self.contexts[:, rows], self.outcomes[:, rows])


class WatchedActions:
    """Calls the three methods and checks every result."""

    def __init__(self, name: str, model: ActionModel, likelihood: Likelihood) -> None:
        self.name, self._model, self._likelihood = name, model, likelihood
        self._takes_tensors = isinstance(model, torch.nn.Module)

    def history(self, rows: Histories, steps: int) -> Any:
        """Return the state after the first ``steps`` rows."""
        state = self.start(rows.features)
        for t in range(steps):
            state = self.append(state, rows.contexts[t], rows.outcomes[t])
        return state

    def start(self, features: np.ndarray) -> Any:
        """Return the state of actions (N, F)."""
        return self._call("start", len(features), features)

    def predict(self, state: Any, contexts: np.ndarray) -> np.ndarray:
        """Return the likelihood's parameters (N, ...), checked."""
        found = self._call("predict", len(contexts), state, contexts)
        found = np.asarray(found.numpy() if isinstance(found, torch.Tensor) else found, np.float64)
        wanted = (len(contexts), *self._likelihood.shape)
        try:
            if found.shape != wanted:
                raise InputError(f"shape {found.shape}")
            self._likelihood.check_parameters("the prediction", found)
        except InputError as error:
            raise breach(
                f"{self.name} returns invalid predictions",
                done=f"predict was called for {len(contexts)} actions",
                expected=f"{MEANINGS[str(self._likelihood).partition('(')[0]]}, of shape {wanted}",
                seen=str(error),
                advice="return one row for each action; clip or normalise what leaves the range",
            ) from error
        return found

    def append(self, state: Any, contexts: np.ndarray, outcomes: np.ndarray, where: np.ndarray | None = None) -> Any:
        """Return the state after one more row, which must have the same shapes as the one before."""
        given = (state, contexts, outcomes) if where is None else (state, contexts, outcomes, where)
        after = self._call("append", len(contexts), *given)
        shapes = [[tuple(leaf.shape) for leaf in tree_leaves(each)] for each in (state, after)]
        if shapes[0] != shapes[1]:
            raise breach(
                f"{self.name}: append changes the shape of the state",
                done=f"append was called for {len(contexts)} actions",
                expected=f"arrays of the shapes that start gives them, {shapes[0]}",
                seen=f"{shapes[1]}",
                advice="keep sums, counts or a hidden state of fixed size instead of a growing list of rows",
            )
        return after

    def _call(self, verb: str, size: int, *given: Any) -> Any:
        parts = [map_tree(self._given, part) for part in given]
        before = [map_tree(_copy, part) for part in parts]
        done = f"{verb} was called for {size} actions"

        def call() -> Any:
            with torch.no_grad():
                return getattr(self._model, verb)(*parts)

        answer = watched(self.name, verb, done, call)
        for what, part, kept in zip(ARGUMENTS[verb], parts, before, strict=False):
            if not all(map(_equal, tree_leaves(part), tree_leaves(kept))):
                raise breach(
                    f"{self.name}: {verb} changes the {what} that it is given",
                    done=done,
                    expected=f"the {what} unchanged, because tables are generated from one state again and again",
                    seen="its numbers have changed",
                    advice=COPY_ADVICE,
                )
        if verb == "predict":
            return answer
        try:
            check_state(verb, answer, size)
        except InputError as error:
            expected = f"an array with {size} rows, or tuples, lists or dictionaries of such arrays"
            advice = "give every action its own row"
            rule = f"{self.name}: {verb} returns an invalid state"
            raise breach(rule, done=done, expected=expected, seen=str(error), advice=advice) from error
        return map_tree(_copy, answer)  # so that later changes of the model's own arrays do not affect it

    def _given(self, leaf: Any) -> Any:
        return torch.tensor(leaf) if self._takes_tensors and isinstance(leaf, np.ndarray) else _copy(leaf)


ARGUMENTS = {
    "start": ("action features",),
    "predict": ("state", "context"),
    "append": ("state", "context", "outcome", "where"),
}
MEANINGS = {
    "bernoulli": "probabilities of the outcome 1",
    "gaussian": "a finite mean and a variance above 0",
    "categorical": "the probabilities of all outcomes, which sum to 1",
}


def check_actions(name: str, model: ActionModel, likelihood: Likelihood, tasks: Tasks, steps: int) -> None:
    """Check the three methods of a per-action model on all actions of ``tasks``."""
    actions, rows = WatchedActions(name, model, likelihood), Histories.of(tasks)
    size, context, outcome = len(rows.features), rows.contexts[steps], rows.outcomes[steps]
    state = actions.history(rows, steps)
    found = actions.predict(state, context)
    done = f"predict was called twice with one state, after {steps} rows of {size} actions"
    again = actions.predict(state, context)
    advice = "use only the state and the context: no counter, clock or generator"
    rule = f"{name}: a prediction depends on more than the history"
    check_same(rule, found, again, done, advice, what="action")
    after = actions.predict(actions.append(state, context, outcome), context)
    done = "one more row was appended to a state, and the state itself was used again"
    check_same(rule, found, actions.predict(state, context), done, STATE_ADVICE, what="action")
    done = f"the same {steps} rows were appended again to a new state"
    check_same(rule, found, actions.predict(actions.history(rows, steps), context), done, STATE_ADVICE, what="action")
    for picked in ([0], [size - 1], [*range(size - 1, -1, -1)], [*range(1, size, 3)]):
        done = f"actions {picked} of {size} were predicted, in this order"
        advice = "treat every row on its own: reduce over features only, never over actions (axis=0)"
        rule = f"{name}: the prediction of an action depends on the other actions"
        part = rows.pick(picked)
        own = actions.history(part, steps)
        check_same(rule, found[picked], actions.predict(own, context[picked]), done, advice, what="action")
        rule, done = (
            f"{name}: a state cannot be split into rows",
            f"rows {picked} of a state of {size} actions were used on their own",
        )
        cut = map_tree(lambda leaf, picked=picked: leaf[picked], state)
        check_same(rule, found[picked], actions.predict(cut, context[picked]), done, STATE_ADVICE, what="action")
        later = actions.predict(actions.append(cut, context[picked], outcome[picked]), context[picked])
        check_same(rule, after[picked], later, done, STATE_ADVICE, what="action")
    for where in (np.arange(size) % 3 == 1, np.ones(size, np.bool_), np.zeros(size, np.bool_)):
        other = np.where(where, outcome, outcome[::-1])  # the values given for the others must not matter
        chosen = actions.predict(actions.append(state, context, other, where), context)
        done = f"append was called with where, True for {int(where.sum())} of {size} actions"
        rule = f"{name}: append does not follow where"
        advice = "use np.where or a product with where, so that rows that where does not pick stay unchanged"
        wanted = np.where(where.reshape(-1, *[1] * (found.ndim - 1)), after, found)
        check_same(rule, wanted, chosen, done, advice, what="action")


def _copy(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else np.array(leaf) if isinstance(leaf, np.ndarray) else leaf


def _equal(left: Any, right: Any) -> bool:
    if not isinstance(left, np.ndarray | torch.Tensor):
        return True
    return np.array_equal(np.asarray(left), np.asarray(right), equal_nan=np.asarray(left).dtype.kind == "f")
