"""Tests where training starts for every kind of outcomes, and where it ends."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

import gents_gym
from gents_gym import InputError, RowSets, preset_config
from gents_gym.likelihoods import GAUSSIAN, Bernoulli, Categorical
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training import context_map, loop
from gents_gym.training.folder import train_to_folder
from gents_gym.training.start import start_filter


@pytest.mark.parametrize("preset", ["filter", "paper"])
def test_news_presets_learn_a_map_and_train(preset, monkeypatch):
    monkeypatch.setattr(context_map, "MAP_ROUNDS", 1)
    monkeypatch.setattr(context_map, "MAP_STEPS", 5)
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
    monkeypatch.setattr(context_map, "MAP_ROUNDS", 1)
    rows = RowSets.from_rows(News().sample_actions(0, range(40), 30))
    config = preset_config("filter", "news", model={"context_features": 0}, blind=True, horizon=20)
    model = loop.new_model(rows, config, 0)
    with torch.no_grad():
        state = model.start(torch.randn(5, 64) * 10)
    assert torch.equal(state.mean, state.mean[:1].expand(5, -1))
    assert torch.equal(state.covariance, state.covariance[:1].expand(5, -1, -1))


def drawn(outcomes, n_actions=300, n_rows=60, split="train", seed=3):
    return RowSets.from_rows(Synthetic(outcomes=outcomes).sample_actions(seed, range(n_actions), n_rows, split))


def exact_loss(rows):
    """Nats per step of the closed-form posterior predictive, with nature's prior and noise; rows are (N, R) each."""
    prior = Synthetic(outcomes="gaussian").truth.prior(rows.action_features)
    total = 0.0
    for mean, variance, x, y in zip(
        *prior, np.split(rows.contexts, len(rows)), np.split(rows.outcomes, len(rows)), strict=True
    ):
        design = np.column_stack([np.ones(len(x)), x]).astype(np.float64)
        covariance = design @ np.diag(variance) @ design.T + np.eye(len(x))
        left = y - design @ mean
        total += 0.5 * (left @ np.linalg.solve(covariance, left) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    return total / len(rows.outcomes)


def test_a_gaussian_filter_starts_and_ends_near_the_exact_loss():
    rows, held_out = drawn("gaussian", 1000), drawn("gaussian", 300, split="validation")
    config = preset_config("filter", epochs=2, batch=100, horizon=60, choose=False)
    untrained = loop.new_model(rows, config, 0)
    model, progress = gents_gym.train(rows, held_out, config)
    assert model.likelihood == GAUSSIAN
    first, exact = loop._judge(untrained, held_out, config), exact_loss(held_out)
    assert exact < progress.best < first < exact + 0.01
    assert progress.best < exact + 0.003
    noise = (model.form.noise / model.form.outcome_scaling[1] ** 2).item()
    assert noise == pytest.approx(1, abs=0.02)


def test_a_categorical_filter_learns_from_its_start():
    rows, held_out = drawn("categorical"), drawn("categorical", 200, split="validation")
    config = preset_config("filter", epochs=2, batch=60, horizon=40, choose=False)
    plain = FilterModel(FilterConfig(2, 5, likelihood="categorical(3)"))
    untrained = loop.new_model(rows, config, 0)
    model, progress = gents_gym.train(rows, held_out, config)
    assert model.likelihood == Categorical(3)
    losses = [loop._judge(one, held_out, config) for one in (plain, untrained, model)]
    assert losses[0] - 0.05 > losses[1] > losses[2] == pytest.approx(progress.best)


def test_the_unit_of_outcomes_does_not_matter():
    """Dollars instead of cents give the same model, and the same loss except for the unit."""
    cents = drawn("gaussian", 100, 20)
    dollars = RowSets(cents.action_features, cents.contexts, cents.outcomes / 100 + 7, cents.offsets)
    config = preset_config("filter", epochs=1, batch=50, horizon=20, choose=False)
    found = [gents_gym.train(rows, rows, config) for rows in (cents, dollars)]
    assert found[1][1].best == pytest.approx(found[0][1].best - np.log(100), abs=1e-3)
    for name, part in found[0][0].state_dict().items():
        if name != "form.outcome_scaling":
            assert torch.allclose(part, found[1][0].state_dict()[name], atol=1e-3), name


def test_constant_outcomes_make_a_sound_model():
    rows = drawn("gaussian", 20, 10)
    rows = RowSets(rows.action_features, rows.contexts, np.full(200, 5.0), rows.offsets)
    model = FilterModel(FilterConfig(2, 5, likelihood="gaussian"))
    start_filter(model, rows, np.random.default_rng(0))
    with torch.no_grad():
        mean, variance = model.predict(model.start(torch.zeros(1, 2)), torch.zeros(1, 5))[0]
    assert mean.item() == pytest.approx(5, abs=0.1)
    assert 0 < variance.item() < 0.01


class Killed(BaseException):
    pass


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
def test_a_killed_training_goes_on_to_the_same_bits(outcomes, tmp_path):
    rows, config = drawn(outcomes, 40, 20), preset_config("filter", epochs=2, batch=20, horizon=15, choose=False)
    whole, _ = gents_gym.train(rows, rows, config)

    def stop(progress):
        raise Killed

    with pytest.raises(Killed):
        gents_gym.train(rows, rows, config, tmp_path / "state.safetensors", on_epoch=stop)
    resumed, _ = gents_gym.train(rows, rows, config, tmp_path / "state.safetensors")
    for name, part in whole.state_dict().items():
        assert torch.equal(part, resumed.state_dict()[name]), name


def test_outcomes_that_a_model_cannot_have_are_refused_before_anything_is_written(tmp_path):
    rows, config = drawn("gaussian", 20, 10), preset_config("paper")
    for train in (gents_gym.train, lambda *given: train_to_folder(*given, tmp_path / "model")):
        with pytest.raises(
            InputError, match="outcomes must be bernoulli for a paper model, got gaussian: train a filter"
        ):
            train(rows, rows, config)
    many = RowSets(rows.action_features, rows.contexts, np.arange(200) % 10, rows.offsets, likelihood=Categorical(10))
    with pytest.raises(InputError, match=r"a filter's outcomes must be at most 9 categories, got categorical\(10\)"):
        train_to_folder(many, many, preset_config("filter"), tmp_path / "model")
    binary = RowSets(rows.action_features, rows.contexts, np.arange(200) % 2, rows.offsets)
    assert binary.likelihood == Bernoulli()
    with pytest.raises(InputError, match="validation must have gaussian outcomes, as the training rows, got bernoulli"):
        gents_gym.train(rows, binary, preset_config("filter"))
    with pytest.raises(InputError, match="head_width must be 0 for gaussian outcomes, got 4"):
        gents_gym.train(rows, rows, preset_config("filter", model={"head_width": 4}))
    with pytest.raises(InputError, match="unknown size of a filter model: 'likelihood'"):
        preset_config("filter", model={"likelihood": "gaussian"})
    assert not (tmp_path / "model").exists()


def test_a_transformer_starts_with_features_of_the_context(monkeypatch):
    """In the news setting predictors are linear in X_1:4·sign(X_5): half of the map explains it, before any step."""
    monkeypatch.setattr(context_map, "MAP_ROUNDS", 1)
    monkeypatch.setattr(context_map, "MAP_STEPS", 300)
    rows = RowSets.from_rows(News().sample_actions(0, range(150), 150))
    config = preset_config("transformer", "news", model={"context_features": 16}, learning_rates=(0.001,))
    shares = []
    for first_fit in (True, False):
        model = loop.new_model(rows, replace(config, first_fit=first_fit), 0)
        x = torch.tensor(rows.contexts[:4000])
        z = torch.randn(len(x), 64, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            found = model._rows(model.scale_features(z), x)[:, 5:13].double().numpy()  # the first half of the map
        truth = (x[:, :4] * x[:, 4:].sign()).double().numpy()
        shares.append(LinearRegression().fit(found, truth).score(found, truth))
    assert shares[0] > 0.6
    assert shares[1] < 0.3


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
@pytest.mark.parametrize("sizes", [{"context_features": 1}, {"context_features": 2}, {"context_width": 1}])
def test_transformers_of_any_sizes_start(outcomes, sizes, monkeypatch):
    monkeypatch.setattr(context_map, "MAP_ROUNDS", 1)
    monkeypatch.setattr(context_map, "MAP_STEPS", 2)
    rows = drawn(outcomes, n_actions=4, n_rows=6)
    config = preset_config("transformer", model={"context_features": 4, "width": 8, "heads": 2, **sizes}, horizon=5)
    model = loop.new_model(rows, config, 0)
    assert all(parameter.isfinite().all() for parameter in model.parameters())
