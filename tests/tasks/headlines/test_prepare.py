"""Preparing a corpus: splits, normalisation and projection by hand, killed runs, bad input."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from gents_gym import InputError
from gents_gym.experiments.catalogue import EXPERIMENTS
from gents_gym.experiments.places import SCALES, Scale, find_place
from gents_gym.experiments.trained import train_missing
from gents_gym.tasks.headlines import prepare as module
from gents_gym.tasks.headlines.corpus import load_corpus
from gents_gym.tasks.headlines.grammar import invent
from gents_gym.tasks.headlines.models import Classifier, Encoder, Source
from gents_gym.tasks.headlines.prepare import PrepareConfig, fit_projection, predictability, prepare, split

HEADLINES = invent(200, seed=9)


@pytest.fixture
def config(tiny, tmp_path, monkeypatch):
    """200 headlines as a plain file, the tiny models, and parts of 64."""
    monkeypatch.setattr(module, "PART", 64)
    path = tmp_path / "headlines.txt"
    path.write_text("\n".join(HEADLINES) + "\n")
    folders = {kind: str(folder) for kind, folder in tiny[0].items()}
    return PrepareConfig(path, **folders, dimensions=3)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_written_is_what_the_models_say(config, tiny, tmp_path):
    corpus = prepare(config, tmp_path / "out")
    assert corpus.texts.tolist() == HEADLINES
    train = corpus.splits["train"]
    assert [len(corpus.splits[name]) for name in ("train", "validation", "test")] == [120, 30, 50]
    raw = np.stack(
        [
            Classifier("sentiment", config.sentiment, "positive", Source())(HEADLINES),
            Classifier("formality", config.formality, "formal", Source())(HEADLINES),
        ],
        axis=1,
    )
    expected = (raw - raw[train].mean(axis=0)) / raw[train].std(axis=0)
    assert np.allclose(corpus.scores, expected, atol=2e-3)
    assert np.allclose(corpus.scores[train].mean(axis=0), 0, atol=1e-5)
    assert np.allclose(corpus.scores[train].std(axis=0), 1, atol=1e-5)
    embeddings = Encoder(config.encoder, Source())(HEADLINES).astype(np.float64)
    _, _, axes = np.linalg.svd(embeddings[train] - embeddings[train].mean(axis=0), full_matrices=False)
    plain = (embeddings - embeddings[train].mean(axis=0)) @ axes[:3].T
    plain /= np.sqrt(plain[train].var(axis=0).mean())
    signs = np.sign((plain * corpus.embeddings).sum(axis=0))
    assert np.allclose(corpus.embeddings, plain * signs, atol=5e-3)


def test_files_and_manifest(config, tmp_path):
    out = tmp_path / "out"
    corpus = prepare(replace(config, about="a test"), out)
    assert content(out).keys() == {"headlines.parquet", "embeddings.safetensors", "manifest.json"}
    table = pq.read_table(out / "headlines.parquet")
    assert table.column_names == ["headline", "split", "sentiment", "formality"]
    assert load_file(out / "embeddings.safetensors")["embeddings"].dtype == np.float16
    told = json.loads((out / "manifest.json").read_text())
    assert told["about"] == "a test"
    assert told["sizes"] == {"train": 120, "validation": 30, "test": 50}
    assert told["plan"]["rows"] == {"rows": 200, "empty": 0, "repeated": 0}
    assert told["space"] == corpus.space
    assert told["correlation"] == pytest.approx(np.corrcoef(corpus.scores[corpus.splits["train"]].T)[0, 1], abs=1e-6)


def test_the_environment_plays_it(config, tmp_path):
    prepare(config, tmp_path / "out")
    env = gym.make("gents_gym/News-v0", corpus=str(tmp_path / "out"), horizon=5)
    observation, info = env.reset(seed=0)
    assert observation["action_features"].shape == (10, 3)
    assert set(info["texts"]) <= set(HEADLINES)


def test_the_command_for_mind_on_the_page_prepares_a_file_of_its_form(config, tmp_path, monkeypatch, run_command):
    """Eight columns that tabs separate, no header; the paper's models are replaced by tiny ones."""
    page = (Path(__file__).parents[3] / "docs" / "news.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^gents-gym (news prepare .*--pooling cls .*)$", page, re.MULTILINE)
    words = shlex.split(line)
    small = {"--train": 120, "--validation": 30}
    small |= {f"--{kind}": getattr(config, kind) for kind in ("encoder", "sentiment", "formality")}
    for option, value in small.items():
        words[words.index(option) + 1] = value
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MINDlarge_train").mkdir()
    rows = [f"N{i}\tnews\tworld\t{text}\tAn abstract\thttps://x/{i}\t[]\t[]\n" for i, text in enumerate(HEADLINES)]
    (tmp_path / "MINDlarge_train" / "news.tsv").write_text("".join(rows))
    assert run_command(*words) == 0
    corpus = load_corpus(tmp_path / "mind")
    assert corpus.texts.tolist() == HEADLINES
    assert corpus.manifest["sizes"] == {"train": 120, "validation": 30, "test": 50}
    assert corpus.manifest["plan"]["config"]["pooling"] == "cls"


def test_the_recipe_for_mind_runs_from_the_file_to_the_figures(config, tmp_path, monkeypatch, run_command, capfd):
    """The commands on the page, at a tiny scale; the paper's models are replaced by tiny ones."""
    page = (Path(__file__).parents[3] / "docs" / "reproduce.md").read_text().replace("\\\n", " ")
    other = (Path(__file__).parents[3] / "docs" / "news.md").read_text().replace("\\\n", " ")
    prepared, played, again = re.findall(r"^ *gents-gym (.* mind .*)$", page, re.MULTILINE)
    assert f"gents-gym {prepared}\n" in other  # the test above runs it
    monkeypatch.setitem(SCALES, "paper", Scale(2, 8, 3, timed=1, training=110, rows=30, epochs=1, validation=20))
    monkeypatch.setattr("gents_gym.training.context_map.MAP_STEPS", 5)  # of the start: not what is tested
    monkeypatch.chdir(tmp_path)
    prepare(replace(config, train=120, validation=30, pooling="cls"), tmp_path / "mind")
    words = shlex.split(played.replace("$name", "softmax"))
    assert run_command(*words, "--workers", "1") == 0
    assert "training news-filter: learning rate 0.005, epoch 1 of 1" in capfd.readouterr().err
    out = tmp_path / "results" / "mind"
    assert "(headlines of mind)" in (out / "softmax.md").read_text()
    assert sorted(path.name for path in (out / "models").iterdir()) == ["news-filter", "news-literal", "news-paper"]
    monkeypatch.setattr("gents_gym.experiments.trained.train_to_folder", None)  # what is there is not trained again
    place = find_place("news", SCALES["paper"], Path("mind"), (), Path("results/mind/models"))
    train_missing(EXPERIMENTS["softmax"](place, SCALES["paper"]), place, SCALES["paper"])
    assert run_command(*shlex.split(again.replace("main", "softmax")), "--workers", "1") == 0
    assert "--seed 1 --models results/mind/models" in (tmp_path / "results/mind-seed1/softmax.md").read_text()


class KilledError(Exception):
    """Stands for a kill between two parts."""


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(config, tmp_path, monkeypatch):
    prepare(config, tmp_path / "whole")

    def kill(done, total):
        if done == 128:
            raise KilledError

    with pytest.raises(KilledError):
        prepare(config, tmp_path / "killed", kill)
    (tmp_path / "killed" / "parts" / "000000064.safetensors").write_bytes(b"damaged by a full disk")
    calls = []
    embed = Encoder.__call__
    monkeypatch.setattr(Encoder, "__call__", lambda self, texts: calls.append(len(texts)) or embed(self, texts))
    prepare(config, tmp_path / "killed")
    assert calls == [1, 64, 64, 8]  # a trial, the damaged part, and what was missing
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
    prepare(config, tmp_path / "killed")
    assert len(calls) == 4  # a finished corpus is left as it is
    with pytest.raises(InputError, match="out must be a new or empty folder, got"):
        prepare(replace(config, dimensions=2), tmp_path / "killed")


@pytest.mark.parametrize(
    "change",
    [
        lambda part: {"embeddings": part["embeddings"][:-1], "scores": part["scores"]},
        lambda part: {"embeddings": part["embeddings"][:, :-1], "scores": part["scores"]},
        lambda part: {"embeddings": part["embeddings"]},
        lambda part: {"embeddings": part["embeddings"], "scores": part["scores"] * np.nan},
        lambda part: {**part, "more": part["scores"]},
    ],
)
def test_a_part_that_is_not_whole_is_computed_again(config, tmp_path, change):
    prepare(config, tmp_path / "whole")

    def kill(done, total):
        if done == 128:
            raise KilledError

    with pytest.raises(KilledError):
        prepare(config, tmp_path / "killed", kill)
    path = tmp_path / "killed" / "parts" / "000000064.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in change(load_file(path)).items()}, path)
    prepare(config, tmp_path / "killed")
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_planted_link_is_not_followed(config, tmp_path):
    def kill(done, total):
        raise KilledError

    with pytest.raises(KilledError):
        prepare(config, tmp_path / "out", kill)
    shutil.rmtree(tmp_path / "out" / "parts")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "parts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"parts' must be a folder, got a link"):
        prepare(config, tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("plan", [b"{", b"[" * 100_000, b"[]", b"3", b'{"config": []}'])
def test_a_damaged_plan(config, tmp_path, plan):
    (tmp_path / "run.json").write_bytes(plan)
    with pytest.raises(InputError, match=r"out must (be new, or )?hold a run"):
        prepare(config, tmp_path)


def test_another_run_in_the_same_folder_is_refused(config, tmp_path):
    def kill(done, total):
        raise KilledError

    with pytest.raises(KilledError):
        prepare(config, tmp_path / "out", kill)
    with pytest.raises(InputError, match=r"a run of this configuration to continue, got .* with another dimensions"):
        prepare(replace(config, dimensions=2), tmp_path / "out")
    config.headlines.write_text("\n".join(HEADLINES[::-1]))
    with pytest.raises(InputError, match="with another headlines"):
        prepare(config, tmp_path / "out")


def test_an_unfinished_run_goes_on_with_its_models_alone(config, tmp_path, monkeypatch):
    def kill(done, total):
        raise KilledError

    with pytest.raises(KilledError):
        prepare(config, tmp_path / "out", kill)
    embed = Encoder.__call__
    monkeypatch.setattr(Encoder, "__call__", lambda self, texts: embed(self, texts) + np.float32(0.1))
    with pytest.raises(InputError, match="must be the models that the unfinished run began with, got others: remove"):
        prepare(config, tmp_path / "out")


def test_a_folder_has_one_writer(config, tmp_path):
    def second(done, total):
        with pytest.raises(InputError, match="out must have one writer at a time"):
            prepare(config, tmp_path / "out")

    assert len(prepare(config, tmp_path / "out", second)) == 200


def test_splits_are_disjoint_and_do_not_depend_on_the_order():
    names = split(HEADLINES, None, None, 0)
    assert [names.count(name) for name in ("train", "validation", "test")] == [120, 30, 50]
    again = split(HEADLINES[::-1], None, None, 0)
    assert again[::-1] == names
    assert split(HEADLINES, None, None, 1) != names
    counted = split(HEADLINES, 100, 0.2, 0)
    assert [counted.count(name) for name in ("train", "validation", "test")] == [100, 40, 60]


def test_files_of_mind_s_size_get_the_paper_s_split():
    names = split([str(i) for i in range(104_000)], None, None, 0)
    assert [names.count(name) for name in ("train", "validation", "test")] == [20_000, 10_000, 74_000]


def test_another_corpus_can_share_the_space(config, tmp_path):
    first = prepare(config, tmp_path / "first")
    second = prepare(replace(config, dimensions=None, space=str(tmp_path / "first"), seed=5), tmp_path / "second")
    own = prepare(replace(config, seed=5), tmp_path / "own")
    assert second.space == first.space != own.space
    assert np.array_equal(second.embeddings, first.embeddings)
    shutil.rmtree(tmp_path / "first")
    (tmp_path / "own").rename(tmp_path / "first")  # another space under the old name
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        prepare(replace(config, dimensions=None, space=str(tmp_path / "first"), seed=5), tmp_path / "second")
    with pytest.raises(
        InputError, match=r"pooling must be 'mean', as that of the corpus '.*first' whose .*, got 'cls'"
    ):
        prepare(replace(config, dimensions=None, space=str(tmp_path / "first"), pooling="cls"), tmp_path / "third")
    with pytest.raises(InputError, match="dimensions must be left out if space is given, got 3"):
        prepare(replace(config, space=str(tmp_path / "first")), tmp_path / "third")
    with pytest.raises(InputError, match="encoder must be 'minilm', as that of the corpus 'bundled'"):
        prepare(replace(config, dimensions=None, space="bundled"), tmp_path / "third")


def test_all_dimensions_are_kept_unturned():
    rows = np.random.default_rng(0).normal(2, 3, (50, 4)).astype(np.float32)
    kept = fit_projection(rows, None).apply(rows)
    centred = rows - rows.mean(axis=0)
    assert np.allclose(kept, centred / np.sqrt(centred.var(axis=0).mean()), atol=1e-5)


def test_predictability_is_the_r2_of_new_rows():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(4000, 5)), rng.normal(size=4000)
    assert predictability(x, x[:, 0]) > 0.999
    assert predictability(x, x[:, 0] + noise) == pytest.approx(0.5, abs=0.05)
    assert abs(predictability(x, noise)) < 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": 190}, "the split 'test' must have at least 20 headlines, got -20 of 200"),
        (
            {"validation": 0.01},
            "the split 'validation' must have at least 20 headlines, got 2 of 200: give more headlines",
        ),
        ({"train": -1.0}, "train must be above 0, got -1.0"),
        ({"dimensions": 0}, "dimensions must be at least 1, got 0"),
        ({"dimensions": 121}, "dimensions must be at most the 120 training headlines, got 121"),
        ({"dimensions": 9}, "dimensions must be at most the encoder's 8, got 9"),
        ({"sentiment_label": "joyful"}, "must have the label 'joyful'"),
        ({"space": "/no/where", "dimensions": None}, "corpus must be a folder that"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_bad_configurations(config, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        prepare(replace(config, **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_scores_that_do_not_vary(config, tmp_path, monkeypatch):
    monkeypatch.setattr(module.score, "sentiment", lambda texts: np.zeros(len(texts)))
    with pytest.raises(
        InputError, match="sentiment must vary over the training headlines, got a standard deviation of 0"
    ):
        prepare(replace(config, sentiment="vader"), tmp_path / "out")


def test_offline_scores_are_used_by_name(config, tmp_path):
    corpus = prepare(replace(config, sentiment="vader", formality="f-score"), tmp_path / "out")
    raw = module.score.sentiment(HEADLINES)
    found = corpus.manifest["scores"]["sentiment"]
    assert found["mean"] == pytest.approx(raw[corpus.splits["train"]].mean())
    assert found["share_of_commonest_value"] == pytest.approx((raw == 0).mean())
    assert load_corpus(tmp_path / "out") is corpus
