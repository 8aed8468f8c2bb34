"""A bit that flips in a file shows, wherever it is; files of earlier versions, without a sha256, load with a note."""

import json
import logging
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import gents_gym
from gents_gym import InputError, RowSets, load_model, preset_config, seals
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.load import WEIGHTS, bundled_models
from gents_gym.tasks.headlines import corpus, prepare
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
from gents_gym.tasks.synthetic import Synthetic

OLD = Path(__file__).parent / "fixtures" / "0.1.0"
ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(6), 5))
CONFIG = preset_config("filter", epochs=1, horizon=5, choose=False)


def keep_model(folder):
    FilterModel(FilterConfig(2, 3)).save_pretrained(folder, {"seed": 3})
    return lambda: load_model(folder)


def keep_state(folder):
    folder.mkdir()
    gents_gym.train(ROWS, ROWS, CONFIG, folder / "state.safetensors")
    return lambda: gents_gym.train(ROWS, ROWS, CONFIG, folder / "state.safetensors")


def keep_corpus(folder):
    shutil.copytree(BUNDLED, folder, ignore=shutil.ignore_patterns("*.md"))

    def read():
        corpus._load.cache_clear()
        load_corpus(folder)

    return read


def keep_part(folder):
    folder.mkdir()
    path = folder / "000000000.safetensors"
    prepare._save(path, {"embeddings": np.ones((4, 3), np.float32), "scores": np.ones((4, 2))})

    def read():
        if prepare._saved(path, 4) is None:
            raise InputError(f"'{path}' is computed again")

    return read


def flip(data, at, bit):
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.mark.parametrize(("keep", "count"), [(keep_model, 60), (keep_state, 30), (keep_part, 60), (keep_corpus, 4)])
def test_single_bit_flips_are_refused_with_the_files_name(tmp_path, keep, count):
    read = keep(tmp_path / "kept")
    read()
    pick = random.Random(0)
    for path in sorted((tmp_path / "kept").iterdir()):
        data = path.read_bytes()
        ends = min(len(data), 400)  # headers, where one bit may change what all others mean
        places = [pick.randrange(len(data)) for _ in range(count // 2)]
        for at in [*places, *(pick.randrange(ends) for _ in range(count // 2)), len(data) - 1]:
            path.write_bytes(flip(data, at, pick.randrange(8)))
            with pytest.raises(InputError) as found:
                read()
            assert path.name in str(found.value)
            assert len(str(found.value).splitlines()) == 1
        path.write_bytes(data)
        read()


def test_what_is_bundled_is_sealed(caplog):
    seals.note.cache_clear()
    for name in bundled_models():
        load_model(name)
        assert json.loads((WEIGHTS / name / "config.json").read_text())["sha256"].keys() == {
            "config.json",
            "model.safetensors",
        }
    assert load_corpus().manifest["sha256"].keys() == {"manifest.json", "headlines.parquet", "embeddings.safetensors"}
    assert not caplog.records


def test_old_files_load_with_one_note(caplog, tmp_path):
    seals.note.cache_clear()
    folder = shutil.copytree(BUNDLED, tmp_path / "corpus")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]["manifest.json"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            load_model(OLD / "model-filter")
            load_corpus(folder)
    paths = (OLD / "model-filter" / "config.json", folder / "manifest.json")
    rule = "has no sha256, like files of earlier versions, so damage would go unnoticed"
    assert [record.getMessage() for record in caplog.records] == [f"'{path}' {rule}" for path in paths]


def test_a_part_that_is_damaged_is_noted_by_name(caplog, tmp_path):
    keep_part(tmp_path / "kept")
    path = tmp_path / "kept" / "000000000.safetensors"
    path.write_bytes(flip(path.read_bytes(), -9, 0))
    assert prepare._saved(path, 4) is None
    assert caplog.records[-1].getMessage() == (
        f"'{path}' is not a whole part, and is computed again ('{path}' is damaged: it does not match its sha256)"
    )
