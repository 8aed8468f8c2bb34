"""The cached belief of a transformer against the general one, which predicts from all rows again at every step."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gents_gym import Feedback, InputError, TaskInfo, make_tasks
from gents_gym.models import transformer_belief
from gents_gym.models.belief import ActionBelief
from gents_gym.types import signed

TASKS, ACTIONS, HORIZON = 3, 3, 9


def setting(outcomes="bernoulli"):
    return make_tasks("synthetic", n_actions=ACTIONS, horizon=HORIZON, outcomes=outcomes).sample(0, range(TASKS))


def rngs(n=TASKS):
    return [np.random.default_rng(i) for i in range(n)]


def begin(model, tasks, cached=True, horizon=HORIZON):
    info = TaskInfo(
        tasks.action_features,
        ACTIONS,
        tasks.context_dim,
        horizon,
        reward_fn=tasks.reward_fn,
        likelihood=tasks.likelihood,
    )
    if cached:
        return model.begin(info, rngs(len(tasks)))
    return ActionBelief(model, info, rngs(len(tasks)), model.bank.numpy(), math.inf, model.likelihood)


def play(belief, tasks, steps=5, late=()):
    """Play actions 0, 1, 0, 1, … with outcomes at once, or behind the last decision for those that are late."""
    every = np.arange(len(tasks))
    for t in range(steps):
        belief.decide(tasks.contexts[:, t], (every + t) % 2)
        if t not in late:
            belief.observe(Feedback(every, np.full(len(every), t), tasks.outcomes[every, t, (every + t) % 2]))
    for t in late[::-1]:  # of one task alone, out of order
        belief.observe(Feedback(np.array([1]), np.array([t]), tasks.outcomes[[1], t, [(1 + t) % 2]]))
    return belief


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian", "categorical"])
@pytest.mark.parametrize("positions", [0, 1])
def test_it_expects_and_completes_as_the_general_belief(random_model, outcomes, positions):
    model, tasks = random_model(outcomes, positions=positions), setting(outcomes)
    fast, slow = (play(begin(model, tasks, cached), tasks, late=(1, 3)) for cached in (True, False))
    contexts = tasks.contexts[:, 5:8]
    np.testing.assert_allclose(fast.expected(contexts), slow.expected(contexts), atol=1e-5)
    some = np.array([[2, 0], [1, 2], [0, 1]])
    np.testing.assert_allclose(fast.expected(contexts, some), slow.expected(contexts, some), atol=1e-5)
    for options in ({}, {"rows": 3}, {"rows": 2, "draws": 3}, {"draws": 2, "actions": some}, {"contexts": "seen"}):
        found, wanted = (belief.complete(contexts[:, 0], **options) for belief in (fast, slow))
        np.testing.assert_array_equal(found.contexts, wanted.contexts)
        np.testing.assert_allclose(found.outcomes, wanted.outcomes, atol=1e-4)
        assert found.current == wanted.current == 5
        if wanted.weights is None:
            assert found.weights is None
        else:
            np.testing.assert_array_equal(found.weights, wanted.weights)


def test_a_padded_model_plays_contexts_of_fewer_entries(random_model):
    """As a model of zeros behind them does; imagined contexts are the task's own, in its own size."""
    model, tasks = random_model(padded=1), setting()
    model.bank = model.bank[:0]
    x = tasks.contexts.copy()
    x[..., 3:] = 0
    whole, part = replace(tasks, contexts=x), replace(tasks, contexts=x[..., :3])
    beliefs = [play(begin(model, own), own) for own in (whole, part)]
    given = x[:, 5]
    found, wanted = beliefs[1].expected(given[:, :3]), beliefs[0].expected(given)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    tables = [belief.complete(now, draws=2) for belief, now in zip(beliefs, (given, given[:, :3]), strict=True)]
    np.testing.assert_array_equal(tables[1].outcomes, tables[0].outcomes)
    np.testing.assert_array_equal(tables[1].contexts, tables[0].contexts[..., :3])
    assert {*map(tuple, tables[1].contexts[0].reshape(-1, 3))} <= {*map(tuple, x[0, :6, :3])}


def test_the_variance_of_a_chance_is_the_covariance_of_two_outcomes(random_model):
    """As forks find it that observe an imagined outcome."""
    model, tasks = random_model(), setting()
    belief, every, contexts = play(begin(model, tasks), tasks), np.arange(TASKS), tasks.contexts[:, 5:7]
    wanted = np.empty((TASKS, 2, ACTIONS))
    for c in range(2):
        for a in range(ACTIONS):
            chances = []
            for outcome in (0, 1):
                fork = belief.fork(every)
                fork.decide(contexts[:, c], np.full(TASKS, a))
                fork.observe(Feedback(every, np.full(TASKS, 5), np.full(TASKS, outcome, np.float32)))
                chances.append(fork.expected(contexts[:, c])[:, a])
            p = belief.expected(contexts[:, c])[:, a]
            wanted[:, c, a] = np.maximum(p * (1 - p) * (chances[1] - chances[0]), 0)
    assert (wanted > 0).sum() >= 6  # random weights may also learn the wrong way round
    np.testing.assert_allclose(belief.variance(contexts), wanted, atol=1e-6)
    np.testing.assert_allclose(belief.variance(contexts[:, 0]), wanted[:, 0], atol=1e-6)
    some = np.array([[2, 0], [1, 2], [0, 1]])
    picked = np.take_along_axis(wanted, some[:, None], axis=2)
    np.testing.assert_allclose(belief.variance(contexts, some), picked, atol=1e-6)
    double = play(begin(model, replace(tasks, reward_fn=signed)), tasks)
    np.testing.assert_allclose(double.variance(contexts), 4 * wanted, atol=1e-6)
    assert begin(random_model("gaussian"), setting("gaussian")).variance(contexts) is None


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])
def test_it_looks_ahead_as_the_general_belief(random_model, outcomes):
    model, tasks = random_model(outcomes, positions=1), setting(outcomes)
    some = np.array([[2, 0], [1, 2], [0, 1]])
    for actions in (None, some):
        fast, slow = (
            play(begin(model, tasks, cached), tasks).look_ahead(
                tasks.contexts[:, 5], np.array([1, 4]), 6, None, actions
            )
            for cached in (True, False)
        )
        np.testing.assert_allclose(fast.gains, slow.gains, atol=1e-5)
        np.testing.assert_allclose(fast.shares, slow.shares, atol=1e-4)


def test_an_action_of_another_size_is_refused_and_nothing_is_added(random_model):
    for padded in (0, 1):
        belief = begin(random_model(padded=padded), setting())
        with pytest.raises(InputError, match=r"action_features must have shape \(B, n, 2\), got \(3, 1, 4\)"):
            belief.add(np.zeros((TASKS, 1, 4), np.float32))
        assert belief.expected(np.zeros((TASKS, 5), np.float32)).shape == (TASKS, ACTIONS)


def test_tables_are_the_same_however_many_tasks_are_generated_at_once(random_model, monkeypatch):
    model, tasks = random_model("gaussian"), setting("gaussian")
    found = play(begin(model, tasks), tasks).complete(tasks.contexts[:, 5], draws=2).outcomes
    monkeypatch.setattr(transformer_belief, "ROOM", 1)
    alone = play(begin(model, tasks), tasks).complete(tasks.contexts[:, 5], draws=2).outcomes
    np.testing.assert_allclose(alone, found, atol=1e-5)


def test_the_cache_grows_and_does_not_change_what_was_concluded(random_model):
    """40 rows, more than the cache has room for at first; the last prediction is that of a pass over all of them."""
    model = random_model(longest=60)
    tasks = make_tasks("synthetic", n_actions=ACTIONS, horizon=41).sample(0, range(2))
    belief = play(begin(model, tasks, horizon=41), tasks, 40)
    found = belief.expected(tasks.contexts[:, 40])
    for task in range(2):
        rows = np.flatnonzero((task + np.arange(40)) % 2 == 0)  # those of action 0
        at = torch.tensor([*rows, 40])
        x, y = torch.tensor(tasks.contexts[task])[at], torch.tensor(tasks.outcomes[task, :, 0])[at]
        y[-1] = 1
        with torch.no_grad():
            wanted = model.log_prob(torch.tensor(tasks.action_features[task, :1]), x[None], y[None])[0, -1].exp()
        assert found[task, 0] == pytest.approx(float(wanted), abs=1e-5)


def test_observed_histories_end_with_the_positions_and_imagined_rows_share_the_last(random_model):
    model, long, tasks = random_model(longest=4, positions=1), random_model(longest=30, positions=1), setting()
    weights = model.state_dict()
    weights["place.weight"] = weights["place.weight"][torch.arange(30).clamp(max=3)]
    long.load_state_dict(weights)
    belief, wanted = (play(begin(q, tasks, horizon=None), tasks, 7) for q in (model, long))
    x = tasks.contexts[:, 7]  # action 0 of task 0 has four rows
    np.testing.assert_array_equal(belief.complete(x, rows=3).outcomes, wanted.complete(x, rows=3).outcomes)
    np.testing.assert_array_equal(belief.variance(x), wanted.variance(x))
    with pytest.raises(InputError, match="histories must have at most 4 rows for this model, got 5"):
        play(begin(model, tasks, horizon=None), tasks, 9)


def test_histories_without_positions_have_no_end(random_model):
    tasks = setting()
    short, long = random_model(longest=4), random_model(longest=60)
    long.load_state_dict(short.state_dict())
    found, wanted = (play(begin(model, tasks, horizon=None), tasks, 9) for model in (short, long))
    np.testing.assert_array_equal(found.expected(tasks.contexts[:, 0]), wanted.expected(tasks.contexts[:, 0]))
    assert found.complete(tasks.contexts[:, 0], rows=2).outcomes.shape[1] == 1


def test_a_restored_belief_predicts_the_same_whatever_was_in_memory(random_model, monkeypatch):
    model, tasks = random_model(width=16, heads=4), setting()  # heads of 4 numbers are padded to 16
    state = play(begin(model, tasks), tasks).state()
    plain = np.empty

    def dirty(shape, dtype=float, **options):
        array = plain(shape, dtype, **options)
        if array.dtype == np.float32:
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", dirty)
    restored = begin(model, tasks)
    restored.restore(state)
    assert np.isfinite(restored.expected(tasks.contexts[:, 5])).all()


def test_nothing_asked_or_added_is_nothing(random_model):
    tasks = setting()
    belief = play(begin(random_model(), tasks), tasks)
    none = np.zeros((TASKS, 0, tasks.context_dim), np.float32)
    assert belief.expected(none).shape == belief.variance(none).shape == (TASKS, 0, ACTIONS)
    before = belief.expected(tasks.contexts[:, 5])
    belief.add(np.zeros((TASKS, 0, tasks.action_features.shape[2]), np.float32))
    np.testing.assert_array_equal(belief.expected(tasks.contexts[:, 5]), before)


def test_predictions_that_are_no_numbers_name_the_task(random_model, monkeypatch):
    model, tasks = random_model(), setting()
    belief = begin(model, tasks)
    contexts = tasks.contexts[:, 0].copy()
    contexts[2] = 3e38
    monkeypatch.setattr(transformer_belief, "ROOM", 1)
    for ask in (belief.expected, lambda context: belief.complete(context, 2)):
        with pytest.raises(InputError, match="what the model predicts must be probabilities") as caught:
            ask(contexts)
        assert caught.value.position == 2


def test_states_of_other_shapes_are_refused(random_model):
    model, tasks = random_model(), setting()
    state = play(begin(model, tasks), tasks).state()
    belief = begin(model, tasks)
    with pytest.raises(InputError, match="state must have actions, contexts, memory, outcomes, owner, seen, got"):
        belief.restore({name: array for name, array in state.items() if name != "memory"})
    with pytest.raises(InputError, match=r"memory must have shape \(B, C, L, 2, H, d\)"):
        belief.restore({**state, "memory": state["memory"][..., :3]})
    with pytest.raises(InputError, match="owner must be -1 or an action below 3"):
        belief.restore({**state, "owner": state["owner"] + 3})
