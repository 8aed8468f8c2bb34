"""The belief of per-action models against a slow version, one task and one cell at a time."""

import re

import numpy as np
import pytest
import torch
from scipy.special import expit

from gents_gym import Categorical, Gaussian, InputError, TaskInfo, load_model
from gents_gym.checks import TaskError
from gents_gym.models.belief import ActionBelief, RowByRow
from gents_gym.types import Feedback

B, A, D, T = 3, 4, 2, 12
BANK = np.random.default_rng(5).normal(size=(6, D)).astype(np.float32)


class Walk:
    """A level that follows the outcomes, in their order: the state is (Z, level)."""

    def start(self, action_features):
        return np.column_stack([action_features, np.zeros(len(action_features))]).astype(np.float64)

    def predict(self, state, context):
        return expit(state[:, 0] + state[:, 1] + 0.5 * context[:, 0])

    def append(self, state, context, outcome, where=None):
        moved = 0.7 * state[:, 1] + outcome - 0.4 + 0.2 * context[:, 1]
        return np.column_stack([state[:, 0], moved if where is None else np.where(where, moved, state[:, 1])])


class Slow:
    """The same belief as lists: of each task its features, its rows, and each action's history as it arrived."""

    def __init__(self, features, rngs):
        self.tasks = [
            {"z": [float(z) for z in own[:, 0]], "rows": [], "histories": [[] for _ in own], "rng": rng}
            for own, rng in zip(features, rngs, strict=True)
        ]

    def chance(self, z, history, context):
        level = 0.0
        for past, outcome in history:
            level = 0.7 * level + outcome - 0.4 + 0.2 * float(past[1])
        return expit(z + level + 0.5 * float(context[0]))

    def expected(self, contexts):
        return np.array([
            [self.chance(z, h, x) for z, h in zip(task["z"], task["histories"], strict=True)]
            for task, x in zip(self.tasks, contexts, strict=True)
        ])  # fmt: skip

    def decide(self, contexts, actions):
        for task, x, a in zip(self.tasks, contexts, actions, strict=True):
            task["rows"].append([x, int(a), None])

    def observe(self, feedback):
        for i, t, y in zip(feedback.task, feedback.decision, feedback.outcome, strict=True):
            row = self.tasks[i]["rows"][t]
            row[2] = float(y)
            self.tasks[i]["histories"][row[1]].append((row[0], float(y)))

    def open_rows(self):
        return [(i, t) for i, task in enumerate(self.tasks) for t, row in enumerate(task["rows"]) if row[2] is None]

    def add(self, features):
        for task, own in zip(self.tasks, features, strict=True):
            task["z"] += [float(z) for z in own[:, 0]]
            task["histories"] += [[] for _ in own]

    def fork(self, tasks):
        other = Slow([], [])
        for i in tasks:
            task = self.tasks[i]
            copies = {"z": [*task["z"]], "rows": [[*row] for row in task["rows"]]}
            histories = [[*history] for history in task["histories"]]
            other.tasks.append({**copies, "histories": histories, "rng": task["rng"].spawn(1)[0]})
        return other

    def complete(self, task, context, end, draws, imagine, columns, only_new):
        """Return contexts and table of one task, (M, T', D) and (M, T', n); NaN in cells that do not count."""
        own = [row[0] for row in task["rows"]] + [context]
        picked = imagine(task["rng"], own, end - len(own), draws)  # (M, n, D)
        contexts = [[*own, *new] for new in picked]
        first = len(task["rows"]) if only_new else 0
        tables = []
        for m in range(draws):
            noise = task["rng"].random((end - first, len(columns)), np.float32)
            table = np.full((end, len(columns)), np.nan)
            for j, a in enumerate(columns):
                history = [*task["histories"][a]]
                for t in range(end):
                    row = task["rows"][t] if t < len(task["rows"]) else (None, None, None)
                    if row[1] == a and row[2] is not None:
                        table[t, j] = row[2]
                    elif t >= first:
                        chance = self.chance(task["z"][a], history, contexts[m][t])
                        table[t, j] = float(noise[t - first, j] < chance)
                        history.append((contexts[m][t], table[t, j]))
            tables.append(table)
        return np.array(contexts), np.array(tables)


def from_bank(rng, own, count, draws):
    return BANK[rng.integers(len(BANK), size=(draws, count))]


def from_own(rng, own, count, draws):
    return np.array(own)[rng.integers(len(own), size=(draws, count))]


def pair(horizon=T, bank=BANK, known=None, seed=0):
    """The belief and its slow version, of the same tasks and with the same generators."""
    features = np.random.default_rng(seed).normal(size=(B, A, 1)).astype(np.float32)
    info = TaskInfo(features, A, D, horizon, known_contexts=known)
    belief = ActionBelief(Walk(), info, [np.random.default_rng([seed, i]) for i in range(B)], bank, 1.0)
    return belief, Slow(features, [np.random.default_rng([seed, i]) for i in range(B)])


def play(both, steps, seed=0, late=()):
    """Play some decisions; the outcomes of decisions in ``late`` do not arrive."""
    rng = np.random.default_rng([seed, 99])
    for t in range(steps):
        contexts, actions = rng.normal(size=(B, D)).astype(np.float32), rng.integers(A, size=B)
        outcomes = rng.integers(2, size=B).astype(np.float32)
        for each in both:
            each.decide(contexts, actions)
            if t not in late:
                each.observe(Feedback(np.arange(B), np.full(B, t), outcomes))
    return rng.normal(size=(B, D)).astype(np.float32)


def check_complete(both, context, imagine, end=T, columns=None, **options):
    belief, slow = both
    given = {} if columns is None else {"actions": np.array(columns)}
    found = belief.complete(context, **options, **given)
    rows, draws = options.get("rows"), options.get("draws", 1)
    t = len(slow.tasks[0]["rows"])
    assert found.current == t
    assert (found.weights is None) == (rows is None)
    for i, task in enumerate(slow.tasks):
        own = range(len(task["z"])) if columns is None else columns[i]
        end_row = end if rows is None else t + rows
        contexts, table = slow.complete(task, context[i], end_row, draws, imagine, own, rows is not None)
        assert np.array_equal(found.contexts[i], contexts)
        counted = ~np.isnan(table)
        assert np.array_equal(found.outcomes[i][counted], table[counted])
        if rows is None:
            assert counted.all()
        else:
            assert np.array_equal(found.weights[i], counted)
    return found


COLUMNS = [[2, 0], [3, 2], [0, 1]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["all actions", "some actions"])
@pytest.mark.parametrize("options", [{}, {"rows": 4}, {"rows": 1}, {"rows": 3, "draws": 3}, {"draws": 2}], ids=str)
def test_tables_are_those_of_the_slow_version(options, columns, seed):
    both = pair(seed=seed)
    context = play(both, 6, seed)
    check_complete(both, context, from_bank, columns=columns, **options)
    check_complete(both, context, from_bank, columns=columns, **options)  # the next numbers of the generators


@pytest.mark.parametrize("options", [{}, {"rows": 4, "draws": 2}], ids=str)
@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["all actions", "some actions"])
def test_open_rows_are_imputed_until_their_outcomes_arrive(options, columns):
    both = pair()
    context = play(both, 6, late=(1, 4, 5))
    check_complete(both, context, from_bank, columns=columns, **options)
    feedback = Feedback(np.array([2, 0, 2, 2]), np.array([5, 4, 1, 4]), np.array([1.0, 0, 1, 1]))
    for each in both:
        each.observe(feedback)  # late, out of order, several of one task
    assert np.allclose(both[0].expected(context), both[1].expected(context))
    check_complete(both, context, from_bank, columns=columns, **options)


def test_the_order_in_which_outcomes_arrive_is_the_order_of_the_history():
    early, late = pair()[0], pair()[0]
    contexts = np.random.default_rng(0).normal(size=(2, B, D)).astype(np.float32)
    for belief in (early, late):
        for context in contexts:
            belief.decide(context, np.zeros(B, int))
    for belief, order in ((early, [0, 1]), (late, [1, 0])):
        belief.observe(Feedback(np.zeros(2, int), np.array(order), np.array([0.0, 1.0])[order]))
    assert early.expected(contexts[0])[0, 0] != late.expected(contexts[0])[0, 0]


def test_contexts_of_the_task_itself():
    both = pair()
    context = play(both, 4)
    for options in ({}, {"rows": 3, "draws": 2}):
        belief, slow = pair(bank=None)
        play((belief, slow), 4)
        check_complete((belief, slow), context, from_own, contexts="seen", **options)
        check_complete((belief, slow), context, from_own, **options)  # the default of a model without a bank
    found = both[0].complete(context, draws=200, contexts="seen")  # α = 1: the bank's share is 1 of 1 + 5
    own = (found.contexts[:, :, 5:, None] == found.contexts[:, :, None, :5]).all(axis=-1).any(axis=-1)
    assert own.mean() == pytest.approx(5 / 6, abs=0.02)


def test_contexts_that_are_given():
    known = np.random.default_rng(3).normal(size=(B, T, D)).astype(np.float32)
    both = pair(known=known)
    for t in range(3):
        for each in both:
            each.decide(known[:, t], np.full(B, t))
            each.observe(Feedback(np.arange(B), np.full(B, t), np.ones(B)))

    for options in ({}, {"rows": 5, "draws": 2}):
        found = both[0].complete(known[:, 3], contexts="given", **options)
        wanted = known[:, None, : found.contexts.shape[2]]
        assert np.array_equal(found.contexts, np.broadcast_to(wanted, found.contexts.shape))
    beyond = both[0].complete(known[:, 3], rows=20, contexts="given")
    assert (beyond.contexts[:, 0, T:, None] == BANK).all(axis=-1).any(axis=-1).all()


@pytest.mark.parametrize("horizon", [None, 60])
@pytest.mark.parametrize("seed", range(4))
def test_random_lives_of_a_belief(seed, horizon):
    """Decisions, late outcomes, forks, added actions and restored states, in any order."""
    rng = np.random.default_rng(seed)
    both, kept = pair(horizon, seed=seed), []
    for _ in range(60):
        belief, slow = both
        n_tasks, n_actions = len(slow.tasks), len(slow.tasks[0]["z"])
        contexts = rng.normal(size=(n_tasks, D)).astype(np.float32)
        steps = ["decide", "observe", "fork", "add", "restore", "complete"]
        step = rng.choice(steps, p=[0.4, 0.3, 0.08, 0.05, 0.09, 0.08])
        if step == "decide":
            actions = rng.integers(n_actions, size=n_tasks)
            for each in both:
                each.decide(contexts, actions)
        elif step == "observe":
            open_rows = slow.open_rows()
            picked = [open_rows[i] for i in rng.permutation(len(open_rows))[: rng.integers(len(open_rows) + 1)]]
            task, decision = np.array(picked, np.int64).reshape(-1, 2).T
            feedback = Feedback(task, decision, rng.integers(2, size=len(task)))
            for each in both:
                each.observe(feedback)
        elif step == "fork":
            tasks = rng.integers(n_tasks, size=3)
            kept.append((both, contexts, belief.expected(contexts)))
            both = belief.fork(tasks), slow.fork(tasks)
        elif step == "add" and n_actions < 8:
            features = rng.normal(size=(n_tasks, 2, 1)).astype(np.float32)
            for each in both:
                each.add(features)
        elif step == "restore":
            fresh = belief.fork(np.arange(n_tasks))
            slow = slow.fork(range(n_tasks))
            fresh.decide(contexts, np.zeros(n_tasks, int))
            fresh.observe(Feedback(np.arange(n_tasks), np.full(n_tasks, len(slow.tasks[0]["rows"])), np.ones(n_tasks)))
            fresh.restore(belief.state())
            both = fresh, slow
        elif step == "complete":
            check_complete(both, contexts, from_bank, rows=3, draws=2)
        many = rng.normal(size=(len(both[1].tasks), 2, D)).astype(np.float32)
        found = both[0].expected(many)
        for c in range(2):
            assert np.allclose(found[:, c], both[1].expected(many[:, c]), atol=1e-6)
            assert np.allclose(both[0].expected(many[:, c]), found[:, c], atol=1e-12)
    for (belief, slow), contexts, found in kept:
        assert np.array_equal(belief.expected(contexts), found)
        assert np.allclose(found, slow.expected(contexts), atol=1e-6)


class TorchWalk(torch.nn.Module):
    """Walk, of tensors, its state a dictionary."""

    def start(self, action_features):
        return {"z": action_features[:, 0], "level": torch.zeros(len(action_features), dtype=torch.float64)}

    def predict(self, state, context):
        return torch.sigmoid(state["z"] + state["level"] + 0.5 * context[:, 0])

    def append(self, state, context, outcome, where=None):
        moved = 0.7 * state["level"] + outcome - 0.4 + 0.2 * context[:, 1]
        return {**state, "level": moved if where is None else torch.where(where, moved, state["level"])}


def test_a_module_s_state_of_tensors_is_forked_widened_kept_and_restored():
    features = np.random.default_rng(0).normal(size=(B, A, 1)).astype(np.float32)
    info = TaskInfo(features, A, D, T)
    models = TorchWalk(), Walk()
    beliefs = [ActionBelief(model, info, [np.random.default_rng(i) for i in range(B)], BANK) for model in models]
    context = play(beliefs, 5)
    for i, belief in enumerate(beliefs):
        belief.add(features[:, :2])
        fork = belief.fork(np.array([2, 1, 2]))
        state = fork.state()
        assert all(isinstance(array, np.ndarray) for array in state.values())
        fork.decide(context, np.zeros(B, int))
        fork.observe(Feedback(np.arange(B), np.full(B, 5), np.ones(B)))
        fork.restore(state)
        beliefs[i] = fork
    found = [belief.expected(context) for belief in beliefs]
    assert found[0].shape == (3, A + 2)
    assert np.allclose(*found, atol=1e-6)
    tables = [belief.complete(context, rows=4, draws=3) for belief in beliefs]
    assert np.array_equal(tables[0].outcomes, tables[1].outcomes)


class Means:
    """A Gaussian model: the mean of all outcomes so far, with a prior of one 0, and variance 1 + 1/(n+1)."""

    likelihood = Gaussian()

    def start(self, action_features):
        return np.zeros((len(action_features), 2))

    def predict(self, state, context):
        return np.column_stack([state[:, 1] / (state[:, 0] + 1), 1 + 1 / (state[:, 0] + 1)])

    def append(self, state, context, outcome, where=None):
        rows = np.column_stack([np.ones(len(state)), outcome])
        return state + (rows if where is None else rows * where[:, None])


def test_gaussian_tables_are_draws_of_the_joint_normal():
    """The mean of all outcomes under the prior N(0, 1) is Bayesian: rows to come have covariance 1/(n+1), plus 1."""
    info = TaskInfo(np.zeros((1, 2, 1), np.float32), 2, D, T, likelihood=Gaussian())
    belief = ActionBelief(Means(), info, [np.random.default_rng(0)], likelihood=Gaussian())
    context = np.zeros((1, D))
    for t, outcome in enumerate((2.0, 1.0, -1.0)):
        belief.decide(context, [1])
        belief.observe(Feedback(np.array([0]), np.array([t]), np.array([outcome])))
    assert belief.expected(context).tolist() == [[0, 0.5]]
    assert belief.expected(np.zeros((1, 3, D))).tolist() == [[[0, 0.5]] * 3]
    table = belief.complete(context, rows=4, draws=20_000).outcomes[0, :, 3:]  # (M, 4, 2)
    for a, (mean, spread) in enumerate(((0, 1), (0.5, 1 / 4))):
        assert table[..., a].mean(axis=0) == pytest.approx(np.full(4, mean), abs=0.05)
        assert np.cov(table[..., a].T) == pytest.approx(spread + np.eye(4), abs=0.06)


class Dirichlet:
    likelihood = Categorical(3)

    def start(self, action_features):
        return np.ones((len(action_features), 3))

    def predict(self, state, context):
        return state / state.sum(axis=1, keepdims=True)

    def append(self, state, context, outcome, where=None):
        rows = np.eye(3)[outcome.astype(int)]
        return state + (rows if where is None else rows * where[:, None])


def test_categorical_tables_are_draws_of_polya_s_urn():
    rewards = np.array([0.0, 0.5, 2.0])
    info = TaskInfo(
        np.zeros((1, 2, 1), np.float32), 2, D, T, likelihood=Categorical(3), reward_fn=lambda y: rewards[y.astype(int)]
    )
    belief = ActionBelief(Dirichlet(), info, [np.random.default_rng(0)], likelihood=Categorical(3))
    context = np.zeros((1, D))
    belief.decide(context, [1])
    belief.observe(Feedback(np.array([0]), np.array([0]), np.array([2.0])))
    assert belief.expected(context)[0] == pytest.approx([rewards.mean(), rewards @ [1, 1, 2] / 4])
    table = belief.complete(context, rows=2, draws=20_000).outcomes[0, :, 1:].astype(int)  # (M, 2, 2)
    start = np.array([1, 1, 2])
    for first in range(3):
        for second in range(3):
            wanted = start[first] / 4 * (start[second] + (first == second)) / 5
            assert ((table[:, 0, 1] == first) & (table[:, 1, 1] == second)).mean() == pytest.approx(wanted, abs=0.015)


def test_several_draws_are_a_prefix_of_more():
    """Tables of a task come from its generator, one at a time."""
    for contexts in ("bank", "seen"):
        few, many = pair()[0], pair()[0]
        context = play((few, many), 3)
        one = few.complete(context, rows=1, draws=2, contexts=contexts)
        other = many.complete(context, rows=1, draws=5, contexts=contexts)
        assert np.array_equal(one.outcomes, other.outcomes[:, :2])


def test_the_state_is_plain_and_complete():
    belief, _ = pair()
    context = play((belief,), 4, late=(2,))
    state = belief.state()
    assert sorted(state) == ["actions", "contexts", "outcomes", "seen", "state.0"]
    fresh = pair()[0]
    fresh.restore({name: array.copy() for name, array in state.items()})
    assert np.array_equal(fresh.expected(context), belief.expected(context))
    assert np.array_equal(fresh.complete(context).outcomes, belief.complete(context).outcomes)
    assert (fresh.state()["seen"][:, 2] == -1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"other": np.zeros(1)},
            "state must have actions, contexts, outcomes, seen, state.0, got ",
        ),
        ({"state.0": np.zeros((2, 2))}, "state.0 must have shape (12, 2) for these tasks, got (2, 2)"),
        ({"actions": np.full((B, 2), 7)}, "actions must lie in [0, 4), and seen must be -1 or the action"),
    ],
)
def test_states_of_others_are_refused(change, message):
    belief, _ = pair()
    play((belief,), 2)
    with pytest.raises(InputError, match=re.escape(message)):
        belief.restore({**belief.state(), **change})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"rows": 0}, "rows must be at least 1, got 0"),
        ({"contexts": "banc"}, "unknown context model 'banc'; did you mean 'bank'"),
        ({"contexts": "given"}, "contexts must be 'bank' or 'seen' for tasks without known contexts, got 'given'"),
        ({"actions": np.zeros(3, int)}, "actions must be whole numbers of shape (B, n) with B=3, got"),
        ({"actions": np.zeros((2, 1), int)}, "actions must be whole numbers of shape (B, n) with B=3, got"),
        ({"actions": np.zeros((3, 1))}, "actions must be whole numbers of shape (B, n) with B=3, got"),
        ({"actions": np.zeros((3, 0), int)}, "actions must be whole numbers of shape (B, n) with B=3, got"),
        ({"actions": np.full((3, 1), 4)}, "actions must lie in [0, 4), got 4 to 4"),
        (
            {"actions": np.array([[0, 1], [1, 2], [2, 2]])},
            "actions must differ from each other, got [2, 2] for task 2",
        ),
    ],
)
def test_bad_completions(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        pair()[0].complete(np.zeros((B, D)), **options)


def test_bad_arguments():
    belief, _ = pair()
    with pytest.raises(InputError, match=re.escape("action_features must have shape (B, n, F), got (3, 2, 2)")):
        belief.add(np.zeros((B, 2, 2)))
    with pytest.raises(InputError, match=re.escape("tasks must lie in [0, 3), got 0 to 3")):
        belief.fork(np.array([0, 3]))
    for tasks in ([], [0.5], 1, [[0]]):
        with pytest.raises(InputError, match=re.escape("tasks must be whole numbers of shape (n,), at least one")):
            belief.fork(tasks)
    with pytest.raises(InputError, match=re.escape("context must have shape (B, D)=(3, 2), got (3, 1)")):
        belief.expected(np.zeros((B, 1)))
    with pytest.raises(InputError, match=re.escape("contexts must have shape (B, C, D), got (2, 4, 2)")):
        belief.expected(np.zeros((2, 4, D)))
    info = TaskInfo(np.zeros((B, A, 1), np.float32), A, D, T)
    with pytest.raises(InputError, match="rngs must be one generator per task, B=3, got 2"):
        ActionBelief(Walk(), info, [np.random.default_rng(0)] * 2)
    with pytest.raises(InputError, match="model must be of bernoulli outcomes for these tasks, got gaussian ones"):
        ActionBelief(Means(), info, [np.random.default_rng(0)] * 3, likelihood=Gaussian())
    with pytest.raises(InputError, match="likelihood must be a Bernoulli, Gaussian or Categorical of gents_gym"):
        ActionBelief(Walk(), info, [np.random.default_rng(0)] * 3, likelihood="bernoulli")


def test_row_by_row_predicts_for_every_context_and_action():
    state = np.random.default_rng(0).normal(size=(B * A, 2))
    contexts = np.random.default_rng(1).normal(size=(B, 5, D)).astype(np.float32)
    found = RowByRow(Walk()).predict(state, contexts)
    for b in range(B):
        for c in range(5):
            for a in range(A):
                one = Walk().predict(state[b * A + a][None], contexts[b, c][None])[0]
                assert found[b, c, a] == pytest.approx(one)


@pytest.mark.parametrize("name", ["filter", "filter-gaussian", "filter-categorical", "paper", "paper-layers0"])
@pytest.mark.parametrize(("spoilt", "odd"), [(0, np.nan), (2, np.inf), (4, np.nan)])
def test_a_prediction_that_is_not_finite_shows_in_the_last_row_of_its_task(name, spoilt, odd):
    model = load_model(f"synthetic-{name}")
    rng = np.random.default_rng(0)
    features, contexts = rng.normal(size=(6, 2)), rng.normal(size=(3, 5, 5))
    kernel = model.kernel()
    state = kernel.start(features.astype(np.float32))
    rows = kernel.rows(contexts.astype(np.float32))  # (B, T', K)
    played, seen = np.full((3, 5), -1), np.zeros((3, 5), np.float32)
    played[:, 0] = 1
    noise = np.stack([model.likelihood.noise(rng, (5, 2)) for _ in range(3)])
    sound = kernel.generate(state, rows.copy(), played, seen, noise.copy())
    assert np.isfinite(sound).all()
    rows[1, spoilt] = odd  # what an overflow in the map of contexts leaves
    found = kernel.generate(state, rows, played, seen, noise.copy())
    assert not np.isfinite(found[1, -1]).any()
    np.testing.assert_array_equal(found[[0, 2]], sound[[0, 2]])


@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize("name", ["filter", "filter-gaussian", "filter-categorical", "paper"])
def test_what_is_completed_and_expected_from_a_state_of_nan_names_the_task(name, draws):
    model = load_model(f"synthetic-{name}")
    rngs = [np.random.default_rng(i) for i in range(B)]
    info = TaskInfo(np.zeros((B, 2, 2), np.float32), 2, 5, T, likelihood=model.likelihood)
    belief = model.begin(info, rngs)
    kept = belief.state()
    for leaf in (name for name in kept if name.startswith("state.")):
        kept[leaf][2 * 1 + 1] = np.nan  # the second action of task 1
    belief.restore(kept)
    for ask in (lambda x: belief.complete(x, draws=draws), lambda x: belief.complete(x, 3, draws), belief.expected):
        with pytest.raises(TaskError, match=r"must be (finite|probabilities).*got nan") as caught:
            ask(np.zeros((B, 5), np.float32))
        assert caught.value.position == 1


def lively():
    """Return a belief without a horizon after nine rows, some of them open."""
    rng = np.random.default_rng(1)
    info = TaskInfo(rng.normal(size=(B, A, 1)).astype(np.float32), A, D)
    belief = ActionBelief(Walk(), info, [np.random.default_rng(i) for i in range(B)], BANK)
    for t in range(9):
        belief.decide(rng.normal(size=(B, D)), rng.integers(A, size=B))
        tasks = np.flatnonzero(rng.random(B) < 0.7)
        belief.observe(Feedback(tasks, np.full(len(tasks), t), rng.integers(2, size=len(tasks))))
    return belief


def drawn(belief, context, **options):
    belief.reseed([np.random.default_rng(10 + i) for i in range(B)])
    return belief.complete(context, 5, 2, **options)


def test_what_is_forgotten_leaves_what_was_learned():
    whole, short = lively(), lively()
    short.forget(4)
    context = np.ones((B, D), np.float32)
    np.testing.assert_array_equal(short.expected(context), whole.expected(context))
    table, expected = drawn(short, context, contexts="bank"), drawn(whole, context, contexts="bank")
    for name in ("contexts", "outcomes", "weights"):
        np.testing.assert_array_equal(getattr(table, name), getattr(expected, name)[:, :, 4:])
    for belief in (short, whole):
        belief.decide(context, np.zeros(B, np.int64))
    other = ActionBelief(Walk(), short._info, [np.random.default_rng(i) for i in range(B)], BANK)
    other.restore(short.state())
    assert all(np.array_equal(part, other.state()[name]) for name, part in short.state().items())
    late = np.arange(B)
    short.observe(Feedback(late, np.full(B, 5), np.ones(B)))
    whole.observe(Feedback(late, np.full(B, 9), np.ones(B)))
    np.testing.assert_array_equal(short.expected(context), whole.expected(context))
    assert not short._ledger.outcomes[:, 6:].any()  # nothing is left of rows that moved
    with pytest.raises(InputError, match="rows must be at most the 6 made so far, got 7"):
        short.forget(7)
