"""A first map of contexts, found from rows of many actions."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from gents_gym import RowSets, preset_config
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.tasks.news import News, context_features
from gents_gym.training import loop, start

SIZES = {"context_features": 2, "context_width": 24}


def gated(n_actions=300, n_rows=200, seed=0):
    """Logits linear in φ = X_{1:2}·sign(X_3): a strong shared slope on φ_1 + φ_2, a weak own one on φ_1 − φ_2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_actions, n_rows, 3)).astype(np.float32)
    own = 1.5 + rng.normal(size=(n_actions, 1)) * 0.7 * np.array([[1, -1]])
    y = rng.random((n_actions, n_rows)) < expit((context_features(x) * own[:, None]).sum(2))
    offsets = np.arange(n_actions + 1) * n_rows
    return RowSets(np.zeros((n_actions, 1)), x.reshape(-1, 3), y.reshape(-1).astype(np.float32), offsets)


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


def test_the_map_finds_what_all_actions_share_and_where_they_differ(monkeypatch):
    monkeypatch.setattr(start, "MAP_STEPS", 200)
    monkeypatch.setattr(start, "MAP_ROUNDS", 2)
    model, rows = new_model(), gated()
    fresh = gated(20, seed=1).contexts
    assert explained(model, fresh).max() < 0.4
    start.fit_context_map(model, rows, np.random.default_rng(0))
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
    start._spread_out(model, batch)
    first, second = last.weight.detach().numpy()
    assert first.tolist() == [1, 1]
    assert second[0] * second[1] < 0
    assert abs(abs(second[0] / second[1]) - 1) < 0.25


def test_few_rows_and_idle_units_do_no_harm():
    model = new_model()
    with torch.no_grad():
        model.context_map[2].bias.fill_(-100)  # no unit of the second layer ever wakes
    start._spread_out(model, gated(20, 3).resample(np.arange(20), 5, False, np.random.default_rng(0)))
    assert torch.isfinite(model.context_map[-1].weight).all()


def test_more_features_than_hidden_units(monkeypatch):
    monkeypatch.setattr(start, "MAP_STEPS", 2)
    model = new_model(context_features=6, context_width=3)
    start.fit_context_map(model, gated(20, 10), np.random.default_rng(0))
    assert torch.isfinite(model.rows(torch.randn(4, 3))).all()


@pytest.mark.parametrize("preset", ["filter", "paper"])
def test_news_presets_learn_a_map_and_train(preset, monkeypatch):
    monkeypatch.setattr(start, "MAP_ROUNDS", 1)
    monkeypatch.setattr(start, "MAP_STEPS", 5)
    parts = (News().sample_actions(0, range(60), 30, split) for split in ("train", "validation"))
    rows, held_out = (RowSets.from_rows(part) for part in parts)
    small = {"horizon": 20, "epochs": 1, "learning_rates": (0.001,)}
    config = preset_config(preset, "news", model={"context_width": 8}, **small)
    assert config.model["context_features"] > 0
    model, progress = loop.train(rows, held_out, config)
    assert len(progress.history) == 1
    assert np.isfinite(progress.best)
    assert model.rows(torch.zeros(1, 5)).shape == (1, 1 + config.model["context_features"])
    assert preset_config(preset).model == {}


def test_a_blind_model_does_not_see_action_features(monkeypatch):
    monkeypatch.setattr(start, "MAP_ROUNDS", 1)
    rows = RowSets.from_rows(News().sample_actions(0, range(40), 30))
    config = preset_config("filter", "news", model={"context_features": 0}, blind=True, horizon=20)
    model = loop.new_model(rows, config, 0)
    with torch.no_grad():
        state = model.start(torch.randn(5, 64) * 10)
    assert torch.equal(state.mean, state.mean[:1].expand(5, -1))
    assert torch.equal(state.covariance, state.covariance[:1].expand(5, -1, -1))
