import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import InputError, RowSets, preset_config
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training import loop
from gents_gym.training.start import fit_prior_maps

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(60), 40))
HELD_OUT = RowSets.from_rows(Synthetic().sample_actions(0, range(30), 25, "validation"))
SMALL = {
    "filter": {"epochs": 2, "batch": 20, "horizon": 25},
    "paper": {"epochs": 3, "batch": 20, "horizon": 25, "steps": 6, "model": {"width": 12}},
}
presets = pytest.mark.parametrize("preset", loop.PRESETS)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


class Killed(BaseException):
    pass


@presets
def test_a_killed_training_ends_with_the_same_bits(preset, tmp_path):
    """Stopped after every single epoch, and in the middle of some, and resumed each time from the file alone."""
    config = preset_config(preset, **SMALL[preset])
    whole, progress = gents_gym.train(ROWS, HELD_OUT, config)
    path = tmp_path / "state.safetensors"
    kills = 0
    while True:
        left = 4 + kills % 3  # batches until the next kill: one epoch has three

        def stop(_):
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed

        try:
            resumed, again = gents_gym.train(ROWS, HELD_OUT, config, path, on_batch=stop)
            break
        except Killed:
            kills += 1
    assert kills >= 1
    assert equal(weights(whole), weights(resumed))
    assert again.history == progress.history
    assert again.best_at == progress.best_at


@presets
def test_training_is_reproducible_and_leaves_the_global_generators_alone(preset):
    config = preset_config(preset, **SMALL[preset])
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, _ = gents_gym.train(ROWS, HELD_OUT, config)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    torch.rand(3)
    second, _ = gents_gym.train(ROWS, HELD_OUT, config)
    other, _ = gents_gym.train(ROWS, HELD_OUT, preset_config(preset, **SMALL[preset], seed=1))
    assert equal(weights(first), weights(second))
    assert not equal(weights(first), weights(other))


def test_the_best_epoch_of_the_best_learning_rate_is_kept():
    config = preset_config("paper", **{**SMALL["paper"], "learning_rates": (5.0, 0.01)})
    model, progress = gents_gym.train(ROWS, HELD_OUT, config)
    losses = [row["validation"] for row in progress.history]
    assert len(losses) == 6
    assert progress.best == min(losses)
    best = progress.history[int(np.argmin(losses))]
    assert progress.best_at == (best["run"], best["epoch"])
    found = loop.sequence_loss(model, HELD_OUT, config.horizon, config.steps).mean()
    assert found == pytest.approx(progress.best, abs=1e-6)


def test_training_lowers_the_loss_towards_the_exact_one():
    rows = RowSets.from_rows(Synthetic().sample_actions(3, range(500), 100))
    held_out = Synthetic().sample_actions(3, range(400), 60, "validation")
    config = preset_config("filter", epochs=2, batch=100, horizon=60)
    untrained = loop.new_model(rows, config, 0)
    plain = FilterModel(FilterConfig(2, 5))
    model, _ = gents_gym.train(rows, RowSets.from_rows(held_out), config)
    losses = [loop.sequence_loss(m, RowSets.from_rows(held_out), 60).mean() for m in (plain, untrained, model)]
    exact = -gents_gym.ExactModel(n_weighted=64).log_marginal(
        held_out.action_features, held_out.contexts, held_out.outcomes, np.random.default_rng(0)
    ).mean() / 60  # fmt: skip
    assert losses[0] > losses[1] > losses[2] > exact
    assert losses[2] < exact + 0.01


def test_the_first_prior_is_the_one_behind_the_data():
    """EM on complete data finds the maps that a regression on true coefficients finds, within sampling error."""
    model = FilterModel(FilterConfig(2, 5))
    rows = Synthetic().sample_actions(1, range(1000), 300)
    fit_prior_maps(model, RowSets.from_rows(rows), np.random.default_rng(0))
    expected = np.zeros((6, 3))
    expected[0] = [0, 1, 1]
    expected[1:, 0] = 1
    expected[1, 1] = expected[2, 2] = 1
    assert np.abs(model.prior_mean.detach().numpy() - expected).max() < 0.15
    state = model.start(torch.zeros(1, 2))
    spread = torch.diagonal(state.covariance[0]).sqrt().detach().numpy()
    assert np.allclose(spread[0], 1.06, atol=0.12)
    assert np.allclose(spread[1:], [0.35, 0.35, 0.25, 0.25, 0.25], atol=0.08)


def test_few_rows_per_action_still_give_a_sound_prior():
    model = FilterModel(FilterConfig(2, 5))
    rows = RowSets.from_rows(Synthetic().sample_actions(1, range(1000), 4))
    fit_prior_maps(model, rows, np.random.default_rng(0))
    state = model.start(torch.tensor(rows.action_features[:50]))
    assert torch.isfinite(state.mean).all()
    assert (torch.linalg.eigvalsh(state.covariance) > 0).all()


def test_the_loss_at_some_entries_estimates_the_whole():
    model = FilterModel(FilterConfig(2, 5))
    whole = loop.sequence_loss(model, HELD_OUT, 25).mean()
    assert loop.sequence_loss(model, HELD_OUT, 25, 25).mean() == pytest.approx(whole)
    batch = HELD_OUT.sequences(np.arange(30), 25)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        picks = [np.sort(rng.choice(25, 5, replace=False)) for _ in range(300)]
        some = [loop._losses(model, batch, torch.from_numpy(at))[0].mean().item() for at in picks]
    assert abs(np.mean(some) - whole) < 4 * np.std(some) / np.sqrt(300)


def test_the_bank_holds_training_contexts():
    model = loop.new_model(ROWS, preset_config("filter", **SMALL["filter"]), 0)
    known = {tuple(row) for row in ROWS.contexts.tolist()}
    assert len(model.bank) == 1000
    assert all(tuple(row) in known for row in model.bank.tolist())
    assert len({tuple(row) for row in model.bank.tolist()}) == 1000


def test_ragged_rows_train():
    sizes = np.random.default_rng(0).integers(1, 30, size=60)
    keep = np.concatenate([np.arange(40 * i, 40 * i + n) for i, n in enumerate(sizes)])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = RowSets(ROWS.action_features, ROWS.contexts[keep], ROWS.outcomes[keep], offsets)
    for preset in loop.PRESETS:
        model, progress = gents_gym.train(rows, HELD_OUT, preset_config(preset, **SMALL[preset]))
        assert np.isfinite(progress.best)
        assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"learning_rates": ()}, "learning_rates must name at least one, got none"),
        ({"learning_rates": (0.0,)}, "learning_rates must be above 0, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"horizon": 1.5}, r"horizon must be a whole number, got 1\.5"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(InputError, match=message):
        preset_config("filter", **changes)


def test_bad_presets_and_sizes():
    with pytest.raises(InputError, match=r"unknown preset 'filer'; did you mean 'filter'\?"):
        preset_config("filer")
    with pytest.raises(InputError, match="unknown size of a paper model: 'hidden_layer'; did you mean 'hidden_layers'"):
        gents_gym.train(ROWS, HELD_OUT, preset_config("paper", model={"hidden_layer": 1}))


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be a whole training state"):
        gents_gym.train(ROWS, HELD_OUT, preset_config("filter", **SMALL["filter"]), path)
