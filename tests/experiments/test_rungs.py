"""The rungs: one change at a time, from ``literal`` to what ``paper`` is."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gents_gym import preset_config
from gents_gym.experiments.catalogue import EXPERIMENTS
from gents_gym.experiments.places import SCALES, find_place
from gents_gym.experiments.rungs import RUNGS, WITHOUT_FEATURES, climb
from gents_gym.experiments.trained import plan_training

PAPER = SCALES["paper"]


def rungs(setting):
    place = find_place(setting, PAPER, None, (), Path("out"))
    return place, [name for name in place.ladder if "literal" in name]


@pytest.mark.parametrize("setting", ["synthetic", "news"])
def test_each_rung_makes_its_own_change_and_no_other(setting):
    place, names = rungs(setting)
    assert [Path(name).name.removeprefix(f"{setting}-literal") for name in names] == [
        "",
        *(f"-{rung}" for rung in (RUNGS if setting == "news" else WITHOUT_FEATURES)),
    ]
    configs = [asdict(plan_training(name, place, PAPER)[0]) for name in names]
    for name, before, after in zip(names[1:], configs, configs[1:], strict=False):
        model, training = RUNGS[Path(name).name.rpartition("-")[2]]
        assert after == {**before, **training, "model": {**before["model"], **model}}
        assert after != before


def test_the_ladder_ends_at_the_paper_preset():
    """Except for rates, batches, their pieces and epochs, and a first fit if there is no φ̂ to fit."""
    for setting, last in (("synthetic", "scheduled"), ("news", "small")):
        place, _ = rungs(setting)
        config, _ = plan_training(f"out/{setting}-literal-{last}", place, PAPER)
        paper = preset_config("paper", setting)
        same = {
            name: getattr(config, name) for name in ("preset", "learning_rates", "batch", "memory", "epochs", "model")
        }
        same |= {"first_fit": config.first_fit} if setting == "synthetic" else {}
        assert replace(paper, **same) == config
        choices = {"raw": False, "intercept": None, "plain_context": False, "context_features": 0, **paper.model}
        found = {**choices, **config.model}
        assert found["raw"] == choices["raw"]
        assert found["context_features"] == choices["context_features"]
        if setting == "news":  # where φ̂ is learned, None stands for an intercept
            assert (found["intercept"], found["plain_context"]) == (True, False)


def test_changes_add_up():
    assert climb("scaled").model == {"raw": False}
    assert climb("scaled").training["scaling"] is True
    assert climb("scaled").training["steps"] == 50
    assert climb("small").model["context_features"] == 4


def test_small_trainings_have_few_actions():
    small = SCALES["small"]
    place = find_place("synthetic", small, None, (), Path("out"))
    config, actions = plan_training("out/synthetic-literal-cheap", place, small)
    assert (actions, config.epochs) == (small.training, small.epochs)


def test_the_ladder_tests_whether_sampling_is_worth_less_on_better_models():
    place = find_place("synthetic", PAPER, None, (), Path("out"))
    last = EXPERIMENTS["ladder"](place, PAPER).claims[-3:]
    assert [claim.tested.split("`")[1::2] for claim in last] == [
        ["synthetic-paper", "synthetic-literal"],
        ["synthetic-filter", "synthetic-paper"],
        ["exact", "synthetic-filter"],
    ]
    assert last[0].weights == {
        "ts-gen(model=synthetic-paper, policy=logistic)": 1,
        "greedy(model=synthetic-paper)": -1,
        "ts-gen(model=synthetic-literal, policy=logistic)": -1,
        "greedy(model=synthetic-literal)": 1,
    }
    assert {claim.sign for claim in last} == {1}
    steps = [claim for claim in EXPERIMENTS["ladder"](place, PAPER).claims if claim.sign == 0]
    assert [[Path(name).name.rpartition("-")[2] for name in claim.tested.split("`")[1::2]] for claim in steps] == [
        ["cheap", "literal"],
        ["bounded", "cheap"],
        ["scaled", "bounded"],
        ["scheduled", "scaled"],
        ["intercept", "scheduled"],
        ["paper", "intercept"],
    ]
