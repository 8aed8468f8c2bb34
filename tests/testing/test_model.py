"""Bundled models, p* and the example's models keep the contract, and models are named in every way."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import gents_gym
from gents_gym import InputError, make_tasks, registry
from gents_gym.models.load import bundled_family
from gents_gym.testing import ContractError, check_model

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
KINDS = ["exact", "general", *(name for preset in registry.PRESETS for name in bundled_family(preset))]


@pytest.fixture
def own_model(monkeypatch):
    """The module of the example, to be imported by name."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return pytest.importorskip("own_model")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_keeps_the_contract(name):
    """A new kind is tested by being registered, with weights for a setting."""
    setting, _, variant = name.partition("-")
    outcomes = next((f", outcomes={kind}" for kind in registry.OUTCOME_VARIANTS if variant.endswith(kind)), "")
    tasks = f"{setting if setting in registry.TASKS else 'synthetic'}(n_actions=4, horizon=14{outcomes})"
    assert check_model(name, tasks) is None


def test_the_example_s_models_keep_the_contract_however_they_are_named(own_model):
    for model in (
        own_model.BetaBernoulli,
        own_model.BetaBernoulli(2, 3),
        "own_model:BetaBernoulli(ones=2)",
        "own_model:Classifier(n_actions=200)",
    ):
        assert check_model(model, steps=6) is None


def test_the_first_error_names_the_model(own_model, explain):
    class Shy(own_model.BetaBernoulli):
        def predict(self, state, context):
            return state.sum(axis=1)

    assert explain(Shy).startswith("Shy returns invalid predictions")
    assert explain(Shy()).startswith("Shy returns invalid predictions")
    assert explain(lambda: Shy()).startswith("the model returns invalid predictions")


def test_other_tasks_are_tried(own_model):
    seen = []

    class Looks(own_model.BetaBernoulli):
        def start(self, action_features):
            seen.append(action_features.shape[1])
            return super().start(action_features)

    assert check_model(Looks, "gents_gym/Synthetic-v0(n_actions=3, horizon=12)", steps=4) is None
    assert set(seen) == {2}
    seen.clear()
    assert check_model(Looks, "news(n_actions=3, horizon=12)", steps=4) is None
    assert check_model(Looks, make_tasks("synthetic", n_actions=3, horizon=12), steps=4) is None
    assert {*seen} == {2, gents_gym.make_tasks("news").sample(0, [0]).action_features.shape[2]}


def test_the_error_can_be_pickled(own_model):
    class Broken(own_model.BetaBernoulli):
        def predict(self, state, context):
            return np.full(len(state), np.nan)

    with pytest.raises(ContractError) as caught:
        check_model(Broken)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 1}, "steps must be at least 2, got 1"),
        ({"tasks": "sinthetic"}, "unknown task distribution 'sinthetic'; did you mean 'synthetic'"),
        ({"tasks": "synthetic(horizon=13)"}, r"horizon of at least steps \+ 4 = 14, got 13"),
        ({"model": "synthetic-filtr"}, "unknown model or folder 'synthetic-filtr'; did you mean"),
        ({"model": "own_model:Nothing"}, "cannot import model 'own_model:Nothing'"),
    ],
)
def test_bad_arguments(own_model, arguments, message):
    with pytest.raises(InputError, match=message):
        check_model(**{"model": own_model.BetaBernoulli, **arguments})
