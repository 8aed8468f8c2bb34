from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV

import gents_gym
from gents_gym import RowSets, preset_config, registry
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training import loop
from gents_gym.training.checkpoint import read_state
from gents_gym.training.hierarchy import PENALTIES, ridge
from gents_gym.training.start import fit_prior_maps

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(60), 40))
HELD_OUT = RowSets.from_rows(Synthetic().sample_actions(0, range(30), 25, "validation"))
SMALL = {
    "filter": {"epochs": 2, "batch": 20, "horizon": 25, "choose": False},
    "paper": {"epochs": 3, "batch": 20, "horizon": 25, "steps": 6, "model": {"width": 12}},
    "transformer": {
        "gradient_steps": 12,
        "epochs": 4,
        "batch": 20,
        "horizon": 25,
        "lengths": (5, 10),
        "averaging": 0.5,
        "model": {"width": 8, "layers": 2, "heads": 2},
    },
    "literal": {"epochs": 2, "batch": 20, "horizon": 25, "model": {"width": 12}},
}
presets = pytest.mark.parametrize("preset", SMALL)  # but for "joint", which learns from whole tasks


CHEAP = ({"prior_width": 0}, {"prior_width": 3})  # candidates that start fast


@pytest.fixture
def cheap(monkeypatch):
    monkeypatch.setitem(registry.CANDIDATES, "filter", CHEAP)


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


@pytest.mark.parametrize("n_actions", [7, 60])
def test_gradient_steps_are_the_same_for_any_number_of_actions(n_actions, tmp_path, monkeypatch):
    """Ten steps in three epochs: 3, 3 and 4 batches of 20, pass after pass, along one schedule, resumable."""
    taken, rates = [], []
    draw, step = loop._draw, torch.optim.AdamW.step
    monkeypatch.setattr(loop, "_draw", lambda rows, block, *rest: taken.append(block) or draw(rows, block, *rest))
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: rates.append(self.param_groups[1]["lr"]) or step(self))
    config = preset_config("paper", **{**SMALL["paper"], "learning_rates": (0.01,)}, gradient_steps=10)
    rows = ROWS.choose(np.arange(n_actions))
    whole, progress = gents_gym.train(rows, HELD_OUT, config)
    assert [len(block) for block in taken] == [20] * 10
    assert len(progress.history) == 3
    np.testing.assert_allclose(rates, [0.01 * loop._one_cycle(i / 10) for i in range(10)])
    passes = np.concatenate(taken[:3])[: 60 // n_actions * n_actions].reshape(-1, n_actions)
    assert (np.sort(passes) == np.arange(n_actions)).all()

    def stop(_):
        raise Killed

    monkeypatch.setattr(loop, "KEEP_EVERY", 0.0)
    path = tmp_path / "state.safetensors"
    with pytest.raises(Killed):
        gents_gym.train(rows, HELD_OUT, config, path, on_batch=stop)
    resumed, _ = gents_gym.train(rows, HELD_OUT, config, path)
    assert equal(weights(whole), weights(resumed))


@presets
def test_a_training_killed_in_an_epoch_goes_on_there_and_ends_with_the_same_bits(preset, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "KEEP_EVERY", 0)
    config = preset_config(preset, **{**SMALL[preset], "learning_rates": (0.02, 0.01)})
    expected = []
    whole, progress = gents_gym.train(ROWS, HELD_OUT, config, on_batch=expected.append)
    told = []

    def stop(loss):
        told.append(loss)
        if len(told) % 2 == 0:  # an epoch has three
            raise Killed

    for _ in range(len(expected) // 2):
        with pytest.raises(Killed):
            gents_gym.train(ROWS, HELD_OUT, config, tmp_path / "state", on_batch=stop)
    resumed, again = gents_gym.train(ROWS, HELD_OUT, config, tmp_path / "state", on_batch=stop)
    assert told == expected  # no batch twice
    assert equal(weights(whole), weights(resumed))
    assert again == progress


def test_the_state_is_kept_before_the_first_batch_and_every_30_seconds(tmp_path, monkeypatch):
    """However long an epoch takes."""
    seconds, path, kept = 0, tmp_path / "state", []
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: seconds))
    config = preset_config("paper", **{**SMALL["paper"], "epochs": 1, "batch": 5, "learning_rates": (0.01,)})
    plan = [loop.plain_config(config), ROWS.content_hash, HELD_OUT.content_hash]

    def pass_time(_):
        nonlocal seconds
        seconds += 10
        kept.append(read_state(path, plan, [config.model])[0].batches)

    gents_gym.train(ROWS, HELD_OUT, config, path, on_batch=pass_time)
    assert kept == [0, 0, 0, 4, 4, 4, 7, 7, 7, 10, 10, 10]


def test_a_training_killed_while_it_chooses_ends_with_the_same_bits(cheap, tmp_path, monkeypatch):
    config = preset_config("filter", **{**SMALL["filter"], "choose": True})
    told = []
    whole, progress = gents_gym.train(ROWS, HELD_OUT, config, on_epoch=lambda p: told.append(len(p.candidates)))
    assert told == [1, 2, 2, 2, 2]
    path = tmp_path / "state.safetensors"
    calls = 0

    def stop(_):
        nonlocal calls
        calls += 1
        if calls in (1, 4, 6):  # in the choice; after it, when batches begin; in the first epoch
            raise Killed

    starts = []
    start = loop.new_model
    monkeypatch.setattr(loop, "new_model", lambda *a, **k: starts.append(k.get("started", True)) or start(*a, **k))
    for _ in range(3):
        with pytest.raises(Killed):
            gents_gym.train(ROWS, HELD_OUT, config, path, on_epoch=stop)
    resumed, again = gents_gym.train(ROWS, HELD_OUT, config, path)
    assert equal(weights(whole), weights(resumed))
    assert again == progress
    assert starts == [True, True, True, False, False]  # what is chosen is not fitted again


def test_the_candidate_of_the_lowest_first_loss_is_trained(cheap, monkeypatch):
    config = preset_config("filter", **{**SMALL["filter"], "choose": True})
    first = [loop._judge(loop.new_model(ROWS, option, 0), HELD_OUT, option) for option in loop.candidates(config)]
    model, progress = gents_gym.train(ROWS, HELD_OUT, config)
    assert [row["model"] for row in progress.candidates] == list(CHEAP)
    assert [row["validation"] for row in progress.candidates] == first
    best = CHEAP[int(np.argmin(first))]["prior_width"]
    assert model.config.prior_width == best
    named, _ = gents_gym.train(ROWS, HELD_OUT, preset_config("filter", **SMALL["filter"], model={"prior_width": best}))
    assert equal(weights(model), weights(named))
    judge = loop._judge
    monkeypatch.setattr(loop, "_judge", lambda m, *a: judge(m, *a) - m.config.prior_width)
    model, _ = gents_gym.train(ROWS, HELD_OUT, config)
    assert model.config.prior_width == 3


@pytest.mark.parametrize(
    ("preset", "changes", "expected"),
    [
        ("filter", {}, [{"context_features": 0}, {"context_features": 8}]),
        ("filter", {"model": {"head_width": 2}}, [{"head_width": 2, "context_features": k} for k in (0, 8)]),
        ("filter", {"model": {"context_features": 3}}, [{"context_features": 3}]),
        ("filter", {"choose": False}, [{}]),
        ("paper", {}, [{}]),
    ],
)
def test_what_is_compared(preset, changes, expected):
    assert [option.model for option in loop.candidates(preset_config(preset, **changes))] == expected


def test_presets_that_name_their_features_have_chosen():
    (option,) = loop.candidates(preset_config("filter", "news"))
    assert option == preset_config("filter", "news")


def test_learned_features_are_chosen_where_linear_ones_see_nothing():
    """Outcomes are even in the context: the plain filter can only predict base rates."""
    rng = np.random.default_rng(0)

    def draw(n_actions):
        z, x = rng.normal(size=(n_actions, 2)), rng.normal(size=(n_actions, 40, 2))
        logits = (2 + z[:, :1]) * (x[..., 0] ** 2 - 1) - 2 * np.abs(x[..., 1])
        outcomes = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
        return RowSets.from_rows(gents_gym.ActionRows(z, x, outcomes))

    config = preset_config("filter", epochs=1, horizon=40, model={"context_width": 16})
    model, progress = gents_gym.train(draw(100), draw(50), config)
    plain, learned = (row["validation"] for row in progress.candidates)
    assert learned < plain - 0.05
    assert model.config.context_features == 8


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
    sums, counts = loop.sequence_loss(model, HELD_OUT, config.horizon, config.steps)
    assert sums.sum() / counts.sum() == pytest.approx(progress.best, abs=1e-6)


def test_training_lowers_the_loss_towards_the_exact_one():
    rows = RowSets.from_rows(Synthetic().sample_actions(3, range(500), 100))
    held_out = Synthetic().sample_actions(3, range(400), 60, "validation")
    config = preset_config("filter", epochs=2, batch=100, horizon=60, choose=False)
    untrained = loop.new_model(rows, config, 0)
    plain = FilterModel(FilterConfig(2, 5))
    model, _ = gents_gym.train(rows, RowSets.from_rows(held_out), config)
    losses = [loop.sequence_loss(m, RowSets.from_rows(held_out), 60)[0].mean() / 60 for m in (plain, untrained, model)]
    exact = -gents_gym.ExactModel(Synthetic().truth, n_weighted=64).log_marginal(
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
    whole = loop.sequence_loss(model, HELD_OUT, 25)[0].mean() / 25
    assert loop.sequence_loss(model, HELD_OUT, 25, 25)[0].mean() / 25 == pytest.approx(whole)
    with torch.no_grad():
        each, _ = loop._losses(model, HELD_OUT.sequences(np.arange(30), 25), torch.tensor([0, 12, 24]))
    assert loop.sequence_loss(model, HELD_OUT, 25, 3)[0] == pytest.approx(each.sum(1).numpy(), abs=1e-5)
    batch = HELD_OUT.sequences(np.arange(30), 25)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        picks = [np.sort(rng.choice(25, 5, replace=False)) for _ in range(300)]
        some = [loop._losses(model, batch, torch.from_numpy(at))[0].mean().item() for at in picks]
    assert abs(np.mean(some) - whole) < 4 * np.std(some) / np.sqrt(300)


def test_ragged_rows_train():
    sizes = np.random.default_rng(0).integers(1, 30, size=60)
    keep = np.concatenate([np.arange(40 * i, 40 * i + n) for i, n in enumerate(sizes)])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = RowSets(ROWS.action_features, ROWS.contexts[keep], ROWS.outcomes[keep], offsets)
    for preset in SMALL:
        model, progress = gents_gym.train(rows, HELD_OUT, preset_config(preset, **SMALL[preset]))
        assert np.isfinite(progress.best)
        assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())


def test_padding_counts_for_nothing():
    rows = RowSets(ROWS.action_features[:2], ROWS.contexts[:13], ROWS.outcomes[:13], np.array([0, 3, 13]))
    model = FilterModel(FilterConfig(2, 5))
    sums, counts = loop.sequence_loss(model, rows, 25)
    assert counts.tolist() == [3, 10]
    for i, (first, last) in enumerate(((0, 3), (3, 13))):
        x, y = (torch.tensor(part[first:last])[None] for part in (rows.contexts, rows.outcomes))
        with torch.no_grad():
            alone = -model.log_prob(torch.tensor(rows.action_features[i : i + 1]), x, y).sum().item()
        assert sums[i] == pytest.approx(alone, rel=1e-5)
    config = preset_config("filter", epochs=1, batch=2, horizon=25, choose=False)
    first = loop.new_model(rows, config, 0)
    expected = np.divide(*map(np.sum, loop.sequence_loss(first, rows, 25)))
    told = []
    gents_gym.train(rows, HELD_OUT, config, on_batch=told.append)
    assert told[0] == pytest.approx(expected, abs=0.05)


def test_the_schedule_and_the_decay_reach_the_optimiser(monkeypatch):
    seen = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW,
        "step",
        lambda self, *a: seen.append([(g["lr"], g["weight_decay"]) for g in self.param_groups]) or step(self, *a),
    )
    config = preset_config("paper", **{**SMALL["paper"], "learning_rates": (0.01,), "weight_decay": 0.3})
    gents_gym.train(ROWS, HELD_OUT, config)
    rates = np.array([[lr for lr, _ in groups] for groups in seen])  # (steps, 2)
    assert len(rates) == 9
    assert rates[:, 1].max() == pytest.approx(0.01, rel=0.1)
    assert rates[0, 1] < 0.002
    assert rates[-1, 1] < 0.002
    assert np.allclose(rates[:, 0], 100 * rates[:, 1])
    assert [decay for _, decay in seen[0]] == [0.003, 0.3]


def test_the_literal_training_is_as_printed(monkeypatch):
    """A constant rate, every entry in the loss, unscaled inputs, a random start, all validation actions."""
    seen, entries, losses = [], [], loop._losses
    step = torch.optim.AdamW.step
    spy = lambda self, *a: seen.append(self.param_groups[1]["lr"]) or step(self, *a)  # noqa: E731
    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    monkeypatch.setattr(loop, "_losses", lambda m, b, at: entries.append(at) or losses(m, b, at))
    monkeypatch.setattr("gents_gym.training.start.fit_context_map", None)  # would raise if it were called
    changes = {**SMALL["literal"], "model": {"context_features": 3, "context_width": 5}, "learning_rates": (0.01,)}
    config = preset_config("literal", **changes)
    model, _ = gents_gym.train(ROWS, HELD_OUT, config)
    assert set(seen) == {0.01}
    assert set(entries) == {None}
    assert torch.equal(model.context_scaling, torch.stack([torch.zeros(5), torch.ones(5)]))
    assert torch.equal(model.action_scaling, torch.stack([torch.zeros(2), torch.ones(2)]))
    printed = preset_config("literal")
    assert (printed.batch, printed.epochs, printed.validation_actions) == (500, 100, 10_000)
    assert printed.learning_rates == (0.1, 0.01, 0.001)


def test_a_batch_in_pieces_has_the_gradient_of_the_whole():
    """Of rows that differ in length, so that pieces weigh differently."""
    lengths = np.array([3, 25, 1, 10, 25, 7, 2])
    offsets = np.concatenate([[0], lengths.cumsum()])
    rows = RowSets(ROWS.action_features[:7], ROWS.contexts[: offsets[-1]], ROWS.outcomes[: offsets[-1]], offsets)
    batch = rows.sequences(np.arange(7), 25)
    model = loop.new_model(rows, preset_config("literal", **SMALL["literal"]), 0)
    found = []
    for piece in (7, 3, 1):
        model.zero_grad()
        loss = loop._add_gradients(model, batch, None, piece)
        found.append([loss, *(parameter.grad.clone() for parameter in model.parameters())])
    for other in found[1:]:
        assert other[0] == pytest.approx(found[0][0], rel=1e-5)
        for left, right in zip(found[0][1:], other[1:], strict=True):
            assert torch.allclose(left, right, rtol=1e-3, atol=1e-6)


def test_the_entries_and_the_resampling_are_the_configured_ones(monkeypatch):
    asked, entries = [], []
    resample, losses = RowSets.resample, loop._losses

    def spy(self, actions, length, replacement, *others, **named):
        asked.append(replacement)
        return resample(self, actions, length, replacement, *others, **named)

    monkeypatch.setattr(RowSets, "resample", spy)
    monkeypatch.setattr(loop, "_losses", lambda m, b, at: entries.append(at) or losses(m, b, at))
    for preset, expected in (("paper", True), ("filter", False)):
        asked.clear()
        entries.clear()
        gents_gym.train(ROWS, HELD_OUT, preset_config(preset, **{**SMALL[preset], "learning_rates": (0.01,)}))
        assert asked[-1] is expected
    gents_gym.train(ROWS, HELD_OUT, preset_config("paper", **{**SMALL["paper"], "learning_rates": (0.01,)}))
    drawn = {tuple(at.tolist()) for at in entries if at is not None}
    assert len(drawn) > 5


@pytest.mark.parametrize(("x_scale", "z_scale"), [(1e4, 1), (1, 1e3), (1e-3, 1e-3)])
def test_units_do_not_show(x_scale, z_scale):
    """Contexts and features in any unit give the model that standard ones give."""
    scaled = [
        RowSets(r.action_features * z_scale + z_scale, r.contexts * x_scale - x_scale, r.outcomes, r.offsets)
        for r in (ROWS, HELD_OUT)
    ]
    for preset in SMALL:
        config = preset_config(preset, **SMALL[preset])
        _, plain = gents_gym.train(ROWS, HELD_OUT, config)
        _, other = gents_gym.train(*scaled, config)
        assert other.best == pytest.approx(plain.best, abs=0.01)


def test_a_training_that_only_harms_returns_its_start():
    config = preset_config("filter", **{**SMALL["filter"], "learning_rates": (50.0,)})
    model, progress = gents_gym.train(ROWS, HELD_OUT, config)
    assert progress.best_at == (0, 0)
    start = loop.new_model(ROWS, config, 0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), start.parameters(), strict=True))


def test_features_that_say_nothing_are_not_believed():
    """More features than actions could fit: the start must stay near what knows no features at all."""
    rng = np.random.default_rng(0)
    rows = RowSets(rng.normal(size=(60, 200)), ROWS.contexts, ROWS.outcomes, ROWS.offsets)
    held_out = RowSets(rng.normal(size=(30, 200)), HELD_OUT.contexts, HELD_OUT.outcomes, HELD_OUT.offsets)
    blind = [RowSets(np.zeros((len(r), 1)), r.contexts, r.outcomes, r.offsets) for r in (ROWS, HELD_OUT)]
    config = preset_config("filter", **SMALL["filter"])
    with_noise = loop._judge(loop.new_model(rows, config, 0), held_out, config)
    without = loop._judge(loop.new_model(blind[0], config, 0), blind[1], config)
    assert with_noise < without + 0.05


def test_ridge_is_scikit_learns_with_the_penalty_of_the_lowest_leave_one_out_error():
    rng = np.random.default_rng(0)
    z, noise = rng.normal(size=(80, 6)), rng.normal(size=(80, 3))
    y = 2 + z @ rng.normal(size=(6, 3)) * [1, 0.1, 0] + noise
    maps, fitted, left = ridge(z, y)
    theirs = RidgeCV(alphas=PENALTIES, alpha_per_target=True, store_cv_results=True).fit(z, y)
    assert np.allclose(maps[1:].T, theirs.coef_, atol=1e-6)
    assert np.allclose(maps[0], theirs.intercept_, atol=1e-6)
    assert np.allclose(fitted, theirs.predict(z), atol=1e-6)
    assert np.allclose((left**2).mean(axis=0), theirs.cv_results_.mean(axis=0).min(axis=-1), rtol=1e-5)


def test_batches_of_longer_sequences_have_fewer_actions():
    config = preset_config("transformer", **{**SMALL["transformer"], "lengths": (5, 10, 25)})
    rng, seen = np.random.default_rng(0), set()
    for _ in range(30):
        batch, at = loop._draw(ROWS, np.arange(20), config, rng)
        assert at is None
        seen.add(tuple(batch.outcomes.shape))
    assert seen == {(20, 5), (10, 10), (4, 25)}


def test_weights_are_averaged_over_the_last_steps_alone():
    model, average = torch.nn.Linear(2, 1), {"weight": torch.zeros(1, 2)}
    for n_before, value in ((-2, 50.0), (-1, 40.0), (0, 1.0), (1, 2.0), (2, 6.0)):
        torch.nn.init.constant_(model.weight, value)
        loop._add_to_average(average, model, n_before)
    assert torch.allclose(average["weight"], torch.full((1, 2), 3.0))


def test_the_better_of_the_last_weights_and_their_average_is_judged(monkeypatch):
    config = preset_config("transformer", **SMALL["transformer"])
    model = loop.new_model(ROWS, config, 0)
    average = {name: tensor + 1 for name, tensor in loop._average(model, config).items()}
    progress = SimpleNamespace(epoch=3)
    for judged, wanted in (({True: 0.5, False: 0.4}, model), ({True: 0.3, False: 0.4}, None)):
        monkeypatch.setattr(loop, "_judge", lambda one, *_, judged=judged: judged[one is not model])
        chosen, loss = loop._better(model, average, HELD_OUT, config, progress, 10)
        assert loss == min(judged.values())
        assert wanted is None or chosen is wanted
    assert all(torch.equal(chosen.get_parameter(name), tensor) for name, tensor in average.items())
    progress.epoch = 2  # the average has not begun
    assert loop._better(model, average, HELD_OUT, config, progress, 10) == (model, 0.4)


def test_gradients_are_clipped(monkeypatch):
    norms = []
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda parameters, limit: norms.append(limit))
    gents_gym.train(ROWS, HELD_OUT, preset_config("transformer", **SMALL["transformer"], clip=0.7))
    assert norms == [0.7] * 12


def test_the_layers_matrices_move_as_far_in_all_directions():
    """A first step of Muon is near an orthogonal matrix, as long as AdamW's: 0.2 of its rate for each entry."""
    config = preset_config("transformer", **{**SMALL["transformer"], "weight_decay": 0.0})
    model = loop.new_model(ROWS, config, 0)
    torch.nn.init.normal_(
        model.last.weight, 0, 0.1, generator=torch.Generator().manual_seed(0)
    )  # zeros pass nothing back
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizers = loop._optimizers(model, config, 0)
    loop._add_gradients(model, ROWS.sequences(np.arange(20), 10), None, 20)
    for optimizer in optimizers:
        optimizer.step()
    hidden = [name for name, tensor in model.named_parameters() if name.startswith("blocks.") and tensor.ndim == 2]
    assert len(hidden) == 10
    for name in hidden:
        step = (model.get_parameter(name) - before[name]).detach().double().numpy()
        lengths = np.linalg.svd(step, compute_uv=False) / (0.2 * 0.003 * max(step.shape) ** 0.5)
        assert lengths.max() < 1.3, name
        assert np.median(lengths) > 0.6, name
    for name in ("ask.weight", "last.bias"):  # AdamW's first step is its rate
        assert (model.get_parameter(name) - before[name]).abs().max().item() == pytest.approx(0.003, rel=0.01)
