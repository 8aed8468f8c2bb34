"""The filter's compiled loops against a filter of ten lines, in double precision."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from gents_gym import TaskInfo
from gents_gym.models.filter import FilterConfig, FilterModel

NEAR = 1e-4  # chances so near their random number may fall on either side in single precision


def step(mean, covariance, x, outcome):
    """Return the moments after an outcome, and its chance before; one action, word by word as the formulas have it."""
    spread = x @ covariance @ x
    shrink = 1 / np.sqrt(1 + np.pi * spread / 8)
    chance = expit(shrink * x @ mean)
    y = chance if outcome is None else outcome
    direction = covariance @ x
    mean = mean + direction * shrink * (y - chance)
    return mean, covariance - shrink**2 * chance * (1 - chance) * np.outer(direction, direction), chance


def random_model(n_context=3, n_features=2, scale=0.4, **sizes):
    model = FilterModel(FilterConfig(n_features, n_context, **sizes))
    rng = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng) * scale
    return model


def random_problem(model, n_tasks, n_actions, n_rows, seed=0):
    """Return states of N = B·A actions, rows, observed cells and random numbers."""
    rng = np.random.default_rng(seed)
    config = model.config
    with torch.no_grad():
        state = model.start(
            torch.tensor(rng.normal(size=(n_tasks * n_actions, config.action_dim)), dtype=torch.float32)
        )
    contexts = rng.normal(size=(n_tasks, n_rows, config.context_dim)).astype(np.float32)
    played = rng.integers(-1, n_actions, size=(n_tasks, n_rows))
    seen = rng.integers(2, size=(n_tasks, n_rows)).astype(np.float32)
    noise = rng.random((n_tasks, n_rows, n_actions), np.float32)
    return state, model.kernel().rows(contexts), played, seen, noise


@pytest.mark.parametrize("sizes", [(5, 3, 12), (1, 1, 30), (1, 65, 4), (40, 5, 7), (7, 16, 3)])
@pytest.mark.parametrize("n_context", [1, 3, 8])
def test_tables_are_draws_of_the_plain_filter(sizes, n_context):
    """Given the table's own draws before it, every drawn cell is on the right side of its chance."""
    model = random_model(n_context)
    n_tasks, n_actions, n_rows = sizes
    state, rows, played, seen, noise = random_problem(model, *sizes)
    before = [part.clone() for part in state]
    table = model.kernel().generate(state, rows, played, seen, noise)
    assert all(torch.equal(part, kept) for part, kept in zip(state, before, strict=True))
    assert table.shape == (n_tasks, n_rows, n_actions)
    n_near = 0
    for b in range(n_tasks):
        for a in range(n_actions):
            mean = state.mean[b * n_actions + a].double().numpy()
            covariance = state.covariance[b * n_actions + a].double().numpy()
            for t in range(n_rows):
                if played[b, t] == a:
                    assert table[b, t, a] == seen[b, t]
                    continue
                mean, covariance, chance = step(mean, covariance, rows[b, t].astype(float), table[b, t, a])
                near = abs(chance - noise[b, t, a]) < NEAR
                n_near += near
                assert near or table[b, t, a] == (noise[b, t, a] < chance)
    assert n_near < 0.01 * table.size + 1
    assert 0.1 < table.mean() < 0.9


def test_outcomes_are_absorbed_as_the_plain_filter_does():
    model = random_model(scale=0.1)  # variances of order 1, which float32 can follow
    state, rows, *_ = random_problem(model, 6, 4, 50)
    kernel, rng = model.kernel(), np.random.default_rng(1)
    slow = [(m.double().numpy(), p.double().numpy()) for m, p in zip(state.mean, state.covariance, strict=True)]
    for t in range(50):
        task = np.sort(rng.choice(6, size=rng.integers(1, 7), replace=False))  # some tasks, each once
        action, outcome = rng.integers(4, size=len(task)), rng.integers(2, size=len(task)).astype(np.float32)
        given = outcome.copy()
        state = kernel.absorb(state, task, action, rows[task, t], outcome, (6, 4))
        assert np.array_equal(outcome, given)
        for b, a, y in zip(task, action, outcome, strict=True):
            slow[b * 4 + a] = step(*slow[b * 4 + a], rows[b, t].astype(float), float(y))[:2]
    assert np.allclose(state.mean.numpy(), [mean for mean, _ in slow], atol=1e-4)
    assert np.allclose(state.covariance.numpy(), [covariance for _, covariance in slow], atol=1e-4)


def test_predictions_and_their_variance_are_those_of_the_coefficients():
    """The variance of σ(x·β) under N(m, P), by a fine grid of x·β."""
    model, rng = random_model(scale=0.1), np.random.default_rng(0)
    state, _, *_ = random_problem(model, 2, 3, 1)
    contexts = rng.normal(size=(2, 4, 3)).astype(np.float32)
    info = TaskInfo(np.zeros((2, 3, 2), np.float32), 3, 3)
    nodes = np.linspace(-8, 8, 4001)
    shares = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    found, variance = model.kernel().predict(state, contexts), model.kernel().variance(state, contexts, info)
    for b in range(2):
        for a in range(3):
            mean, covariance = (part[b * 3 + a].double().numpy() for part in (state.mean, state.covariance))
            for c in range(4):
                x = np.array([1, *contexts[b, c]])
                assert found[b, c, a] == pytest.approx(step(mean, covariance, x, None)[2], abs=1e-5)
                chances = expit(mean @ x + np.sqrt(x @ covariance @ x) * nodes)
                exact = shares @ chances**2 - (shares @ chances) ** 2
                assert variance[b, c, a] == pytest.approx(exact, rel=0.02)


def test_learned_features_are_the_rows():
    model = random_model(context_features=2, context_width=6)
    contexts = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    kernel = model.kernel()
    rows = kernel.rows(contexts)
    with torch.no_grad():
        assert np.allclose(rows, model.rows(torch.tensor(contexts)).numpy(), atol=1e-5)
    assert np.array_equal(kernel.features(rows), rows[..., 1:])
    assert np.array_equal(model.context_features(contexts), rows[..., 1:])
    assert random_model().kernel().features(rows) is None


def test_a_task_s_table_does_not_depend_on_its_neighbours():
    """To the bit: loops, not library products."""
    model = random_model()
    state, rows, played, seen, noise = random_problem(model, 9, 7, 20)
    kernel = model.kernel()
    together = kernel.generate(state, rows, played, seen, noise)
    for b in range(9):
        own = type(state)(*(part[b * 7 : b * 7 + 7] for part in state))
        one = slice(b, b + 1)
        assert np.array_equal(kernel.generate(own, rows[one], played[one], seen[one], noise[one]), together[one])
