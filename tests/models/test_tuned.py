import json
from pathlib import Path

import pytest

from gents_gym.checks import InputError
from gents_gym.models.load import WEIGHTS, load_model
from gents_gym.models.tuned import find_tuned, pick_entry, read_tuned, tuned_files, weights_sha256, write_tuned

FOLDER = WEIGHTS / "synthetic-filter"
PATH = Path("tuned.json")


def entry(horizon=500, n_actions=10, contexts="bank", agent="greedy"):
    numbers = dict.fromkeys(("mean", "se", "quantile", "score", "behind", "behind_se"), 1.0)
    return {
        "horizon": horizon,
        "n_actions": n_actions,
        "contexts": contexts,
        "agent": agent,
        "risk": 0.0,
        "quantile": 0.95,
        "seed": 0,
        "env": "gents_gym/Imagined-v0",
        "rungs": [{"tasks": 2, "agents": {agent: numbers}}],
        "versions": {},
    }


def write(folder, *entries, model="synthetic-filter", sha256=None):
    for one in entries or [entry()]:
        path = write_tuned(folder, model, sha256 or weights_sha256(FOLDER), one)
    return path


def test_entries_of_other_tasks_stay_and_those_of_the_same_are_replaced(tmp_path):
    write(tmp_path, entry(), entry(2000), entry(contexts=0.0), entry(agent="ts-gen"))
    found = {(one["horizon"], one["contexts"]): one["agent"] for one in read_tuned(tmp_path / "tuned.json")["entries"]}
    assert found == {(500, "bank"): "ts-gen", (2000, "bank"): "greedy", (500, 0.0): "greedy"}


def test_entries_of_another_model_go(tmp_path):
    write(tmp_path, entry(2000), sha256="0" * 63 + "1")
    write(tmp_path, entry())
    assert [one["horizon"] for one in read_tuned(tmp_path / "tuned.json")["entries"]] == [500]


@pytest.mark.parametrize(
    ("sizes", "horizon"),
    [((500, 10), 500), ((900, 10), 500), ((1100, 10), 2000), ((5, 10), 500), ((10**6, 3), 2000), ((1000, 10), 2000)],
)
def test_the_nearest_entry_is_picked(sizes, horizon):
    entries = [entry(500), entry(2000), entry(1000, contexts=0.0)]
    assert pick_entry(PATH, entries, *sizes, None, "bank")["horizon"] == horizon


def test_the_number_of_actions_counts_too():
    entries = [entry(n_actions=4), entry(n_actions=20)]
    assert [pick_entry(PATH, entries, 500, n, None, "bank")["n_actions"] for n in (2, 8, 9, 100)] == [4, 4, 20, 20]


def test_contexts_are_the_named_ones_or_the_models_own_or_all_that_there_is():
    entries = [entry(), entry(contexts=0.0)]
    assert pick_entry(PATH, entries, 500, 10, None, "bank")["contexts"] == "bank"
    assert pick_entry(PATH, entries, 500, 10, 0.0, "bank")["contexts"] == 0.0
    assert pick_entry(PATH, entries[1:], 500, 10, None, "bank")["contexts"] == 0.0
    message = "contexts must be among those in 'tuned.json', bank, 0.0, got 0.5: .* run gents-gym tune --contexts 0.5"
    with pytest.raises(InputError, match=message):
        pick_entry(PATH, entries, 500, 10, 0.5, "bank")
    with pytest.raises(InputError, match=r"contexts must be among those in 'tuned.json', bank, 0.0, got seen"):
        pick_entry(PATH, entries, 500, 10, None, "seen")


def test_a_folder_of_tune_stands_for_the_model_that_it_names(tmp_path):
    path = write(tmp_path)
    for model, tuned in ((tmp_path, None), (str(tmp_path), None), (None, tmp_path), (None, path)):
        assert find_tuned(model, tuned, "filter") == ("synthetic-filter", path)
    assert find_tuned("news-filter", tmp_path, "filter") == ("news-filter", path)
    assert find_tuned(None, None, "filter") == ("filter", None)


def test_a_file_brings_no_code(tmp_path):
    write(tmp_path, model="mine:Model(folder=x)")
    with pytest.raises(InputError, match=r"must name a model by its id or folder, never .*, got 'mine:M"):
        find_tuned(tmp_path, None, "filter")


def test_a_models_own_file_is_beside_it(tmp_path):
    folder = load_model("synthetic-filter").save_pretrained(tmp_path / "mine")
    path = write(folder)
    assert find_tuned(folder, None, "filter") == (folder, None)
    assert tuned_files(folder, None) == [folder / "config.json", folder / "model.safetensors", path]
    assert tuned_files(folder, PATH)[-1] == PATH


def damaged(path):
    path.write_bytes(path.read_bytes().replace(b'"greedy"', b'"ts-gen"'))


def cut(path):
    path.write_bytes(path.read_bytes()[:40])


def other_format(path):
    path.write_text(path.read_text().replace("gents_gym.tuned.1", "gents_gym.tuned.9"))


def other_shape(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "entries": [{"horizon": "long"}]}))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (Path.unlink, "no agent is tuned in '.*tuned.json': run `gents-gym tune --model .* --out FOLDER`, and name it"),
        (damaged, "tuned.json' is damaged: it does not match its sha256"),
        (cut, "must be a whole file of gents-gym tune"),
        (other_format, "its format is 'gents_gym.tuned.9', not 'gents_gym.tuned.1'"),
        (other_shape, r"must be a whole file of gents-gym tune \(it\['entries'\]\[0\]"),
    ],
)
def test_files_that_are_not_whole(tmp_path, harm, message):
    path = write(tmp_path)
    harm(path)
    with pytest.raises(InputError, match=message):
        read_tuned(path)


def test_a_folder_without_a_model():
    with pytest.raises(InputError, match=r"must be a model's folder with a model\.safetensors"):
        weights_sha256(Path("nowhere"))
