"""Tests that the bundled corpus is as its page says, and that damaged files are named."""

import json
import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from gents_gym import InputError
from gents_gym.seals import BLANK, seal, sha256
from gents_gym.tasks.headlines.corpus import BUNDLED, TEXTS, VECTORS, load_corpus
from gents_gym.tasks.headlines.grammar import invent
from gents_gym.tasks.headlines.prepare import predictability


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(BUNDLED, tmp_path / "copy")


def test_the_bundled_corpus_is_small_synthetic_and_without_duplicates():
    corpus = load_corpus()
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 4_000_000
    assert "synthetic text" in corpus.manifest["about"]
    assert "synthetic" in (BUNDLED / "README.md").read_text()
    assert len(corpus) == 16_000
    assert len({text.casefold() for text in corpus.texts}) == len(corpus)
    assert corpus.texts.tolist() == invent(len(corpus))


def test_splits_are_disjoint_and_whole():
    corpus = load_corpus()
    rows = np.concatenate(list(corpus.splits.values()))
    assert np.array_equal(np.sort(rows), np.arange(len(corpus)))
    assert {name: len(part) / len(corpus) for name, part in corpus.splits.items()} == {
        "train": 0.6, "validation": 0.15, "test": 0.25,
    }  # fmt: skip


def test_scores_are_normalised_nearly_uncorrelated_and_predictable_but_not_linear():
    corpus = load_corpus()
    train = corpus.splits["train"]
    scores = corpus.scores[train].astype(np.float64)
    assert np.allclose(scores.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(scores.std(axis=0), 1, atol=1e-4)
    assert abs(np.corrcoef(scores.T)[0, 1]) < 0.2
    for i, name in enumerate(("sentiment", "formality")):
        found = predictability(corpus.embeddings[train], scores[:, i])
        assert 0.6 < found < 0.95
        assert found == pytest.approx(corpus.manifest["scores"][name]["ridge_r2"], abs=1e-3)


def test_it_is_read_once_and_pickles_as_a_folder(copy):
    corpus = load_corpus(copy)
    assert load_corpus(str(copy)) is corpus
    assert len(pickle.dumps(corpus)) < 500
    assert pickle.loads(pickle.dumps(corpus)) is corpus
    with pytest.raises(ValueError, match="read-only"):
        corpus.embeddings[0] = 0


@pytest.mark.parametrize("name", ["headlines.parquet", "embeddings.safetensors"])
def test_damage_is_told_by_name(copy, name):
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    with pytest.raises(InputError, match=f"is damaged: {name} does not match its sha256 in manifest.json"):
        load_corpus(copy)
    (copy / name).unlink()
    with pytest.raises(InputError, match=rf"is damaged: {name} cannot be read \(No such file"):
        load_corpus(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-40], "is damaged: its manifest.json and files do not agree"),
        (
            lambda text: text.replace("gents_gym.news.1", "gents_gym.news.9"),
            "of the format 'gents_gym.news.9', but",
        ),
        (lambda text: json.dumps({"format": "gents_gym.news.1"}), "is damaged: .*it lacks 'about'"),
        (lambda text: "[]", "is damaged: "),
    ],
)
def test_damaged_manifests(copy, change, message):
    path = copy / "manifest.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=message):
        load_corpus(copy)


def test_a_folder_without_a_corpus(tmp_path):
    with pytest.raises(
        InputError, match=r"`gents-gym news prepare` has finished, got '.*' without a readable manifest.json"
    ):
        load_corpus(tmp_path)


def forge(folder, name, change):
    """Change one of a corpus's files, with right hashes."""
    path, manifest = folder / name, json.loads((folder / "manifest.json").read_text())
    if name == TEXTS:
        pq.write_table(change(pq.read_table(path)), path)
    elif name == VECTORS:
        save_file({key: np.ascontiguousarray(value) for key, value in change(load_file(path)).items()}, path)
    else:
        manifest = change(manifest)
    if isinstance(hashes := manifest["sha256"], dict):
        hashes |= {part: sha256((folder / part).read_bytes()) for part in (TEXTS, VECTORS)} | {"manifest.json": BLANK}
    (folder / "manifest.json").write_bytes(seal(json.dumps(manifest).encode()))


FORGED = {
    "fewer embeddings than texts": (VECTORS, lambda all: {**all, "embeddings": all["embeddings"][:-1]}),
    "embeddings of another width": (VECTORS, lambda all: {**all, "embeddings": all["embeddings"][:, :-1]}),
    "embeddings that are no numbers": (VECTORS, lambda all: {**all, "embeddings": all["embeddings"] * np.nan}),
    "no embeddings": (VECTORS, lambda all: {"center": all["center"], "basis": all["basis"]}),
    "another center": (VECTORS, lambda all: {**all, "center": all["center"] + 1}),
    "a basis of another size": (VECTORS, lambda all: {**all, "basis": all["basis"][:-1]}),
    "no sentiment": (TEXTS, lambda table: table.drop_columns("sentiment")),
    "sentiments that are texts": (TEXTS, lambda table: table.set_column(2, "sentiment", table["headline"])),
    "gaps": (TEXTS, lambda table: table.set_column(0, "headline", pa.array([None] * len(table), pa.string()))),
    "headlines that are numbers": (TEXTS, lambda table: table.set_column(0, "headline", table["sentiment"])),
    "another split": (TEXTS, lambda table: table.set_column(1, "split", pa.array(["x"] * len(table)))),
    "fewer texts": (TEXTS, lambda table: table.slice(1)),
    "no sizes": ("manifest.json", lambda manifest: {**manifest, "sizes": []}),
    "no dimensions": ("manifest.json", lambda manifest: {**manifest, "dimensions": 0}),
    "a plan that is no mapping": ("manifest.json", lambda manifest: {**manifest, "plan": 3}),
    "a plan without its encoder": (
        "manifest.json",
        lambda manifest: {**manifest, "plan": {**manifest["plan"], "config": {}}},
    ),
    "hashes that are no mapping": ("manifest.json", lambda manifest: {**manifest, "sha256": "x"}),
    "more than there is": ("manifest.json", lambda manifest: {**manifest, "code": "os:system"}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_with_right_hashes(copy, name):
    forge(copy, *FORGED[name])
    with pytest.raises(InputError, match=r"corpus '.*' is damaged: its manifest.json and files do not agree \("):
        load_corpus(copy)


def test_what_is_no_file_and_no_path(copy):
    (copy / VECTORS).unlink()
    os.mkfifo(copy / VECTORS)
    with pytest.raises(InputError, match="must be a regular file, got"):
        load_corpus(copy)
    with pytest.raises(InputError, match="corpus must be a path, got 3"):
        load_corpus(3)
