"""Places: a user's corpus and models, what is refused before anything is played, and how models are trained."""

import shutil
from pathlib import Path

import pytest

from gents_gym import InputError
from gents_gym.construct import parse_spec
from gents_gym.experiments import places
from gents_gym.experiments.catalogue import EXPERIMENTS
from gents_gym.experiments.places import SCALES, Scale, find_place, find_recipe, on, training_label
from gents_gym.experiments.reproduce import reproduce
from gents_gym.experiments.trained import needed_models, plan_training
from gents_gym.tasks.headlines.corpus import BUNDLED

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
    names = {name for make in EXPERIMENTS.values() for name in needed_models(make(place, SCALES["paper"]))}
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
    assert {*needed_models(EXPERIMENTS["main"](place, TINY))} == {*place.given}
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
    shutil.copytree(places.model_folders("news-paper")[0], tmp_path / "models" / "news-paper")
    with pytest.raises(InputError, match="news-paper' holds another training: give another out, or name it among"):
        reproduce("softmax", tmp_path, setting="news", corpus=BUNDLED)


def test_a_model_says_how_much_it_was_trained():
    assert training_label("news-literal") == "20,000 actions, 1,600 steps, rate 0.001"
    assert training_label("synthetic-paper") == "10,000 actions, 2,000 steps, rate 0.01"  # 100 epochs of 20 batches
    assert training_label("exact") == ""
