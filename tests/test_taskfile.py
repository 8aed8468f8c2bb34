import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from gents_gym import InputError, Tasks
from gents_gym.taskfile import ARRAYS, read_tasks, write_tasks

LABELS = {"oracle": "logistic", "reward_fn": "gents_gym.types:identity"}


@pytest.fixture
def arrays():
    shapes = ((2, 3, 4), (2, 5, 1), (2, 5, 3), (2, 5, 3), (2, 3, 2), (2, 5, 3))
    rng = np.random.default_rng(0)
    found = {name: rng.random(shape, np.float32) for name, shape in zip(ARRAYS, shapes, strict=True)}
    return {**found, "available": found["available"] < 0.5}


@pytest.mark.parametrize("lacking", [[], ["means"], ["hidden_features", "means"]])
def test_arrays_and_labels_come_back(arrays, lacking, tmp_path):
    kept = {name: array for name, array in arrays.items() if name not in lacking}
    found, labels = read_tasks(write_tasks(tmp_path / "tasks", kept, {**LABELS, "texts": [["ä"]]}))
    assert found.keys() == kept.keys()
    assert all(np.array_equal(found[name], array) for name, array in kept.items())
    assert labels == {**LABELS, "texts": [["ä"]]}


def test_the_seal_covers_the_labels(arrays, tmp_path):
    path = write_tasks(tmp_path / "tasks", arrays, LABELS)
    with safe_open(path, framework="numpy") as file:
        label = json.loads(file.metadata()["tasks"])
    save_file(load_file(path), path, metadata={"tasks": json.dumps({**label, "oracle": "mlp"})})
    with pytest.raises(InputError, match="is damaged: its content does not match its sha256"):
        read_tasks(path)


def test_what_no_version_of_ours_knows_is_refused(arrays, tmp_path):
    path = write_tasks(tmp_path / "tasks", arrays, {**LABELS, "colour": "red"})
    with pytest.raises(InputError, match=r"must be a whole file written by Tasks\.save, got .*colour"):
        Tasks.load(path)
    path = write_tasks(tmp_path / "tasks", {**arrays, "colours": np.zeros(3)}, LABELS)
    with pytest.raises(InputError, match=r"must be a whole file written by Tasks\.save, got .*colours"):
        read_tasks(path)
