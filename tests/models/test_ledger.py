"""The ledger against lists of dictionaries, through random decisions, late outcomes, forks and restored states."""

import re

import numpy as np
import pytest

from gents_gym import Bernoulli, Gaussian, InputError, TaskInfo
from gents_gym.models.ledger import GROWTH, Ledger
from gents_gym.types import Feedback

D, A = 3, 4


def double_rows(contexts):
    return np.concatenate([contexts, contexts**2], axis=-1)


class Lists:
    """The same by hand: a list of rows for each task, a row a dictionary."""

    def __init__(self, n_tasks):
        self.tasks = [[] for _ in range(n_tasks)]

    def decide(self, contexts, actions):
        for rows, context, action in zip(self.tasks, contexts, actions, strict=True):
            rows.append({"context": context.tolist(), "action": int(action), "outcome": None})

    def arrive(self, feedback):
        for task, decision, outcome in zip(feedback.task, feedback.decision, feedback.outcome, strict=True):
            self.tasks[task][decision]["outcome"] = float(outcome)

    def pick(self, tasks):
        other = Lists(0)
        other.tasks = [[dict(row) for row in self.tasks[i]] for i in tasks]
        return other

    def open_rows(self):
        return [(i, t) for i, rows in enumerate(self.tasks) for t, row in enumerate(rows) if row["outcome"] is None]


def check(ledger, lists):
    t = ledger.time
    assert [len(rows) for rows in lists.tasks] == [t] * len(lists.tasks)
    for i, rows in enumerate(lists.tasks):
        assert ledger.contexts[i, :t].tolist() == [row["context"] for row in rows]
        assert ledger.rows[i, :t].tolist() == double_rows(ledger.contexts[i, :t]).tolist()
        assert ledger.actions[i, :t].tolist() == [row["action"] for row in rows]
        assert ledger.seen[i, :t].tolist() == [-1 if row["outcome"] is None else row["action"] for row in rows]
        for s, row in enumerate(rows):
            assert row["outcome"] is None or ledger.outcomes[i, s] == np.float32(row["outcome"])


def info_of(n_tasks, horizon=None, known=None):
    return TaskInfo(np.zeros((n_tasks, A, 2), np.float32), A, D, horizon, known_contexts=known)


def draw_feedback(lists, rng):
    """Some of the open rows, in any order."""
    rows = lists.open_rows()
    picked = [rows[i] for i in rng.permutation(len(rows))[: rng.integers(len(rows) + 1)]]
    task, decision = np.array(picked, np.int64).reshape(-1, 2).T
    return Feedback(task, decision, rng.normal(size=len(task)).astype(np.float32))


@pytest.mark.parametrize("horizon", [None, 40])
@pytest.mark.parametrize("seed", range(6))
def test_random_histories_are_kept_as_lists_of_rows_keep_them(seed, horizon):
    rng, n_tasks = np.random.default_rng(seed), 3
    ledger, lists = Ledger(info_of(n_tasks, horizon), double_rows), Lists(n_tasks)
    others = []  # what was forked from, or restored over, must stay as it was
    for _ in range(120):
        step = rng.choice(["decide", "arrive", "fork", "restore", "face"], p=[0.4, 0.4, 0.08, 0.08, 0.04])
        n_tasks = len(lists.tasks)
        contexts = rng.normal(size=(n_tasks, D)).astype(np.float32)
        if step == "decide" and ledger.time != horizon:
            actions = rng.integers(A, size=n_tasks)
            ledger.decide(contexts, actions)
            lists.decide(contexts, actions)
        elif step == "arrive":
            feedback = draw_feedback(lists, rng)
            task, decision, outcome = ledger.arrive(feedback, Gaussian())
            assert (task.tolist(), decision.tolist()) == (feedback.task.tolist(), feedback.decision.tolist())
            assert outcome.tolist() == feedback.outcome.tolist()
            lists.arrive(feedback)
        elif step == "fork":
            tasks = rng.integers(n_tasks, size=rng.integers(1, 5))
            others.append((ledger, lists))
            ledger, lists = ledger.pick(tasks), lists.pick(tasks)
        elif step == "restore":
            others.append((ledger, lists))
            restored = Ledger(info_of(n_tasks, horizon), double_rows)
            restored.restore(ledger.state())
            ledger, lists = restored, lists.pick(range(n_tasks))
        elif step == "face" and ledger.time != horizon:
            ledger.face(contexts)  # a context that no decision follows yet
            assert np.array_equal(ledger.contexts[:, ledger.time], contexts)
            assert np.array_equal(ledger.rows[:, ledger.time], double_rows(contexts))
        check(ledger, lists)
    for pair in others:
        check(*pair)
    assert ledger.time > 20


def test_room_grows_with_an_unknown_horizon():
    ledger = Ledger(info_of(2), double_rows)
    for t in range(2 * GROWTH + 3):
        ledger.decide(np.full((2, D), t, np.float32), np.array([t % A, 0]))
        ledger.arrive(Feedback(np.array([0, 1]), np.array([t, t]), np.array([t % 2, 1])), Bernoulli())
    n = 2 * GROWTH + 3
    assert ledger.contexts[1, :n, 0].tolist() == list(range(n))
    assert ledger.seen[0, :n].tolist() == [t % A for t in range(n)]
    assert ledger.outcomes[0, :n].tolist() == [t % 2 for t in range(n)]


def test_known_contexts_are_in_their_places_until_others_are_seen():
    known = np.random.default_rng(0).normal(size=(2, 6, D)).astype(np.float32)
    ledger = Ledger(info_of(2, 5, known), double_rows)
    assert ledger.n_known == 6  # more than the horizon: known is what is known
    assert np.array_equal(ledger.contexts[:, :6], known)
    assert np.array_equal(ledger.rows[:, :6], double_rows(known))
    ledger.decide(known[:, 0] + 1, np.zeros(2, int))
    assert np.array_equal(ledger.contexts[:, 0], known[:, 0] + 1)
    assert np.array_equal(ledger.contexts[:, 1:6], known[:, 1:])
    fork = ledger.pick(np.array([1, 1]))
    assert np.array_equal(fork.contexts[:, 1:6], known[[1, 1], 1:])


def test_each_context_is_mapped_once():
    calls = []

    def count(contexts):
        calls.append(contexts.shape)
        return contexts

    ledger = Ledger(info_of(2, 5), count)
    context = np.ones((2, D), np.float32)
    del calls[:]
    for _ in range(3):
        ledger.face(context)
    ledger.decide(context, np.zeros(2, int))
    assert calls == [(2, D)]


def test_a_table_ends_at_the_horizon_or_behind_the_rows_that_are_asked_for():
    ledger = Ledger(info_of(1, 3), double_rows)
    ledger.decide(np.zeros((1, D)), [0])
    assert (ledger.end(None), ledger.end(1), ledger.end(7)) == (3, 2, 8)


def begun(horizon=4):
    ledger = Ledger(info_of(2, horizon), double_rows)
    for _ in range(2):
        ledger.decide(np.zeros((2, D)), [0, 1])
    ledger.arrive(Feedback(np.array([1]), np.array([0]), np.array([1.0])), Bernoulli())
    return ledger


@pytest.mark.parametrize(
    ("task", "decision", "outcome", "message"),
    [
        ([2], [0], [1], "task must lie in [0, 2), got 2 to 2"),
        ([-1], [0], [1], "task must lie in [0, 2), got -1 to -1"),
        ([0], [2], [1], "decision must be one of the 2 made so far, from 0 on, got 2 to 2"),
        ([0], [-1], [1], "decision must be one of the 2 made so far, from 0 on, got -1 to -1"),
        ([0.0], [0], [1], "task and decision must be whole numbers, got float64 and int64"),
        ([0, 1], [0], [1], "task and decision must have shape (n,), got (2,) and (1,)"),
        ([[0]], [[0]], [[1]], "task and decision must have shape (n,), got (1, 1) and (1, 1)"),
        ([0], [0], [1, 1], "outcome must have shape (n,)=(1,), got (2,)"),
        ([0], [0], [2], "outcome must be 0 or 1, got 2"),
        ([0], [0], [np.nan], "outcome must be finite, got nan"),
        ([1], [0], [1], "an outcome must arrive once for each decision, got one a second time"),
        ([0, 0], [1, 1], [1, 0], "an outcome must arrive once for each decision, got one a second time"),
    ],
)
def test_feedback_that_fits_no_open_row_is_refused_and_changes_nothing(task, decision, outcome, message):
    ledger = begun()
    before = {name: array.tolist() for name, array in ledger.state().items()}
    with pytest.raises(InputError, match=re.escape(message)):
        ledger.arrive(Feedback(np.array(task), np.array(decision), np.array(outcome)), Bernoulli())
    assert {name: array.tolist() for name, array in ledger.state().items()} == before


def test_no_outcomes_at_all_are_feedback_too():
    task, decision, outcome = begun().arrive(Feedback(np.array([]), np.array([]), np.array([])), Bernoulli())
    assert [part.shape for part in (task, decision, outcome)] == [(0,)] * 3
    assert task.dtype.kind == "i"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {**s, "contexts": s["contexts"][:1]}, "contexts must have shape (B, t, D), got (1, 2, 3)"),
        (lambda s: {**s, "actions": s["actions"][:, :1]}, "actions must have shape (B, t)=(2, 2), got (2, 1)"),
        (lambda s: {**s, "actions": s["actions"] + A}, "actions must lie in [0, 4), and seen must be -1 or the action"),
        (lambda s: {**s, "seen": s["seen"] * 0 + 2}, "actions must lie in [0, 4), and seen must be -1 or the action"),
        (lambda s: {**s, "outcomes": s["outcomes"] / 0}, "outcomes must be finite, got"),
        (
            lambda s: {name: np.repeat(array, 3, axis=1) for name, array in s.items()},
            "state must have at most 4 rows, the horizon, got 6",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_states_of_other_tasks_are_refused_and_change_nothing(change, message):
    ledger = begun()
    before = {name: array.tolist() for name, array in ledger.state().items()}
    with pytest.raises(InputError, match=re.escape(message)):
        ledger.restore(change(ledger.state()))
    assert {name: array.tolist() for name, array in ledger.state().items()} == before


def test_bad_decisions():
    ledger = begun(2)
    with pytest.raises(InputError, match="act must be called at most 2 times, the horizon, got one more"):
        ledger.decide(np.zeros((2, D)), [0, 1])
    ledger = begun()
    with pytest.raises(InputError, match=re.escape("context must have shape (B, D)=(2, 3), got (2, 2)")):
        ledger.decide(np.zeros((2, 2)), [0, 1])
    with pytest.raises(InputError, match=re.escape("action must lie in [0, 4), got 4")):
        ledger.decide(np.zeros((2, D)), [0, 4])
    assert ledger.time == 2
    ledger.widen(5)
    ledger.decide(np.zeros((2, D)), [0, 4])
    with pytest.raises(InputError, match="rows must be at least 1, got 0"):
        ledger.end(0)
    with pytest.raises(InputError, match=re.escape("rows (the option m of an agent) must be given if the horizon is")):
        Ledger(info_of(2), double_rows).end(None)
    with pytest.raises(InputError, match=re.escape("known_contexts must have shape (B, T, D), got (1, 2, 3)")):
        Ledger(info_of(2, 3, np.zeros((1, 2, D))), double_rows)
