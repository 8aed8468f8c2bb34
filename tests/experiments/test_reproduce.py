"""Experiments at a tiny scale: pages, figures, resuming, other oracles; and the catalogue itself."""

import json

import numpy as np
import pytest

from gents_gym import InputError, make_agent, make_tasks
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.evaluation.store import load_results
from gents_gym.experiments import reproduce as module
from gents_gym.experiments.catalogue import EXPERIMENTS, SCALES, SETTINGS, Scale
from gents_gym.experiments.reproduce import reproduce
from gents_gym.models.load import bundled_models
from gents_gym.types import Resolves

NAMES = ("main", "loss-vs-regret", "policy-class", "horizon", "simpler-models", "softmax", "timing", "exact-gap")


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCALES, "small", Scale(tasks=3, horizon=12, actions=3))
        yield


@pytest.fixture(scope="module")
def shared(tiny, tmp_path_factory):
    """The folder in which first horizon and then policy-class was played, and the cells of the first."""
    out = tmp_path_factory.mktemp("shared")
    reproduce("horizon", out, workers=1)
    played = set((out / "run50/cells").iterdir())
    reproduce("policy-class", out, workers=1)
    return out, played


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_the_catalogue_names_what_exists(setting):
    assert tuple(EXPERIMENTS) == NAMES
    for experiment in (make(setting) for make in EXPERIMENTS.values()):
        assert len(set(experiment.agents)) == len(experiment.agents)
        assert {agent for claim in experiment.claims for agent in claim} <= set(experiment.agents)
        assert set(experiment.against) <= set(experiment.agents)
        assert set(experiment.models) <= {*bundled_models(), "exact"}
        for agent in experiment.agents:
            made = make_agent(agent)
            assert ("policy=" in agent) == (isinstance(made, Resolves) or agent.startswith("exact-twin"))


@pytest.mark.parametrize("name", ["policy-class", "horizon", "timing", "exact-gap"])
def test_an_experiment_leaves_a_page_with_its_figures(name, shared, tmp_path):
    experiment = EXPERIMENTS[name](SETTINGS["synthetic"])
    out = shared[0] if (shared[0] / f"{name}.md").exists() else reproduce(name, tmp_path, workers=1).parent
    text = (out / f"{name}.md").read_text()
    assert text.startswith(f"# {experiment.title}")
    assert f"`gents-gym reproduce {name} --setting synthetic --scale small`: 12 decisions per task" in text
    assert "logistic oracle, 3 tasks, " in text
    for figure in (line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    assert len([line for line in text.splitlines() if " before `" in line]) == len(experiment.claims)
    assert ("### Sequence loss" in text) == bool(experiment.models)


def test_experiments_in_one_folder_share_what_they_play(shared):
    out, played = shared
    new = [path.name for path in (out / "run50/cells").iterdir() if path not in played]
    first, second = (set(EXPERIMENTS[name](SETTINGS["synthetic"]).agents) for name in ("horizon", "policy-class"))
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
