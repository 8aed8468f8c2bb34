"""The compiled loops of both forms against the torch path, one row of all actions at a time."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from gents_gym import TaskInfo
from gents_gym.models.belief import RowByRow
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.linear_kernel import LANES
from gents_gym.testing import check_model

FORMS = ["gaussian", "categorical(3)", "categorical(2)", "categorical(5)"]
every_form = pytest.mark.parametrize("likelihood", FORMS)
T = 25


def random_model(likelihood, n_context=3, **sizes):
    model = FilterModel(FilterConfig(2, n_context, likelihood=likelihood, **sizes))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.2
    if likelihood == "gaussian":
        model.form.outcome_scaling = torch.tensor([3.0, 0.5])
    model.bank = torch.randn(9, n_context, generator=generator)
    return model.eval()


def problem(model, n_tasks, n_actions, seed=0):
    """Return states, contexts, observed cells and random numbers."""
    rng = np.random.default_rng(seed)
    features = torch.tensor(rng.normal(size=(n_tasks * n_actions, 2)), dtype=torch.float32)
    with torch.no_grad():
        state = model.start(features)
    contexts = rng.normal(size=(n_tasks, T, model.config.context_dim)).astype(np.float32)
    played, seen = rng.integers(-1, n_actions, size=(n_tasks, T)), outcomes(model, rng, (n_tasks, T))
    return state, contexts, played, seen, model.likelihood.noise(rng, (n_tasks, T, n_actions))


def outcomes(model, rng, shape):
    support = model.likelihood.support
    drawn = 3 + 2 * rng.normal(size=shape) if support is None else rng.choice(support, size=shape)
    return drawn.astype(np.float32)


def copy(state):
    return type(state)(*(part.clone() for part in state))


@every_form
@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (5, LANES // 4 + 3), (1, LANES + 1)])
def test_tables_are_those_of_the_torch_path(likelihood, sizes):
    model = random_model(likelihood)
    state, contexts, *given = problem(model, *sizes)
    kept = copy(state)
    fast = model.kernel().generate(state, model.kernel().rows(contexts), *given)
    slow = RowByRow(model, model.likelihood).generate(state, contexts, *given)
    assert all(torch.equal(part, before) for part, before in zip(state, kept, strict=True))
    assert fast.std() > 0.3
    if likelihood == "gaussian":
        assert np.allclose(fast, slow, atol=1e-3)
    else:  # a number within rounding of a threshold may fall on either side, and all after it
        assert (fast != slow).any(axis=1).mean() < 0.02


@every_form
def test_outcomes_are_absorbed_as_by_the_torch_path(likelihood):
    model, rng = random_model(likelihood), np.random.default_rng(1)
    start, contexts, *_ = problem(model, 6, 4)
    fast, slow, general = copy(start), copy(start), RowByRow(model, model.likelihood)
    for t in range(T):
        task = np.sort(rng.choice(6, size=rng.integers(1, 7), replace=False))
        action, outcome = rng.integers(4, size=len(task)), outcomes(model, rng, len(task))
        rows = model.kernel().rows(contexts[task, t])
        fast = model.kernel().absorb(fast, task, action, rows, outcome, (6, 4))
        slow = general.absorb(slow, task, action, contexts[task, t], outcome, (6, 4))
    assert torch.allclose(fast.mean, slow.mean, atol=1e-4)
    assert torch.allclose(fast.covariance, slow.covariance, atol=1e-4)
    assert torch.equal(fast.covariance, fast.covariance.mT)
    assert not torch.allclose(fast.mean, start.mean, atol=0.1)


@every_form
def test_predictions_are_those_of_the_torch_path(likelihood):
    model = random_model(likelihood, context_features=2, context_width=5)
    state, contexts, *_ = problem(model, 3, 4)
    fast, slow = (kernel.predict(state, contexts) for kernel in (model.kernel(), RowByRow(model, model.likelihood)))
    assert fast.shape == (3, T, 4, *model.likelihood.shape)
    assert np.allclose(fast, slow, atol=1e-5)


@every_form
def test_a_task_does_not_depend_on_its_neighbours(likelihood):
    """To the bit, tables and predictions."""
    model = random_model(likelihood)
    state, contexts, *given = problem(model, 9, 7)
    kernel = model.kernel()
    together, expected = kernel.generate(state, kernel.rows(contexts), *given), kernel.predict(state, contexts)
    for b in range(9):
        own, one = type(state)(*(part[b * 7 : b * 7 + 7] for part in state)), slice(b, b + 1)
        alone = kernel.generate(own, kernel.rows(contexts[one]), *(part[one] for part in given))
        assert np.array_equal(alone, together[one])
        assert np.array_equal(kernel.predict(own, contexts[one]), expected[one])


@pytest.mark.parametrize("likelihood", ["gaussian", "categorical(3)", "categorical(5)"])
def test_variances_are_those_of_drawn_coefficients(likelihood):
    """Var E[R(Y) | β] over many β, with a reward that is not linear."""
    model, rng = random_model(likelihood), np.random.default_rng(0)
    state, contexts, *_ = problem(model, 1, 3)

    def square(outcome):
        return outcome**2

    info = TaskInfo(np.zeros((1, 3, 2), np.float32), 3, 3, reward_fn=square, likelihood=model.likelihood)
    found = model.kernel().variance(state, contexts[:, :2], info)
    assert found.shape == (1, 2, 3)
    for a in range(3):
        drawn = rng.multivariate_normal(
            state.mean[a].double().numpy(), state.covariance[a].double().numpy(), size=200_000
        )
        for c in range(2):
            predictors = drawn.reshape(len(drawn), -1, 4) @ np.array([1, *contexts[0, c]])  # (S, Q)
            if likelihood == "gaussian":
                rewards = (3 + 2 * predictors[:, 0]) ** 2 + 4 * model.form.noise.item()
            else:
                chances = softmax(np.column_stack([np.zeros(len(drawn)), predictors]), axis=1)
                rewards = chances @ np.arange(chances.shape[1]) ** 2
            assert found[0, c, a] == pytest.approx(rewards.var(), rel=0.05)


@pytest.mark.parametrize("likelihood", ["gaussian", "categorical(3)"])
def test_the_contract_holds(likelihood):
    check_model(random_model(likelihood, 5))
