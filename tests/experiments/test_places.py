"""Places: a user's corpus and models, what is refused before anything is played, and how models are trained."""

import shutil
from pathlib import Path

import pytest

from gents_gym import InputError, load_model
from gents_gym.construct import parse_spec
from gents_gym.experiments import places
from gents_gym.experiments.catalogue import EXPERIMENTS
from gents_gym.experiments.places import SCALES, Scale, find_place, find_recipe, on, training_label
from gents_gym.experiments.reproduce import reproduce
from gents_gym.experiments.trained import holds_training, plan_training, training_source
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
from gents_gym.training.config import plain_config

TINY = Scale(tasks=2, horizon=8, actions=3)


def test_specs_quote_what_is_no_word():
    assert on("my models/a b", "greedy") == "greedy(model='my models/a b')"
    assert parse_spec(on("my models/a b", "ts-gen"))[1] == {"model": "my models/a b", "policy": "logistic"}
    assert on("mine:Model(folder=x)", "greedy") == "greedy(model=mine:Model(folder=x))"


def test_a_corpus_has_models_of_its_own():
    place = find_place("news", SCALES["paper"], BUNDLED, (), Path("out"))
    assert place.spec(500) == f"gents_gym/News-v0(corpus={str(BUNDLED)!r})"
    assert place.spec(200).endswith(", horizon=200)")
    assert place.series["filter"] == {
        100: "out/news-filter-100",
        1000: "out/news-filter-1000",
        9600: "out/news-filter",
    }
    names = {name for make in EXPERIMENTS.values() for name in make(place, SCALES["paper"]).needed}
    assert {Path(name).parent for name in names} == {Path("out")}
    steps = {}
    for name in names:
        config, actions = plan_training(name, place, SCALES["paper"])
        steps.setdefault(config.preset, set()).add(config.epochs * -(-actions // config.batch))
        assert actions == (find_recipe(name).actions or 9600)
        assert config.model.get("hidden_layers") == find_recipe(name).sizes.get("hidden_layers")
    for found in steps.values():
        assert max(found) - min(found) < 0.02 * max(found)  # as many gradient steps for all


def test_given_models_take_the_place_of_all_others():
    place = find_place("news", TINY, None, ("news-filter-100", "news-filter", "news-paper"), Path("out"))
    assert place.series == {"filter": {100: "news-filter-100", 10_000: "news-filter"}, "paper": {10_000: "news-paper"}}
    assert EXPERIMENTS["main"](place, TINY).needed == place.given
    assert place.whole == 10_000  # fitted priors learn from as many actions as the largest of the models
    assert find_place("news", TINY, None, ("news-literal", "news-filter-100"), Path("out")).whole == 20_000
    assert find_place("news", TINY, None, ("news-filter-1000", "news-filter-100"), Path("out")).whole == 1000
    with pytest.raises(InputError, match=r"models must have heads with hidden layers .*, got 'news-filter-100'"):
        EXPERIMENTS["simpler-models"](place, TINY)
    heads = find_place("synthetic", TINY, None, ("synthetic-paper", "synthetic-paper-layers1"), Path("out")).heads
    assert heads == {1: "synthetic-paper-layers1", 3: "synthetic-paper"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ("synthetic-filter",)}, r"models must be of the setting that is played, got 'synthetic-filter': "),
        ({"models": ("filter",)}, r"models must be of the setting .*, got 'filter': model must be one of "),
        ({"models": ("nothing",)}, r"models must be of the setting .*, got 'nothing': unknown model"),
        ({"models": ("news-paper", "news-paper")}, r"models must differ from each other, got news-paper news-paper"),
        ({"corpus": "nowhere"}, r"corpus must be a folder that `gents-gym news prepare` has finished, got 'nowhere'"),
        ({"corpus": BUNDLED, "setting": "synthetic"}, r"corpus must be given with the setting news, got 'synthetic'"),
        ({"seed": -1}, r"seed must be .*, got -1"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        reproduce("main", "out", **{"setting": "news", **options})
    assert not list(tmp_path.iterdir())


def test_a_corpus_without_headlines_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "FEWEST", 10_000)
    with pytest.raises(InputError, match="at least 10000 training headlines to train models on, got 9600: "):
        reproduce("main", tmp_path / "out", setting="news", corpus=BUNDLED)
    monkeypatch.undo()
    monkeypatch.setitem(SCALES, "small", Scale(2, 8, 3, training=100))
    with pytest.raises(InputError, match="must have models of one preset and several numbers of actions"):
        reproduce("loss-vs-regret", tmp_path / "out", setting="news", corpus=BUNDLED)
    assert not list(tmp_path.iterdir())


def test_another_training_in_the_folder_is_refused(tmp_path):
    shutil.copytree(places.model_folders("news-literal")[0], tmp_path / "models" / "news-literal")
    with pytest.raises(InputError, match="news-literal' holds another training: give another out, or name it among"):
        reproduce("softmax", tmp_path, setting="news", corpus=BUNDLED)


def test_a_training_on_other_headlines_is_another_one(tmp_path):
    place = find_place("news", TINY, BUNDLED, (), tmp_path)
    config, actions = plan_training("news-filter", place, TINY)
    source = training_source(place, TINY, config)
    notes = {"config": plain_config(config), "actions": {"training": actions}, "source": source}
    load_model("news-filter").save_pretrained(tmp_path, notes)
    assert holds_training(tmp_path, config, actions, source)
    manifest = load_corpus().manifest
    assert all(manifest["sha256"][name][:12] in source for name in ("headlines.parquet", "embeddings.safetensors"))
    with pytest.raises(InputError, match="holds another training"):
        holds_training(tmp_path, config, actions, source.replace("headlines ", "headlines 0"))


def test_a_model_says_how_much_it_was_trained():
    assert training_label("news-literal") == "20,000 actions, 1,600 steps, rate 0.001"
    assert training_label("synthetic-paper") == "10,000 actions, 2,000 steps, rate 0.01"  # 100 epochs of 20 batches
    assert training_label("exact") == ""
