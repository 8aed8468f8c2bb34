"""Checks completed tables: shapes, observed cells, contexts, weights and features."""

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gents_gym.checks import InputError
from gents_gym.testing.believer import Believer, Story, WatchedBelief, check_same
from gents_gym.testing.contract import breach
from gents_gym.testing.player import unless_refused
from gents_gym.types import Completion, Feedback, Model

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"rows": 3}, {"rows": 3, "draws": 2})


def check_completions(believer: Believer, story: Story, steps: int) -> None:
    """Check the form of the tables that beliefs complete after ``steps`` decisions."""
    belief = believer.begin(story, steps)
    before = belief.expected(story.tasks.contexts[:, steps])
    columns = np.tile([2, 0], (len(story.actions), 1)) % story.tasks.n_actions
    for options in (*OPTIONS, {"rows": 2, "actions": columns}, {"actions": columns}):
        check_form(believer, belief, story, steps, options)
    after = belief.expected(story.tasks.contexts[:, steps])
    rule = f"{believer.name}: complete changes what is expected"
    advice = "imagined outcomes are not observations: generate from a copy of the state"
    check_same(rule, before, after, "tables were completed between two calls of expected", advice, belief.draws)
    _check_copies(believer, story, steps)
    _check_open_cells(believer, story, steps)
    _check_contexts(believer, story, steps)
    unknown = unless_refused(lambda: believer.begin(story, steps, horizon=None))
    if unknown is not None:  # a model may refuse tasks without a horizon
        check_form(believer, unknown, story, steps, {"rows": 3})


def complete(belief: WatchedBelief, story: Story, t: int, **options: Any) -> Completion:
    """Return tables completed in the contexts of decision t."""
    found: Completion = belief.call("complete", story.tasks.contexts[:, t].copy(), **copy.deepcopy(options))
    return found


def check_form(
    believer: Believer,
    belief: WatchedBelief,
    story: Story,
    t: int,
    options: dict[str, Any],
    arrived: np.ndarray | None = None,
) -> None:
    """Complete tables and check them; ``arrived`` (B, t) says which outcomes have arrived, None: all."""
    found = complete(belief, story, t, **options)
    shown = {name: value.shape if isinstance(value, np.ndarray) else value for name, value in options.items()}
    done = f"complete was called with {shown or 'nothing but the context'} after {belief.where}"
    table = _Table(believer.name, done, story, t, options, found)
    table.check_shapes()
    table.check_contexts()
    table.check_cells(np.ones((len(story.actions), t), np.bool_) if arrived is None else arrived)
    table.check_features(believer.model)


@dataclass(frozen=True, eq=False)
class _Table:
    """A completion, with the request."""

    name: str
    done: str
    story: Story
    t: int
    options: dict[str, Any]
    found: Completion

    def demand(self, holds: Any, what: str, expected: str, seen: Any, advice: str) -> None:
        if not holds:
            rule = f"{self.name}: {what} of a completed table is wrong"
            raise breach(rule, done=self.done, expected=expected, seen=str(seen), advice=advice)

    @property
    def columns(self) -> np.ndarray:
        """The actions of the columns, (B, n)."""
        n_tasks, n_actions = len(self.story.tasks), self.story.tasks.n_actions
        return np.asarray(self.options.get("actions", np.tile(np.arange(n_actions), (n_tasks, 1))))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, M, T', n)."""
        tasks, rows = self.story.tasks, self.options.get("rows")
        end = tasks.horizon if rows is None else self.t + rows
        return (len(tasks), self.options.get("draws", 1), end, self.columns.shape[1])

    def check_shapes(self) -> None:
        shapes = {"contexts": (*self.shape[:3], self.story.tasks.context_dim), "outcomes": self.shape}
        if "rows" in self.options or getattr(self.found, "weights", None) is not None:
            shapes["weights"] = self.shape
        for name, wanted in shapes.items():
            part: Any = getattr(self.found, name, None)
            advice = "return gents_gym.Completion with the shapes of gents_gym.Belief.complete"
            self.demand(np.shape(part) == wanted, name, f"shape {wanted}", f"shape {np.shape(part)}", advice)
        current, wanted_row = getattr(self.found, "current", None), f"row {self.t}, that of the current context"
        self.demand(current == self.t, "current", wanted_row, current, "count the rows of earlier decisions")

    def check_contexts(self) -> None:
        own, contexts = self.story.tasks.contexts[:, None, : self.t + 1], self.found.contexts
        advice = "put the contexts of earlier decisions and the current one into the first rows"
        same = np.allclose(contexts[:, :, : self.t + 1], own, atol=1e-5)
        self.demand(same, "contexts", "the task's own contexts up to the current one", "others", advice)
        self.demand(np.isfinite(contexts).all(), "contexts", "finite numbers", "others", "draw valid contexts")

    def check_cells(self, arrived: np.ndarray) -> None:
        """Check observed cells, weights and that outcomes are valid."""
        t, found, shape = self.t, self.found, self.shape
        played = np.where(arrived, self.story.actions[:, :t], -1)
        seen = np.broadcast_to((played[..., None] == self.columns[:, None])[:, None], (*shape[:2], t, shape[3]))
        outcomes = np.stack([self.story.outcome(s) for s in range(t)], 1)[:, None, :, None]  # (B, 1, t, 1)
        kept = found.outcomes[:, :, :t][seen] == np.broadcast_to(outcomes, seen.shape)[seen]
        advice = "write the observed outcomes into their cells; only missing ones are drawn"
        self.demand(kept.all(), "an observed cell", "the outcome that was observed", "another one", advice)
        weights = np.ones(shape) if found.weights is None else np.asarray(found.weights)
        counted = (weights[:, :, :t][seen] > 0).all() and (weights[:, :, t:] > 0).all() and (weights >= 0).all()
        if "rows" in self.options:
            counted = counted and not weights[:, :, :t][~seen].any()
        expected = "above 0 for observed and imputed cells, 0 for the other cells of earlier rows if rows is given"
        advice = "weights say which cells a policy is fitted to"
        self.demand(counted, "the weights", expected, "others", advice)
        likelihood = self.story.tasks.likelihood
        try:
            likelihood.check("a completed outcome", np.asarray(found.outcomes)[weights > 0])
        except InputError as error:
            advice = "draw outcomes: likelihood.sample(parameters, noise)"
            self.demand(False, "an outcome", f"{likelihood} outcomes", error, advice)

    def check_features(self, model: Model) -> None:
        mapped, features = model.context_features(self.found.contexts), self.found.features
        advice = "return context_features of the table's contexts, or None if the model has none"
        both = (features is None) == (mapped is None)
        self.demand(both, "features", "features if and only if the model has some", f"{features!r:.60}", advice)
        if mapped is not None and features is not None:
            same = np.shape(mapped) == np.shape(features) and np.allclose(mapped, features, atol=1e-3)
            self.demand(same, "features", "context_features of the table's contexts", "others", advice)


def _check_copies(believer: Believer, story: Story, steps: int) -> None:
    """Check the tables of a fork, of a restored belief and of one with more actions."""
    belief, order = believer.begin(story, steps), [2, 0, 2]
    for options in OPTIONS[:2]:
        check_form(believer, belief.fork(order), story.pick(order), steps, options)
        restored = believer.begin(story)
        restored.call("restore", belief.call("state"))
        restored.where = f"a state was restored, of {belief.where}"
        check_form(believer, restored, story, steps, options)
    wide = story.widen(story.tasks.action_features[:, :2])
    belief.call("add", story.tasks.action_features[:, :2].copy())
    belief.where += " and 2 that were added"
    check_form(believer, belief, wide, steps, {"rows": 3})


def _check_open_cells(believer: Believer, story: Story, steps: int) -> None:
    """Check that a cell is missing until its outcome arrives."""
    belief = believer.begin(story, steps)
    belief.call("decide", story.tasks.contexts[:, steps].copy(), story.actions[:, steps].copy())
    found = complete(belief, story, steps + 1, rows=2)
    cells = np.take_along_axis(np.asarray(found.weights)[:, :, steps], story.actions[:, None, steps, None], axis=2)
    if cells.any():
        raise breach(
            f"{believer.name}: a decision without an outcome counts as observed",
            done="decide was called, no outcome arrived, and complete was called with rows=2",
            expected="weight 0 in the cell of that decision",
            seen=f"weights {cells.ravel().tolist()}",
            advice="decide opens a row; its cell is missing until observe brings the outcome",
        )
    late = np.array([3, 1])
    belief.call("observe", Feedback(late, np.full(2, steps), story.outcome(steps)[late]))
    belief.where += " and one more, whose outcome arrived in tasks 3 and 1 alone"
    arrived = np.ones((len(story.actions), steps + 1), np.bool_)
    arrived[:, steps] = np.isin(np.arange(len(arrived)), late)
    for options in OPTIONS[:2]:
        check_form(believer, belief, story, steps + 1, options, arrived)


def _check_contexts(believer: Believer, story: Story, steps: int) -> None:
    """Check named context models; a model may refuse one with an InputError."""
    contexts = story.tasks.contexts
    for name in ("bank", "seen", "own", "given"):
        options = {"rows": 4, "contexts": name}
        belief = believer.begin(story, steps, known_contexts=contexts.copy())
        found = unless_refused(partial(complete, belief, story, steps, **options))
        if found is None:
            continue
        check_form(believer, belief, story, steps, options)
        if name == "given":
            rule = f"{believer.name} ignores known contexts"
            done = "complete was called with contexts='given', and info.known_contexts has all contexts of the tasks"
            advice = "put the known contexts into the future rows, or refuse 'given' with a gents_gym.InputError"
            check_same(rule, contexts[:, None, : steps + 4], found.contexts, done, advice)
