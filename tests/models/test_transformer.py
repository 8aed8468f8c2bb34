"""The transformer: what tokens see, its two ways through a history, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import InputError, TaskInfo, make_tasks
from gents_gym.likelihoods import make_likelihood
from gents_gym.models.load import resolve_model
from gents_gym.models.transformer import TransformerConfig
from gents_gym.randomness import SPLITS
from gents_gym.seals import write_described
from gents_gym.training.config import preset_config
from gents_gym.training.data import RowSets

LIKELIHOODS = {"bernoulli": "bernoulli", "gaussian": "gaussian", "categorical": "categorical(3)"}


def sequences(outcomes="bernoulli", n=6, length=12):
    rows = make_tasks("synthetic", outcomes=outcomes).sample_actions(0, range(n), length)
    return tuple(torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))


@pytest.mark.parametrize("outcomes", LIKELIHOODS)
@pytest.mark.parametrize("sizes", [{}, {"positions": 1, "context_features": 3}], ids=["plain", "everything"])
def test_all_rows_at_once_are_predicted_as_one_by_one(random_model, outcomes, sizes):
    model, (z, x, y) = random_model(outcomes, **sizes), sequences(outcomes)
    likelihood = make_likelihood(LIKELIHOODS[outcomes])
    with torch.no_grad():
        found, state, wanted = model.log_prob(z, x, y).numpy(), model.start(z), []
        for t in range(x.shape[1]):
            wanted.append(likelihood.log_prob(model.predict(state, x[:, t]).numpy(), y[:, t].numpy()))
            state = model.append(state, x[:, t], y[:, t])
        some = model.log_prob(z, x, y, torch.tensor([2, 9])).numpy()
    np.testing.assert_allclose(found, np.stack(wanted, 1), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(some, found[:, [2, 9]], atol=1e-5)


def test_a_row_sees_the_rows_before_it_and_nothing_else(random_model):
    """A gradient shows every way that information can take."""
    model, (z, x, y) = random_model("gaussian", context_features=2), sequences("gaussian", n=1)
    x.requires_grad_(), y.requires_grad_(), z.requires_grad_()
    for t in (0, 5, 11):
        # the mean at row t, which its own outcome must not reach
        mean = model._hidden(z, x, y, torch.tensor([t])).sum() if t else model._hidden(z, x, y, None)[:, 0].sum()
        by_z, by_x, by_y = torch.autograd.grad(mean, (z, x, y), materialize_grads=True)
        reached_x, reached_y = (by_x[0] != 0).any(1), by_y[0] != 0
        assert reached_x.tolist() == [i <= t for i in range(12)]
        assert reached_y.tolist() == [i < t for i in range(12)]
        assert (by_z != 0).all()


def test_later_rows_change_nothing_to_the_bit(random_model):
    model, (z, x, y) = random_model(), sequences()
    with torch.no_grad():
        found = model.log_prob(z, x, y)
        x[:, 7:], y[:, 7:] = 9.0, 1 - y[:, 7:]
        assert torch.equal(model.log_prob(z, x, y)[:, :7], found[:, :7])


def test_without_positions_only_what_a_row_has_seen_tells_orders_apart(random_model):
    """One layer reads observations as a set; a deeper stack is causal, and so is not invariant."""
    (z, x, y), order = sequences(length=12), torch.tensor([3, 0, 7, 1, 9, 2, 8, 10, 4, 6, 5, 11])
    spread = {}
    for name, sizes in {"one": {"layers": 1}, "two": {}, "placed": {"layers": 1, "positions": 1}}.items():
        model = random_model(**sizes)
        with torch.no_grad():
            last = [model.log_prob(z, x[:, each], y[:, each])[:, -1] for each in (torch.arange(12), order)]
        spread[name] = float((last[0] - last[1]).abs().max())
    assert spread["one"] < 1e-5 < 1e-3 < min(spread["two"], spread["placed"])


def test_weights_are_kept_in_a_folder(random_model, tmp_path):
    model, rows = random_model("categorical", context_features=2), sequences("categorical")
    model.save_pretrained(tmp_path / "m")
    with torch.no_grad():
        assert torch.equal(gents_gym.load_model(tmp_path / "m").log_prob(*rows), model.log_prob(*rows))


def test_gaussian_outcomes_are_learned_in_units_of_their_own():
    """An affine change of all outcomes changes the loss of an untrained and of a trained model by its logarithm."""
    rows = make_tasks("synthetic", outcomes="gaussian").sample_actions(0, range(40), 12)
    losses = []
    for shift, scale in ((0, 1), (500, 100)):
        changed = gents_gym.RowSets.from_rows(replace(rows, outcomes=shift + scale * rows.outcomes))
        sizes = {"width": 8, "layers": 1, "heads": 1}
        options = {"horizon": 12, "lengths": (), "gradient_steps": 5, "epochs": 1, "batch": 8}
        config = gents_gym.preset_config("transformer", model=sizes, **options)
        _, progress = gents_gym.train(changed, changed, config)
        losses.append(progress.best - np.log(scale))
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": 10, "heads": 3}, "width must be a multiple of heads, got 10 and 3"),
        ({"positions": 2}, "positions must be 0 or 1, got 2"),
        ({"padded": 2}, "padded must be 0 or 1, got 2"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"likelihood": "poisson"}, "a likelihood must be bernoulli, gaussian or categorical"),
        ({"width": 10**7, "heads": 1}, "width=10000000"),
    ],
)
def test_sizes_that_cannot_be(sizes, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        TransformerConfig(2, 5, **sizes)


def test_no_rows_no_actions_and_no_entries_have_no_losses(random_model):
    model, (z, x, y) = random_model(), sequences()
    assert model.log_prob(z, x[:, :0], y[:, :0]).shape == (6, 0)
    assert model.log_prob(z[:0], x[:0], y[:0]).shape == (0, 12)
    assert model.log_prob(z, x, y, torch.tensor([], dtype=torch.long)).shape == (6, 0)


def test_features_are_those_of_an_empty_history(random_model):
    model, (z, x, _) = random_model(positions=1, context_features=3), sequences()
    with torch.no_grad():
        found = model.parameters_of(model.last(model.features(z, x[:, 0])))
        torch.testing.assert_close(found, model.predict(model.start(z), x[:, 0]))


def test_what_does_not_fit_is_refused(random_model):
    model, (z, x, y) = random_model(longest=10), sequences()
    with pytest.raises(InputError, match="histories must have at most 10 rows for this model, got 12"):
        model.log_prob(z, x, y)
    state = model.start(z)
    for t in range(10):
        state = model.append(state, x[:, t], y[:, t])
    with pytest.raises(InputError, match="at most 10 rows for this model, got 11"):
        model.append(state, x[:, 10], y[:, 10])
    with pytest.raises(InputError, match="contexts must have 5 entries for this model, got 6"):
        model.predict(state, torch.zeros(6, 6))

    def info(**options):
        tasks = make_tasks("synthetic", **{"horizon": 8, **options}).sample(0, range(1))
        return TaskInfo(tasks.action_features, 10, tasks.context_dim, tasks.horizon, likelihood=tasks.likelihood)

    rngs = [np.random.default_rng(0)]
    with pytest.raises(InputError, match="horizon must be at most 10 for this model, its longest history, got 11"):
        model.begin(info(horizon=11), rngs)
    with pytest.raises(InputError, match="contexts must have 5 entries for this model, got 7"):
        model.begin(info(context_dim=7), rngs)
    with pytest.raises(InputError, match="model must be of gaussian outcomes for these tasks, got bernoulli ones"):
        model.begin(info(outcomes="gaussian"), rngs)


def test_weights_of_another_likelihood_are_refused(random_model, tmp_path):
    folder = random_model().save_pretrained(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    config["config"]["likelihood"] = "categorical(3)"
    config.pop("sha256")
    write_described(folder, "config.json", config, {"model.safetensors": (folder / "model.safetensors").read_bytes()})
    with pytest.raises(InputError, match=r"must hold last\.\w+ of shape \(3,.*\) in float32, got \(1,"):
        gents_gym.load_model(folder)


def test_a_padded_model_reads_contexts_of_fewer_entries_with_zeros_behind_them(random_model):
    model, (z, x, y) = random_model(padded=1), sequences()
    whole = x.clone()
    whole[..., 3:] = 0
    with torch.no_grad():
        wanted = model.log_prob(z, whole, y)
        assert torch.equal(model.log_prob(z, x[..., :3], y), wanted)
        state = model.start(z)
        for t in range(4):
            state = model.append(state, x[:, t, :3], y[:, t])
        chances = model.predict(state, x[:, 4, :3])
        found = torch.log(torch.where(y[:, 4] == 1, chances, 1 - chances))
        assert torch.allclose(found, wanted[:, 4], atol=1e-5)
        assert torch.equal(model.log_prob(torch.randn(6, 9), whole, y), wanted)  # action features are not read
        whole[0, 0, 0], clipped = 1e5, whole.clone()
        clipped[0, 0, 0] = 10
        assert torch.equal(model.log_prob(z, whole, y), model.log_prob(z, clipped, y))
        assert not torch.allclose(model.log_prob(z, whole, y), wanted)


def test_more_than_a_padded_model_was_made_for_is_refused(random_model, tmp_path):
    model, (z, _, y) = random_model(padded=1, longest=10), sequences()
    with pytest.raises(InputError, match="contexts must have at most 5 entries for this model, got 6"):
        model.log_prob(z, torch.zeros(6, 3, 6), y[:, :3])

    def info(context_dim=3, horizon=8, likelihood="bernoulli"):
        return TaskInfo(np.ones((1, 4, 7), np.float32), 4, context_dim, horizon, likelihood=make_likelihood(likelihood))

    rngs = [np.random.default_rng(0)]
    assert model.begin(info(), rngs).expected(np.ones((1, 3), np.float32)).shape == (1, 4)
    with pytest.raises(InputError, match="contexts must have at most 5 entries for this model, got 6"):
        model.begin(info(6), rngs)
    with pytest.raises(InputError, match="horizon must be at most 10 for this model, its longest history, got 11"):
        model.begin(info(horizon=11), rngs)
    with pytest.raises(InputError, match="model must be of gaussian outcomes for these tasks, got bernoulli ones"):
        model.begin(info(likelihood="gaussian"), rngs)
    folder = model.save_pretrained(tmp_path / "m")
    assert resolve_model(folder, info()).config == model.config
    for wrong in (info(6), info(likelihood="gaussian")):
        with pytest.raises(InputError, match="m has any and at most 5, bernoulli outcomes: train one with"):
            resolve_model(folder, wrong)


def test_a_padded_training_keeps_no_contexts_and_no_units():
    rows = (RowSets.from_rows(make_tasks("general").sample_actions(0, range(8), 12, split)) for split in SPLITS)
    config = preset_config("transformer", "general", gradient_steps=2, epochs=2, model={"width": 8, "layers": 1})
    assert (config.scaling, config.model["padded"]) == (False, 1)
    model, _ = gents_gym.train(next(rows), next(rows), config)
    assert model.bank.shape == (0, 10)
    assert model.urn == 0
    assert torch.equal(model.context_scaling, torch.stack([torch.zeros(10), torch.ones(10)]))
