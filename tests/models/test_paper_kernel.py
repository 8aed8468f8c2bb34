"""The paper model's fast generation against its own methods, row by row, and against the network word by word."""

import numpy as np
import pytest
import torch

from gents_gym.models.belief import RowByRow
from gents_gym.models.paper import PaperConfig, PaperModel
from gents_gym.models.paper_kernel import ROWS

NEAR = 1e-4  # chances so near their random number may fall on either side in single precision


def random_model(n_context=3, n_features=2, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PaperModel(PaperConfig(n_features, n_context, **{"width": 12, "repeats": 4, **sizes}))
    model.action_scaling[1], model.context_scaling[0] = 0.8, 0.1
    rng = np.random.default_rng(3)
    z, x = (torch.tensor(rng.normal(size=(200, size)), dtype=torch.float32) for size in (n_features, n_context))
    with torch.no_grad():  # logits with mean 0 and variance 1, so that outcomes are open
        logits = torch.logit(model.predict(model.start(z), x))
        model.last.weight /= logits.std()
        model.last.bias -= logits.mean()
        model.last.bias /= logits.std()
    return model


def random_problem(model, n_tasks, n_actions, n_rows, history=3, seed=0):
    """Return states of N = B·A actions after some rows of their own, rows, observed cells and random numbers."""
    rng, config, size = np.random.default_rng(seed), model.config, n_tasks * n_actions
    with torch.no_grad():
        state = model.start(torch.tensor(rng.normal(size=(size, config.action_dim)), dtype=torch.float32))
        for _ in range(history):
            x = torch.tensor(rng.normal(size=(size, config.context_dim)), dtype=torch.float32)
            state = model.append(state, x, torch.tensor(rng.integers(2, size=size), dtype=torch.float32))
    contexts = rng.normal(size=(n_tasks, n_rows, config.context_dim)).astype(np.float32)
    played = rng.integers(-1, n_actions, size=(n_tasks, n_rows))
    seen = rng.integers(2, size=(n_tasks, n_rows)).astype(np.float32)
    return state, contexts, played, seen, rng.random((n_tasks, n_rows, n_actions), np.float32)


def slow_chances(model, state, contexts, played, table):
    """The chance of every cell given the cells before it, through predict and append, (B, T, A)."""
    n_tasks, n_rows, n_actions = table.shape
    found = np.empty(table.shape)
    with torch.no_grad():
        for t in range(n_rows):
            x = torch.tensor(np.repeat(contexts[:, t], n_actions, axis=0))
            found[:, t] = model.predict(state, x).numpy().reshape(n_tasks, n_actions)
            where = torch.tensor((played[:, t, None] != np.arange(n_actions)).reshape(-1))
            state = model.append(state, x, torch.tensor(table[:, t].reshape(-1)), where)
    return found


MODELS = {
    "three hidden layers": {},
    "none": {"hidden_layers": 0},
    "one, of another width": {"hidden_layers": 1, "width": 7},
    "a width of whole registers": {"width": 15},
    "one context": {"n_context": 1},
    "eight contexts": {"n_context": 8},
    "learned features": {"context_features": 2, "context_width": 5},
    "as printed": {"raw": True, "intercept": False, "plain_context": True},
    "as printed, with learned features": {
        "raw": True,
        "intercept": False,
        "plain_context": True,
        "context_features": 2,
        "context_width": 5,
    },
    "an intercept": {"intercept": True},
}


@pytest.mark.parametrize("sizes", [(4, 3, 15), (1, 1, 6), (130, 9, 3)], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_tables_are_draws_of_the_model_s_own_chances(name, sizes):
    model = random_model(**MODELS[name])
    state, contexts, played, seen, noise = random_problem(model, *sizes)
    before, kernel = [part.clone() for part in state], model.kernel()
    table = kernel.generate(state, kernel.rows(contexts), played, seen, noise)
    assert all(torch.equal(part, kept) for part, kept in zip(state, before, strict=True))
    cells = played[..., None] == np.arange(sizes[1])
    assert np.array_equal(table[cells], np.broadcast_to(seen[..., None], table.shape)[cells])
    chances = slow_chances(model, state, contexts, played, table)
    near = np.abs(chances - noise) < NEAR
    assert np.array_equal(table[~cells & ~near], (noise < chances)[~cells & ~near])
    assert near.mean() < 0.01
    assert chances.std() > 0.002


def test_there_are_more_actions_than_fit_at_a_time():
    assert ROWS < 130 * 9


@pytest.mark.parametrize("choices", [{}, {"raw": True, "intercept": False, "plain_context": True}], ids=["", "printed"])
def test_outcomes_are_absorbed_as_by_append(choices):
    model = random_model(context_features=2, context_width=5, **choices)
    state, contexts, *_ = random_problem(model, 5, 4, 10)
    kernel, slow, rng = model.kernel(), RowByRow(model), np.random.default_rng(1)
    rows, other = kernel.rows(contexts), type(state)(*(part.clone() for part in state))
    for t in range(10):
        task = np.sort(rng.choice(5, size=rng.integers(1, 6), replace=False))
        action, outcome = rng.integers(4, size=len(task)), rng.integers(2, size=len(task)).astype(np.float32)
        state = kernel.absorb(state, task, action, rows[task, t], outcome, (5, 4))
        other = slow.absorb(other, task, action, contexts[task, t], outcome, (5, 4))
    for fast, plain in zip(state, other, strict=True):
        assert torch.allclose(fast, plain, atol=1e-5)


def test_the_statistics_are_those_of_the_whole_history():
    """(XᵀX + I)^-1 and XᵀY, solved at the end, against rank-one updates."""
    model, rng = random_model(), np.random.default_rng(2)
    kernel, n_rows = model.kernel(), 40
    contexts, outcomes = rng.normal(size=(1, n_rows, 3)).astype(np.float32), rng.integers(2, size=n_rows)
    rows = kernel.rows(contexts)
    with torch.no_grad():
        state = model.start(torch.zeros(2, 2))
    for t in range(n_rows):
        state = kernel.absorb(
            state, np.array([0]), np.array([1]), rows[:, t], outcomes[t : t + 1].astype(np.float32), (1, 2)
        )
    x = rows[0].astype(float)
    assert np.allclose(state.inverse[1].numpy(), np.linalg.inv(x.T @ x + np.eye(3)), atol=1e-5)
    assert np.allclose(state.products[1].numpy(), x.T @ outcomes, atol=1e-3)
    assert np.allclose(state.inverse[0].numpy(), np.eye(3))
    assert not state.products[0].any()
