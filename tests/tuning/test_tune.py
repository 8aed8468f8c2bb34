import numpy as np
import pytest

import gents_gym
from gents_gym.checks import InputError
from gents_gym.evaluation.cell import play
from gents_gym.models.load import load_model
from gents_gym.models.tuned import read_tuned
from gents_gym.tuning import tune as module
from gents_gym.tuning.config import TuneConfig
from gents_gym.tuning.tune import tune

SMALL = {"horizon": 8, "n_actions": 3, "tasks": 7, "block": 2, "contexts": 0.5}
CONFIG = TuneConfig(**SMALL, candidates=("greedy", "softmax(temperature=5.0)", "epsilon-greedy(epsilon=1.0)"))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A whole run, and the progress that it reported."""
    told, folder = [], tmp_path_factory.mktemp("tuned")
    entry, path = tune(CONFIG, folder, workers=1, on_progress=told.append)
    return entry, path, told


def test_the_better_candidates_play_on_and_the_best_is_chosen(done):
    entry, path, told = done
    assert [(rung["tasks"], len(rung["agents"])) for rung in entry["rungs"]] == [(4, 3), (7, 2)]
    assert entry["agent"] == "greedy"
    assert {"horizon": 8, "n_actions": 3, "contexts": 0.5}.items() <= entry.items()
    assert read_tuned(path)["entries"] == [entry]
    assert (told[0].over, told[-1].over, told[-1].total, told[-1].share) == (0, 10, 10, 1)
    assert [now.over for now in told] == sorted(now.over for now in told)


def test_the_evidence_is_what_an_evaluation_finds(done):
    """Each candidate's numbers, from a rollout of the same tasks by hand."""
    entry, _, _ = done
    distribution = gents_gym.make_tasks("imagined", horizon=8, n_actions=3, contexts=0.5)
    for rung in entry["rungs"]:
        for spec, found in rung["agents"].items():
            envs = gents_gym.BanditVectorEnv(distribution, rung["tasks"], split="validation", autoreset_mode="Disabled")
            regrets = gents_gym.rollout(envs, spec).regret["expected"].sum(axis=1)
            assert found["mean"] == pytest.approx(regrets.mean(), rel=1e-5)
            assert found["quantile"] == pytest.approx(np.quantile(regrets, 0.95), rel=1e-5)


def test_what_was_tuned_is_played(done):
    _, path, _ = done
    envs = gents_gym.BanditVectorEnv(gents_gym.make_tasks("synthetic", horizon=8), 2, autoreset_mode="Disabled")
    same = [gents_gym.rollout(envs, agent).actions for agent in ("greedy", f"auto(tuned='{path}')")]
    assert np.array_equal(*same)


def test_a_killed_run_goes_on_and_ends_with_the_same_choice(done, tmp_path, monkeypatch):
    whole, path, _ = done
    evaluate, calls = module.evaluate, []

    def stop(config, *given, **options):
        calls.append(config)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(config, *given, **options)

    monkeypatch.setattr(module, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        tune(CONFIG, tmp_path, workers=1)
    assert not (tmp_path / "tuned.json").exists()
    cells = files(tmp_path)
    assert len(cells) == 6 + 1  # and the results of the first rung
    told = []
    assert tune(CONFIG, tmp_path, workers=1, on_progress=told.append)[0] == whole
    assert told[0].over == 6  # the first rung was not played again
    assert files(tmp_path) == files(path.parent)
    assert (tmp_path / "tuned.json").read_bytes() == path.read_bytes()


def test_a_model_of_ones_own_is_tuned_in_its_folder(tmp_path):
    folder = load_model("synthetic-filter").save_pretrained(tmp_path / "mine")
    _, path = tune(TuneConfig(str(folder), **SMALL, candidates=("greedy",)), workers=1)
    assert path == folder / "tuned.json"
    assert gents_gym.make_agent("auto", model=str(folder)).weight_files[-1] == path
    load_model(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"out must be given for a bundled model \(--out FOLDER\), got none for 'synthetic-filter'"),
        ({"model": "filter"}, "model must be one of .* got the preset 'filter'"),
        ({"model": "exact"}, "model must have weights to load, got 'exact', which is made for"),
        ({"n_actions": 300}, "n_actions must be at most 200, the training actions that the model keeps, got 300"),
        (
            {"candidates": ("ts-gen(policy=least-squares, m=2, contexts=given)",)},
            r"agent .ts-gen\(.* cannot play .gents_gym/Imagined-v0\(.*: contexts must be 'bank' or 'seen' for tasks",
        ),
    ],
)
def test_bad_input(tmp_path, options, message):
    config = TuneConfig(**{**SMALL, "candidates": ("greedy",), **options})
    with pytest.raises(InputError, match=message):
        tune(config, tmp_path / "out" if "n_actions" in options or "candidates" in options else None, workers=1)
    assert not any(tmp_path.iterdir())


def test_default_candidates_are_those_that_can_play(tmp_path, monkeypatch):
    """The paper's model has no variances, which Bayes-UCB needs."""
    monkeypatch.setattr("gents_gym.registry.TUNED", ("greedy", "bayes-ucb", "softmax"))
    entry, _ = tune(TuneConfig("synthetic-paper", **{**SMALL, "tasks": 2}), tmp_path / "out", workers=1)
    assert {*entry["rungs"][0]["agents"]} == {"greedy", "softmax"}
    named = TuneConfig("synthetic-paper", **SMALL, candidates=("greedy", "bayes-ucb"))
    with pytest.raises(InputError, match=r"agent .bayes-ucb.* cannot play .*: model must give variances"):
        tune(named, tmp_path / "other", workers=1)


def test_a_model_of_a_class_of_ones_own(tmp_path):
    """The class is named by the user alone: the file names the folder."""
    folder = load_model("synthetic-filter").save_pretrained(tmp_path / "mine")
    model = f"gents_gym.models.filter:FilterModel(folder='{folder}')"
    entry, path = tune(TuneConfig(model, **SMALL, candidates=("greedy",)), workers=1)
    assert model[:20] in entry["env"]
    assert read_tuned(path)["model"]["name"] == str(folder)
    assert gents_gym.make_agent("auto", model=model).weight_files[-1] == path


def test_a_model_without_training_actions(tmp_path):
    model = load_model("synthetic-filter")
    model.action_bank = model.action_bank[:0]
    folder = model.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="model must keep training data to draw from in its action_bank, got none"):
        tune(TuneConfig(str(folder), **SMALL, candidates=("greedy",)), workers=1)


def test_a_candidate_that_fails_in_play_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("gents_gym.agents.greedy.Greedy.act", lambda *_: 1 / 0)
    monkeypatch.setattr("gents_gym.evaluation.harness._play_all", lambda cells, *_: (play(cell) for cell in cells))
    with pytest.raises(InputError, match=r"agent .greedy.* failed on .* ZeroDivisionError.*; what was played stays"):
        tune(TuneConfig(**SMALL, candidates=("greedy",)), tmp_path, workers=1)
