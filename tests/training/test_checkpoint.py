import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

import gents_gym
from gents_gym import InputError, RowSets, preset_config, registry
from gents_gym.seals import BLANK, seal
from gents_gym.tasks.synthetic import Synthetic

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(20), 15))
SMALL = {"epochs": 1, "batch": 20, "horizon": 15, "choose": False}
CONFIG = preset_config("filter", **SMALL)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "state.safetensors"
    gents_gym.train(ROWS, ROWS, CONFIG, path)
    return path


def forge(path, change):
    """Change a state's tensors and labels, with a right sha256."""
    with safe_open(path, framework="pt") as file:
        labels = {name: json.loads(text) for name, text in file.metadata().items() if name != "sha256"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, labels)
    texts = {name: json.dumps(label) for name, label in labels.items()}
    path.write_bytes(seal(save(tensors, metadata={**texts, "sha256": BLANK})))


def go_on(**changes):
    return lambda tensors, labels: labels["progress"].update(changes)


def replace(name, change):
    return lambda tensors, labels: tensors.update({name: change(tensors[name])})


ROW = {"run": 0, "epoch": 1, "training": 0.5, "validation": 0.5}
FORGED = {
    "an epoch that never comes": (go_on(epoch=99), "got one with run 0 and epoch 99, but there are 1 and 1"),
    "a run that never comes": (go_on(run=7), "got one with run 7 and epoch 1"),
    "a negative count": (go_on(epoch=-1), r"it\['progress'\]\['epoch'\] is -1"),
    "a text as a count": (go_on(batch="x"), r"it\['progress'\]\['batch'\] is 'x'"),
    "another batch": (go_on(batch=7), "got one with batches of 7, not 20"),
    "no history": (go_on(history=[]), "epoch 1 of run 0 after a history of 0"),
    "a longer history": (go_on(history=[ROW, ROW]), "a history of other epochs"),
    "a history without losses": (go_on(history=[{"run": 0, "epoch": 1}]), "lacks 'training'"),
    "a best that was not": (go_on(best_at=[0, 5]), r"its best at \[0, 5\]"),
    "candidates": (
        go_on(candidates=[{"model": {"prior_width": 10**13}, "validation": 0.1}]),
        r"other candidates, \[\{'prior_width': 10000000000000\}\]",
    ),
    "more progress": (go_on(code="os:system"), "has an unknown 'code'"),
    "more labels": (lambda tensors, labels: labels.update(more=1), "has an unknown 'more'"),
    "no plan": (lambda tensors, labels: labels.pop("plan"), "lacks 'plan'"),
    "a plan of nothing": (lambda tensors, labels: labels.update(plan=[]), "must be a whole training state"),
    "a plan that is no mapping": (lambda tensors, labels: labels.update(plan=[3]), "must be a whole training state"),
    "fewer tensors": (
        lambda tensors, labels: tensors.pop("optimizer.0.exp_avg"),
        r"missing or unexpected: optimizer\.0\.exp_avg",
    ),
    "more tensors": (lambda tensors, labels: tensors.update(more=torch.zeros(1)), "missing or unexpected: more"),
    "another shape": (
        replace("model.prior_mean", lambda tensor: tensor[:-1].clone()),
        r"must hold model\.prior_mean of shape \(\d, \d\) in torch.float32, got",
    ),
    "another type": (replace("best.bank", torch.Tensor.double), r"best\.bank of shape .* in torch.float64"),
    "steps that are no count": (replace("optimizer.0.step", lambda step: step.repeat(2)), r"step of shape \(\) in"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_states_with_right_seals_are_refused(path, name):
    change, message = FORGED[name]
    forge(path, change)
    with pytest.raises(InputError, match=rf"state\.safetensors' .*{message}"):
        gents_gym.train(ROWS, ROWS, CONFIG, path)


def test_damaged_states_and_those_of_others_are_refused(path):
    with pytest.raises(InputError, match="must be the state of a training of this configuration on these rows"):
        gents_gym.train(ROWS, ROWS, preset_config("filter", **SMALL, seed=1), path)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be a whole training state"):
        gents_gym.train(ROWS, ROWS, CONFIG, path)


def test_a_state_goes_on_with_the_candidate_that_won(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.CANDIDATES, "filter", ({"prior_width": 0}, {"prior_width": 2}))
    config, path = preset_config("filter", **{**SMALL, "choose": True}), tmp_path / "state.safetensors"
    model, progress = gents_gym.train(ROWS, ROWS, config, path)
    again, kept = gents_gym.train(ROWS, ROWS, config, path)
    assert (kept, again.config) == (progress, model.config)
    forge(path, lambda tensors, labels: labels["progress"]["candidates"].reverse())
    with pytest.raises(InputError, match="other candidates"):
        gents_gym.train(ROWS, ROWS, config, path)
