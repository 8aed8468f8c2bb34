"""Experiments at a tiny scale: pages, figures, resuming, other oracles; and the catalogue itself."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gents_gym import InputError, make_agent, make_tasks
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.evaluation.rollout import rollout
from gents_gym.evaluation.store import load_results
from gents_gym.experiments import reproduce as module
from gents_gym.experiments.catalogue import EXPERIMENTS
from gents_gym.experiments.pictures import regret_views
from gents_gym.experiments.places import SCALES, SETTINGS, Scale
from gents_gym.experiments.reproduce import reproduce
from gents_gym.experiments.timing import time_decisions
from gents_gym.models.load import WEIGHTS, bundled_models
from gents_gym.specs import parse_spec
from gents_gym.types import Resolves

TINY = Scale(tasks=3, horizon=12, actions=3, timed=2)
NAMES = ("main", "loss-vs-regret", "policy-class", "horizon", "simpler-models", "softmax", "timing", "exact-gap")
NAMES += ("ladder",)


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCALES, "small", TINY)
        yield


@pytest.fixture(scope="module")
def shared(tiny, tmp_path_factory):
    """The folder in which first horizon and then policy-class was played, and the cells of the first."""
    out = tmp_path_factory.mktemp("shared")
    reproduce("horizon", out, workers=1)
    played = set((out / "run50/cells").iterdir())
    reproduce("policy-class", out, workers=1)
    return out, played


@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_the_catalogue_names_what_exists(setting, size):
    assert tuple(EXPERIMENTS) == NAMES
    for experiment in (make(setting, size) for make in EXPERIMENTS.values()):
        assert len(set(experiment.agents)) == len(experiment.agents)
        for claim in experiment.claims:
            assert claim.weights.keys() <= {*(experiment.models if claim.measure == "loss" else experiment.agents)}
            assert claim.measure != "reward" or sum(claim.weights.values()) == 0  # the oracle falls out
        assert {*experiment.against, *experiment.losses.values()} <= {*experiment.agents}
        assert {*experiment.losses} <= {*experiment.models}
        assert {*experiment.needed} <= {*bundled_models(), *(setting.ladder if experiment.pairs else ())}
        for agent in (agent for agent in experiment.agents if "literal" not in agent):  # which may not be trained
            names_one = isinstance(make_agent(agent), Resolves) or agent.startswith(("exact-twin", "oracle"))
            assert ("policy=" in agent) == (names_one and "greedy=True" not in agent)


def says(name, setting="news"):
    """The sentences that an experiment tests, with the paper's sections, and the contrasts."""
    claims = EXPERIMENTS[name](SETTINGS[setting], SCALES["paper"]).claims
    return {(claim.section, claim.says) for claim in claims}, [claim.weights for claim in claims]


def test_what_the_paper_does_not_say_is_not_tested():
    assert says("simpler-models") == says("timing") == (set(), [])
    sentences, weights = says("softmax")
    assert [section for section, _ in sentences] == ["Softmax Sampling vs. Greedy"]
    presets = ("literal", "paper", "filter")  # the printed model too
    mlp = [f"ts-gen(model=news-{preset}, policy=mlp)" for preset in presets]
    assert weights == [
        {ours: 1, f"softmax(model=news-{preset})": -1} for ours, preset in zip(mlp, presets, strict=True)
    ]
    contrasts = says("main")[1]
    assert not any("softmax" in agent for contrast in contrasts for agent in contrast)
    assert {next(iter(contrast)) for contrast in contrasts} == {*mlp}
    oracles = {"oracle(policy=mlp)": 1, "oracle(policy=logistic)": -1}
    _, weights = says("policy-class")
    assert oracles in weights
    assert all({ours: 1, ours.replace("mlp", "logistic"): -1} in weights for ours in mlp)
    sentences, weights = says("policy-class", "synthetic")  # of oracles alone
    assert ([section for section, _ in sentences], weights) == (["Problem formulation, Regret"], [oracles])


def test_a_figure_for_each_model_has_its_agents_and_those_without_one():
    experiment = EXPERIMENTS["main"](SETTINGS["synthetic"], SCALES["paper"])
    views = regret_views("main", experiment, {"logistic oracle, 9 tasks": dict.fromkeys(experiment.agents)})
    assert [(file, title) for file, (title, _) in views.items()] == [
        ("main.png", "logistic oracle, synthetic-literal"),
        ("main-2.png", "logistic oracle, synthetic-paper"),
        ("main-3.png", "logistic oracle, synthetic-filter"),
    ]
    for _, (title, records) in views.items():
        model = title.partition(", ")[2]
        assert {parse_spec(agent)[1].get("model", model) for agent in records} == {model}
        assert {"lints", "linucb"} <= {*records}
    assert {*experiment.agents} == {agent for _, records in views.values() for agent in records}


def test_folders_of_models_are_shortened_to_names_that_differ():
    def mine(*models):
        place = replace(SETTINGS["synthetic"], given=models)
        return EXPERIMENTS["softmax"](place, SCALES["small"])

    experiment = mine("a b/one", "a b/one/two")
    assert [experiment.shorten(agent) for agent in experiment.agents if agent.startswith("greedy")] == [
        "greedy(model='one')",
        "greedy(model='two')",
    ]
    same = mine("a/one", "b/one")
    assert [same.shorten(agent) for agent in same.agents] == [*same.agents]


def test_the_ladder_shows_what_sampling_costs_beside_the_loss(tiny, tmp_path):
    """On two models of one's own choice: the table's numbers are those of the records and losses."""
    folder = tmp_path / "mine" / "own"
    shutil.copytree(WEIGHTS / "synthetic-paper", folder)
    models = (str(folder), "synthetic-filter")
    page = reproduce("ladder", tmp_path, workers=1, models=models).read_text()
    assert (tmp_path / "ladder-gap.png").exists()
    ((_, records),) = load_results(tmp_path / "run50").records.items()
    pairs = {model: [f"{agent}(model={model}{policy})" for agent, policy in PAIR] for model in models}
    pairs["exact"] = ["exact-twin(policy=logistic)", "exact-twin(greedy=True)"]
    gaps = json.loads((tmp_path / "ladder-gap.json").read_text())["synthetic"]
    for model, (ours, greedy) in ((model, (records[agent] for agent in pair)) for model, pair in pairs.items()):
        difference = (ours.regret["expected"] - greedy.regret["expected"]).sum(axis=1).mean()
        name = Path(model).name
        (row,) = (line for line in page.splitlines() if line.startswith(f"| {name} | ") and line.count("|") == 7)
        assert f"| {difference:+.1f} (" in row
        assert gaps[name][1] == pytest.approx(difference)
        assert ("10,000 actions, " in row) == (model != "exact")
    assert "exact-twin(policy=mlp)" in records
    assert f"--models {folder} synthetic-filter\n" in page
    assert page.count(str(folder)) == 1  # in the command alone
    assert "greedy(model=own)" in page


def test_the_ladders_of_both_settings_share_a_figure(tiny, tmp_path):
    with pytest.raises(InputError, match="beside must be a folder with the ladder of another setting, got"):
        reproduce("ladder", tmp_path, beside=tmp_path)
    with pytest.raises(InputError, match="beside is for the ladder, got it for 'main'"):
        reproduce("main", tmp_path, beside=tmp_path)
    (tmp_path / "ladder-gap.json").write_text('{"news": {"news-paper": [0.01, 3, 2, 4], "exact": [0, 5, 4, 6]}}')
    found = [
        reproduce("ladder", tmp_path / "out", workers=1, models=("synthetic-filter",), tasks=2, beside=beside)
        for beside in (None, tmp_path)
    ]
    assert "logistic oracle, 2 tasks, " in found[1].read_text()
    assert f"--tasks 2 --beside {tmp_path} --models synthetic-filter\n" in found[1].read_text()


PAIR = (("ts-gen", ", policy=logistic"), ("greedy", ""))


@pytest.mark.parametrize("name", ["policy-class", "horizon", "timing", "exact-gap"])
def test_an_experiment_leaves_a_page_with_its_figures(name, shared, tmp_path):
    experiment, told = EXPERIMENTS[name](SETTINGS["synthetic"], TINY), []
    out = shared[0]
    if not (out / f"{name}.md").exists():
        out = reproduce(name, tmp_path, workers=1, on_progress=lambda now: told.append(str(now))).parent
    text = (out / f"{name}.md").read_text()
    assert text.startswith(f"# {experiment.title}")
    assert f"\ngents-gym reproduce {name} --setting synthetic --scale small\n```\n\n12 decisions per task" in text
    assert "logistic oracle, 3 tasks, " in text
    for figure in (line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    assert len(
        [line for line in text.splitlines() if line.startswith(("| regret: ", "| reward: ", "| loss: "))]
    ) == len(experiment.claims)
    whole = text.replace("\n", " ")
    assert all(claim.says in whole and claim.section in whole for claim in experiment.claims)
    assert ("### Sequence loss" in text) == bool(experiment.models)
    assert text.count(" ± ") > len(experiment.agents)
    agents = range(len(experiment.agents) if experiment.timed else 0)
    lines = [f"timing single decisions: agent {i + 1} of {len(agents)}" for i in agents]
    assert [line for line in told if line.startswith("timing")] == lines


def test_a_news_page_names_the_headlines_beside_every_verdict_and_draws_losses_by_step(tiny, tmp_path):
    models = ("news-filter-100", "news-filter")
    page = reproduce("loss-vs-regret", tmp_path, setting="news", workers=1, seed=3, models=models)
    text = page.read_text()
    assert "--seed 3 --models news-filter-100 news-filter\n```\n\n12 decisions per task, seed 3" in text
    rows = [line for line in text.splitlines() if line.startswith(("| loss: ", "| regret: "))]
    assert len(rows) == 2
    verdicts = [cell for row in rows for cell in row.split(" | ") if "shown" in cell or "other way" in cell]
    assert len(verdicts) == 3
    assert all("(synthetic headlines)" in cell for cell in verdicts)
    assert (tmp_path / "loss-vs-regret-loss.png").exists()


def test_experiments_in_one_folder_share_what_they_play(shared):
    out, played = shared
    new = [path.name for path in (out / "run50/cells").iterdir() if path not in played]
    first, second = (set(EXPERIMENTS[name](SETTINGS["synthetic"], TINY).agents) for name in ("horizon", "policy-class"))
    assert len(new) == len(second - first) < len(second)
    assert {"horizon.md", "policy-class.md"} <= {path.name for path in out.iterdir()}


def test_a_second_call_plays_nothing_again(shared, monkeypatch):
    out, _ = shared
    cells = set((out / "run50/cells").iterdir())
    monkeypatch.setattr("gents_gym.evaluation.harness._play_all", lambda missing, *_: (1 / 0 for _ in missing))
    assert reproduce("horizon", out, workers=1).exists()
    assert set((out / "run50/cells").iterdir()) == cells


def test_regret_against_another_oracle_is_of_the_same_actions(shared):
    out, _ = shared
    found = load_results(out / "run50")
    ((_, records),) = found.records.items()
    assert json.loads((out / "run50/manifest.json").read_text())["run"]["oracle"] == "logistic"
    other = module._against_oracle(found, "mlp")
    tasks = make_tasks("synthetic", horizon=12).sample(0, range(3), "test")
    for agent, record in records.items():
        assert np.array_equal(other[agent].actions, record.actions)
        expected = regret(tasks, record.actions, oracle_actions(tasks, "mlp"))
        assert all(np.allclose(other[agent].regret[name], expected[name]) for name in expected)
    assert module._against_oracle(found, "logistic") is records


def test_the_oracle_as_an_agent_is_the_oracle():
    record = rollout(make_envs("gents_gym/Synthetic-v0(horizon=12)", 2), "oracle(policy=mlp)", oracle="mlp")
    assert not record.regret["oracle"].any()


def test_timed_decisions_are_those_that_are_played(shared):
    ((env, records),) = load_results(shared[0] / "run50").records.items()
    spec = "ts-gen(model=synthetic-filter, policy=logistic)"
    times = time_decisions(env, spec, 2, 0)
    assert np.array_equal(times.actions, records[spec].actions[:2])
    assert (times.total >= times.generation + times.fit).all()
    assert (times.generation > 0).all()
    assert (times.fit > 0).all()
    assert time_decisions(env, "lints", 1, 0).generation is None


def test_unknown_names(tmp_path):
    with pytest.raises(InputError, match="unknown experiment 'mian'; did you mean 'main'"):
        reproduce("mian", tmp_path)
    with pytest.raises(InputError, match="unknown setting 'new'"):
        reproduce("main", tmp_path, setting="new")
    with pytest.raises(InputError, match="unknown scale 'large'"):
        reproduce("main", tmp_path, scale="large")


def test_what_is_not_an_experiments_is_left_alone(tiny, tmp_path):
    for name, text in (("horizon.md", "my own notes"), ("horizon-against.png", "my own picture")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=f"'.*{name}' is not of an experiment: move it away"):
            reproduce("horizon", tmp_path)
        assert (tmp_path / name).read_text() == text
        (tmp_path / name).unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"out must be a folder that can be written, got '.*file'"):
        reproduce("horizon", tmp_path / "file")
