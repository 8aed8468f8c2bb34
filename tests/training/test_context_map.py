"""A first map of contexts, found from rows of many actions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from gents_gym import RowSets
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.tasks.news import context_features
from gents_gym.training import context_map

SIZES = {"context_features": 2, "context_width": 24}


def gated(n_actions=300, n_rows=200, seed=0, likelihood=BERNOULLI):
    """Predictors linear in φ = X_{1:2}·sign(X_3): a strong shared slope on φ_1 + φ_2, a weak own one on φ_1 − φ_2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_actions, n_rows, 3)).astype(np.float32)
    own = 1.5 + rng.normal(size=(n_actions, 1)) * 0.7 * np.array([[1, -1]])
    y = draw((context_features(x) * own[:, None]).sum(2), likelihood, rng).astype(np.float32)
    offsets = np.arange(n_actions + 1) * n_rows
    features = np.zeros((n_actions, 1))
    return RowSets(features, x.reshape(-1, 3), y.reshape(-1), offsets, likelihood=likelihood)


def draw(predictor, likelihood, rng):
    """Outcomes of one predictor; of three categories, the first and the last are opposed."""
    if likelihood == BERNOULLI:
        return rng.random(predictor.shape) < expit(predictor)
    if likelihood == GAUSSIAN:
        return predictor + rng.normal(size=predictor.shape)
    chances = softmax(np.stack([-predictor, np.zeros_like(predictor), predictor], axis=-1), axis=-1)
    return (rng.random((*predictor.shape, 1)) >= np.cumsum(chances, axis=-1)[..., :2]).sum(axis=-1)


def explained(model, contexts):
    """Return the shares of φ_1 + φ_2's and φ_1 − φ_2's variance that are linear in φ̂."""
    with torch.no_grad():
        rows = model.rows(torch.from_numpy(contexts)).numpy()
    wanted = context_features(contexts) @ np.array([[1, 1], [1, -1]])
    left = wanted - rows @ np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return 1 - left.var(axis=0) / wanted.var(axis=0)


def new_model(seed=0, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FilterModel(FilterConfig(1, 3, **{**SIZES, **sizes}))


@pytest.mark.parametrize("likelihood", [BERNOULLI, GAUSSIAN, Categorical(3)], ids=str)
def test_the_map_finds_what_all_actions_share_and_where_they_differ(likelihood, monkeypatch):
    monkeypatch.setattr(context_map, "MAP_STEPS", 200)
    monkeypatch.setattr(context_map, "MAP_ROUNDS", 2)
    model, rows = new_model(likelihood=str(likelihood)), gated(likelihood=likelihood)
    fresh = gated(20, seed=1).contexts
    assert explained(model, fresh).max() < 0.4
    context_map.fit_context_map(model, rows, np.random.default_rng(0))
    assert explained(model, fresh).min() > 0.8
    with torch.no_grad():
        mapped = model.rows(torch.from_numpy(rows.contexts)).numpy()[:, 1:]
    assert np.allclose(mapped.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(mapped.std(axis=0), 1, atol=1e-3)


def test_the_score_test_finds_the_direction_in_which_actions_differ():
    """Hidden units that are φ itself: the second output must become φ_1 − φ_2, up to sign, scale and the first."""
    model, rows = new_model(), gated()
    batch = rows.resample(np.arange(300), 200, False, np.random.default_rng(0))

    class Known(torch.nn.Module):
        def forward(self, x):
            return x[..., :2] * torch.sign(x[..., 2:])

    last = torch.nn.Linear(2, 2)
    with torch.no_grad():
        last.weight[0], last.weight[1] = torch.tensor([1.0, 1.0]), torch.tensor([0.3, 0.2])
        last.bias.zero_()
    model.context_map = torch.nn.Sequential(Known(), last)
    context_map._spread_out(model, batch, BERNOULLI)
    first, second = last.weight.detach().numpy()
    assert first.tolist() == [1, 1]
    assert second[0] * second[1] < 0
    assert abs(abs(second[0] / second[1]) - 1) < 0.25


def test_few_rows_and_idle_units_do_no_harm():
    model = new_model()
    with torch.no_grad():
        model.context_map[2].bias.fill_(-100)  # no unit of the second layer ever wakes
    batch = gated(20, 3).resample(np.arange(20), 5, False, np.random.default_rng(0))
    context_map._spread_out(model, batch, BERNOULLI)
    assert torch.isfinite(model.context_map[-1].weight).all()


@pytest.mark.parametrize("likelihood", [BERNOULLI, Categorical(6)], ids=str)
def test_more_features_or_predictors_than_hidden_units(likelihood, monkeypatch):
    monkeypatch.setattr(context_map, "MAP_STEPS", 2)
    for size in (1, 6):
        model = new_model(context_features=size, context_width=3, likelihood=str(likelihood))
        rows = gated(20, 10)
        if likelihood != BERNOULLI:
            rows = replace(rows, outcomes=np.arange(200) % 6, likelihood=likelihood)
        context_map.fit_context_map(model, rows, np.random.default_rng(0))
        assert torch.isfinite(model.rows(torch.randn(4, 3))).all()
