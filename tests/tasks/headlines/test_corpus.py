"""The bundled corpus keeps what its page promises, and damage is told by name."""

import json
import pickle
import shutil

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
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
        (lambda text: text[:-40], "is damaged: its manifest and files do not agree"),
        (lambda text: text.replace("gents_gym.news.1", "gents_gym.news.9"), r"has the format 'gents_gym.news.9', but"),
        (lambda text: json.dumps({"format": "gents_gym.news.1"}), r"is damaged: .*KeyError\('sha256'\)"),
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
