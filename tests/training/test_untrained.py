import json

import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import InputError, RowSets, load_model, make_tasks, preset_config
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.load import WEIGHTS, bundled_models
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.untrained import BANK, check_rows, complete_model, new_model

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(60), 40))
SMALL = {"epochs": 1, "batch": 60, "horizon": 10, "choose": False}


def test_the_bank_holds_training_contexts():
    model = new_model(ROWS, preset_config("filter"), 0)
    known = {tuple(row) for row in ROWS.contexts.tolist()}
    assert len(model.bank) == 1000
    assert all(tuple(row) in known for row in model.bank.tolist())
    assert len({tuple(row) for row in model.bank.tolist()}) == 1000


def test_a_trained_model_has_a_bank_of_training_actions():
    model, _ = gents_gym.train(ROWS, ROWS, preset_config("filter", **SMALL))
    assert np.array_equal(model.action_bank.numpy(), ROWS.action_features)
    many = RowSets(np.arange(1500.0)[:, None], np.ones((1500, 1)), np.ones(1500), np.arange(1501))
    complete_model(model := new_model(many, preset_config("filter"), 0, started=False), many, preset_config("filter"))
    drawn = model.action_bank[:, 0].tolist()
    assert len(drawn) == BANK
    assert drawn == sorted(set(drawn))
    assert max(drawn) > BANK


@pytest.mark.parametrize(("spread", "low", "high"), [(1.0, 0, 0), (0.2, 0.9, 1)])
def test_the_urn_is_fitted_to_the_contexts_of_whole_tasks_and_changes_no_weight(spread, low, high):
    tasks = Synthetic(context_spread=spread, horizon=60).sample(0, range(20), "train")
    rows = RowSets(*(getattr(ROWS, name) for name in ("action_features", "contexts", "outcomes", "offsets")),
                   task_contexts=tuple(tasks.contexts))  # fmt: skip
    config = preset_config("filter", **SMALL)
    (model, _), (without, _) = (gents_gym.train(given, ROWS, config) for given in (rows, ROWS))
    assert low <= model.urn <= high
    assert without.urn == 0
    for name, tensor in model.state_dict().items():
        assert name == "urn" or torch.equal(tensor, without.state_dict()[name])


def test_rows_that_do_not_go_together():
    drawn = gents_gym.make_tasks("synthetic").sample_actions(0, range(60), 5)
    with pytest.raises(InputError, match=r"rows must be a RowSets, got ActionRows: pass RowSets.from_rows\(rows\)$"):
        gents_gym.train(drawn, ROWS, preset_config("filter"))
    wide = RowSets(ROWS.action_features, ROWS.contexts[:, :4], ROWS.outcomes, ROWS.offsets)
    with pytest.raises(InputError, match="validation must have contexts of 5 entries, as the training rows, got 4"):
        gents_gym.train(ROWS, wide, preset_config("filter"))
    dollars = RowSets(ROWS.action_features, ROWS.contexts, 9 * ROWS.outcomes, ROWS.offsets)
    assert dollars.likelihood == GAUSSIAN
    with pytest.raises(InputError, match="validation must have bernoulli outcomes, as the training rows, got gaussian"):
        check_rows(ROWS, dollars, preset_config("filter"))
    with pytest.raises(InputError, match="outcomes must be bernoulli for a paper model, got gaussian: train a filter"):
        check_rows(dollars, dollars, preset_config("paper"))


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_have_banks_of_the_actions_they_were_trained_on(name):
    model = load_model(name)
    notes = json.loads((WEIGHTS / name / "config.json").read_text())["notes"]
    n_actions = notes["actions"]["training"]
    assert min(200, n_actions) <= len(model.action_bank) <= n_actions  # some have few, for the sake of the wheel
    assert model.urn == 0  # contexts of both settings are independent
    if n_actions == 100:
        tasks = make_tasks(name.partition("-")[0])
        known = {tuple(z) for z in tasks.sample_actions(0, range(100), 1000).action_features.tolist()}
        assert {tuple(z) for z in model.action_bank.tolist()} == known


def test_sequences_that_are_longer_than_a_model_s_histories():
    sizes = {"width": 8, "heads": 1, "layers": 1, "longest": 20}
    for options in ({"horizon": 30, "lengths": ()}, {"horizon": 10, "lengths": (5, 30)}):
        config = preset_config("transformer", model=sizes, replacement=False, **options)
        with pytest.raises(InputError, match=r"must be at most 20 for this model, its longest history .* got 30"):
            check_rows(ROWS, ROWS, config)
    few = RowSets.from_rows(Synthetic().sample_actions(0, range(10), 20))
    assert check_rows(few, few, config) is None  # no sequence is longer than its action has rows


def test_outcomes_in_a_unit_that_single_precision_cannot_hold():
    tiny = RowSets(ROWS.action_features, ROWS.contexts, 1e-30 * ROWS.outcomes, ROWS.offsets, likelihood=GAUSSIAN)
    with pytest.raises(InputError, match=r"a standard deviation of 1e-15 to 1e\+15, got .*e-31: give"):
        check_rows(tiny, tiny, preset_config("filter"))
