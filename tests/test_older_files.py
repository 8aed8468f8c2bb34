"""Files written by earlier versions still load, and give the numbers that they gave then."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from gents_gym import InputError, Tasks, load_model, load_results, preset_config
from gents_gym.report.report import write_report
from gents_gym.training.folder import train_to_folder

FIXTURES = Path(__file__).parent / "fixtures"
OLD = FIXTURES / "0.1.0"
NUMBERS = json.loads((OLD / "numbers.json").read_text())
spec = importlib.util.spec_from_file_location("make_fixtures", FIXTURES / "make.py")
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)


@pytest.mark.parametrize("name", ["synthetic", "news"])
def test_tasks(name):
    tasks, stored = Tasks.load(OLD / f"tasks-{name}.safetensors"), NUMBERS["tasks"][name]
    assert tasks.content_hash == stored["content_hash"]
    assert (None if tasks.texts is None else tasks.texts.tolist()) == stored["texts"]
    assert (tasks.space, tasks.oracle) == (stored["space"], stored["oracle"])
    assert tasks.rewards.sum(axis=(1, 2)).tolist() == stored["rewards"]


def test_an_evaluation_and_its_report(tmp_path):
    stored = NUMBERS["evaluation"]
    found = load_results(OLD / "evaluation")
    assert not found.missing
    for agent, summary in stored["summary"].items():
        for measure, statistics in found.records[stored["env"]][agent].summary().items():
            known = {name: statistics[name] for name in summary[measure]}
            assert known == pytest.approx(summary[measure], rel=1e-9)
    page = write_report(OLD / "evaluation", tmp_path / "report")
    assert "linucb" in page.read_text()
    assert (tmp_path / "report" / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("preset", ["filter", "paper"])
def test_an_interrupted_training_goes_on(preset, tmp_path):
    out, epochs = tmp_path / "model", []
    shutil.copytree(OLD / f"training-{preset}", out)
    config = preset_config(preset, **make.CONFIGS[preset])
    train_to_folder(
        *make.training_rows(), config, out, "fixture", on_epoch=lambda progress: epochs.append(len(progress.history))
    )
    assert epochs == list(range(make.STOPS[preset], config.epochs * len(config.learning_rates) + 1))
    whole = load_file(OLD / f"training-{preset}-whole" / "model.safetensors")
    resumed = load_file(out / "model.safetensors")
    for name, tensor in whole.items():
        assert np.allclose(resumed[name], tensor, rtol=0, atol=1e-6), name


def test_a_plan_without_a_field_has_its_default(tmp_path):
    """The fixture's plans, without the field ``blind``, as of a version that did not have it."""
    shutil.copytree(OLD / "training-filter", tmp_path, dirs_exist_ok=True)
    state = tmp_path / "state.safetensors"
    with safe_open(state, framework="numpy") as file:
        labels = {name: json.loads(text) for name, text in file.metadata().items()}
    assert labels["plan"][0].pop("blind") is False
    save_file(load_file(state), state, metadata={name: json.dumps(label) for name, label in labels.items()})
    plan = json.loads((tmp_path / "run.json").read_text())
    assert plan["config"].pop("blind") is False
    (tmp_path / "run.json").write_text(json.dumps(plan))
    changes = make.CONFIGS["filter"]
    with pytest.raises(InputError, match="with another blind"):
        train_to_folder(*make.training_rows(), preset_config("filter", **changes, blind=True), tmp_path, "fixture")
    train_to_folder(*make.training_rows(), preset_config("filter", **changes), tmp_path, "fixture")
    assert (tmp_path / "config.json").exists()


@pytest.mark.parametrize("name", make.MODELS)
def test_models(name):
    stored = load_file(OLD / "probabilities.safetensors")
    model = load_model(OLD / f"model-{name}")
    given = (torch.from_numpy(stored[part]) for part in ("action_features", "contexts", "outcomes"))
    found = make.chances(model, *given).numpy()
    assert np.allclose(found, stored[name], rtol=0, atol=1e-6)
    assert found.std() > 1e-3
