"""Models by name, and a kind of model that the package does not know: it plays, trains, is saved and loaded."""

import importlib
import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import InputError, RowSets, TaskInfo, load_model, make_agent, make_tasks, preset_config, rollout
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.models.exact import ExactModel
from gents_gym.models.filter import FilterModel
from gents_gym.models.load import (
    as_model,
    begin_belief,
    bundled_family,
    bundled_models,
    check_model_name,
    model_class,
    model_folders,
    model_kinds,
    resolve_model,
)
from gents_gym.testing import check_model
from gents_gym.training.folder import train_to_folder
from gents_gym.types import Feedback

THEIR_MODULE = '''
from dataclasses import dataclass

import torch

from gents_gym import SequenceModel


@dataclass(frozen=True)
class SmallConfig:
    action_dim: int
    context_dim: int
    width: int = 6


class Small(SequenceModel):
    """A recurrent network over the rows of an action."""

    kind = "small"
    config_class = SmallConfig

    def __init__(self, config):
        super().__init__(config)
        self.first = torch.nn.Linear(config.action_dim, config.width)
        self.cell = torch.nn.GRUCell(config.context_dim + 1, config.width)
        self.last = torch.nn.Linear(config.width + config.context_dim, 1)

    def start(self, action_features):
        return torch.tanh(self.first(self.scale_features(action_features)))

    def predict(self, state, context):
        return torch.sigmoid(self.last(torch.cat([state, self.scale_contexts(context)], 1))[:, 0])

    def append(self, state, context, outcome, where=None):
        after = self.cell(torch.cat([self.scale_contexts(context), outcome[:, None]], 1), state)
        return after if where is None else torch.where(where[:, None], after, state)


class Other(Small):
    kind = "other"


class NoModel:
    pass
'''
INFO = TaskInfo(np.zeros((2, 3, 2), np.float32), 3, 5, 8)


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Another user's module, in the current folder."""
    (tmp_path / "their_kind.py").write_text(THEIR_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("their_kind")


@pytest.fixture
def known(theirs, tmp_path):
    """The same, in a distribution that declares its kind."""
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gents_gym.models]\nsmall = their_kind:Small\n")
    importlib.invalidate_caches()
    return theirs


def rows(split="train", n_actions=60):
    return RowSets.from_rows(make_tasks("synthetic").sample_actions(0, range(n_actions), 20, split))


def train_small(out, preset="their_kind:Small"):
    config = preset_config(preset, epochs=3, batch=20, horizon=20, learning_rates=(0.03,), model={"width": 5})
    return train_to_folder(rows(), rows("validation"), config, out)


def play(model):
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=6, n_actions=3)
    records = [rollout(envs, make_agent(agent, model=model)) for agent in ("ts-gen", "ts-gen(m=3)", "greedy")]
    return np.stack([record.actions for record in records])


def test_a_kind_of_somebody_else_trains_is_saved_loaded_and_plays(theirs, tmp_path):
    out = tmp_path / "small"
    model = train_small(out)
    assert isinstance(model, theirs.Small)
    assert model.config.width == 5
    first, *_, last = (row["training"] for row in json.loads((out / "history.json").read_text()))
    assert last < first - 0.01
    loaded = [load_model(out, kind) for kind in (theirs.Small, "their_kind:Small")]
    loaded.append(load_model(f"their_kind:Small(folder={out})"))
    some = make_tasks("synthetic").sample_actions(1, range(9), 7)
    part = [torch.tensor(array) for array in (some.action_features, some.contexts, some.outcomes)]
    for each in loaded:
        assert isinstance(each, theirs.Small)
        assert torch.equal(each.log_prob(*part), model.log_prob(*part))
        assert torch.equal(each.bank, model.bank)
    assert "load_model(folder, kind='their_kind:Small')" in (out / "README.md").read_text()
    assert np.array_equal(play(model), play(f"their_kind:Small(folder={out})"))
    assert check_model(f"their_kind:Small(folder={out})") is None


def test_a_folder_of_an_unknown_kind_asks_for_the_class(theirs, tmp_path):
    out = tmp_path / "small"
    train_small(out)
    rule = r"config.json' must have a registered kind \(.*filter.*\), got 'small': name its class, "
    rule += r"as load_model\(folder, kind=Class\) or module:Class\(folder=...\)"
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=1)
    for use in (load_model, lambda folder: rollout(envs, f"greedy(model={folder})")):
        with pytest.raises(InputError, match=rule):
            use(str(out))
    for kind, name in ((theirs.Other, "other"), ("filter", "filter")):
        with pytest.raises(InputError, match=rf"must be the class of a 'small' model .* got one of '{name}' models"):
            load_model(out, kind)
    with pytest.raises(InputError, match=r"a kind of model must be a subclass of gents_gym.SequenceModel, got <class"):
        load_model(out, theirs.NoModel)
    with pytest.raises(InputError, match="cannot import kind of model 'their_kind:Smal'"):
        load_model(out, "their_kind:Smal")
    with pytest.raises(InputError, match=r"name the folder of its weights, their_kind:Small\(folder=...\), got"):
        make_agent("greedy", model="their_kind:Small")


def test_the_command_line_trains_measures_and_plays_it(theirs, tmp_path, run_command, capsys):
    train = ("train", "--preset", "their_kind:Small(width=4)", "--actions", 30, "--rows", 12, "--horizon", 12)
    sizes = ("--epochs", 1, "--batch", 10, "--validation-actions", 10, "--learning-rates", 0.01)
    assert run_command(*train, *sizes, "--out", "mine") == 0
    assert load_model("mine", theirs.Small).config.width == 4
    env = "gents_gym/Synthetic-v0(horizon=8, n_actions=3)"
    agents = ("ts-gen(model=their_kind:Small(folder=mine), m=4)", "greedy(model=their_kind:Small(folder=mine))")
    evaluate = ("evaluate", "--env", env, "--agents", *agents, "--tasks", 2, "--workers", 1, "--out", "results")
    assert run_command(*evaluate) == 0
    losses = ("losses", "--env", env, "--actions", 4, "--models", "mine")
    assert run_command(*losses) == 2
    assert "got 'small': name its class" in capsys.readouterr().err
    assert run_command(*losses, "--kind", "their_kind:Small") == 0
    assert run_command(*losses[:-1], "their_kind:Small(folder=mine)") == 0
    assert run_command("train", "--preset", "their_kind:NoModel", "--out", "no") == 2
    assert "must be a subclass of gents_gym.SequenceModel" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_an_entry_point_gives_a_kind_its_name(known, tmp_path, run_command, capsys):
    assert model_kinds()["small"] == "their_kind:Small"
    assert model_class("small") is known.Small
    out = tmp_path / "small"
    assert isinstance(train_small(out, "small"), known.Small)
    loaded = load_model(out)
    assert isinstance(loaded, known.Small)
    assert np.array_equal(play(loaded), play(str(out)))
    assert run_command("list") == 0
    assert "small                    their_kind:Small" in capsys.readouterr().out
    with pytest.raises(InputError, match="unknown preset 'smal'; did you mean 'small'"):
        preset_config("smal")
    with pytest.raises(InputError, match="unknown size of a small model: 'widht'; did you mean 'width'"):
        preset_config("small", model={"widht": 3})


def test_an_untrained_model_plays_as_an_object(theirs):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = theirs.Small(theirs.SmallConfig(2, 5))
    assert play(model).shape == (3, 2, 6)
    assert check_model(model) is None


def test_names_of_models():
    assert "synthetic-filter" in bundled_models()
    assert {"synthetic-filter", "news-filter"} <= {*bundled_family("filter")} <= {*bundled_models()}
    assert [folder.name for folder in model_folders("filter")] == bundled_family("filter")
    assert [folder.name for folder in model_folders("synthetic-paper")] == ["synthetic-paper"]
    for name in ("filter", "exact", "untrained", "synthetic-filter"):
        assert check_model_name(name) is None
    with pytest.raises(InputError, match="unknown model or folder 'filtr'; did you mean 'filter'"):
        check_model_name("filtr")
    with pytest.raises(InputError, match="cannot import model 'their_own:Class'"):
        check_model_name("their_own:Class")
    with pytest.raises(InputError, match=r"model must be .* got 3"):
        check_model_name(3)
    for name in ("exact", "untrained"):
        with pytest.raises(InputError, match=f"model must have weights to load, got '{name}', which is made for"):
            load_model(name)


def test_names_become_models_of_the_tasks():
    assert isinstance(resolve_model("filter", INFO), FilterModel)
    tasks = make_tasks("synthetic", n_actions=3).sample(0, [0])
    known_truth = TaskInfo(tasks.action_features, 3, 5, 8, truth=tasks.known_truth)
    assert isinstance(resolve_model("exact", known_truth), ExactModel)
    with pytest.raises(InputError, match="model 'exact' is p"):
        resolve_model("exact", INFO)
    with pytest.raises(InputError, match="trained on tasks with 2 action features, contexts of 4 entries"):
        resolve_model("synthetic-filter", TaskInfo(np.zeros((2, 3, 2), np.float32), 3, 4, 8))


def test_a_model_is_taken_as_it_is():
    model = load_model("synthetic-filter")
    assert as_model(model) is model
    found, belief = begin_belief(model, INFO, [np.random.default_rng(i) for i in range(2)])
    assert found is model
    assert isinstance(belief, gents_gym.Belief)
    with pytest.raises(InputError, match="model must be a model, not a class"):
        as_model(FilterModel)


def test_an_untrained_filter_is_bayesian_regression_with_a_standard_normal_prior():
    """Gaussian outcomes, against the posterior in closed form; contexts to come are the task's own."""
    rng = np.random.default_rng(0)
    info = TaskInfo(np.ones((1, 2, 3), np.float32), 2, 4, 9, likelihood=GAUSSIAN)
    _, belief = begin_belief("untrained", info, [rng])
    contexts = rng.normal(size=(8, 1, 4)).astype(np.float32)
    outcomes, actions = rng.normal(size=8).astype(np.float32), np.arange(8) % 2
    for t in range(8):
        belief.decide(contexts[t], actions[[t]])
        belief.observe(Feedback(np.array([0]), np.array([t]), outcomes[[t]]))
    x = np.concatenate([np.ones((8, 1)), contexts[:, 0]], axis=1)
    new = np.array([1, 0.3, -1, 0.5, 2])
    expected = []
    for action in range(2):
        rows, y = x[actions == action], outcomes[actions == action]
        noise = 1 + 1e-4  # LEAST_NOISE is added to the variance 1
        expected.append(new @ np.linalg.solve(rows.T @ rows / noise + np.eye(5), rows.T @ y / noise))
    found = belief.expected(new[None, 1:].astype(np.float32))
    assert found[0] == pytest.approx(expected, abs=1e-5)
    imagined = belief.complete(contexts[0]).contexts[0, 0]
    assert {*map(tuple, imagined.tolist())} <= {*map(tuple, contexts[:, 0].tolist())}


def test_an_untrained_filter_has_the_tasks_sizes():
    for likelihood in (BERNOULLI, GAUSSIAN, Categorical(3)):
        info = TaskInfo(np.ones((2, 3, 6), np.float32), 3, 7, 9, likelihood=likelihood)
        model, belief = begin_belief("untrained", info, [np.random.default_rng(i) for i in range(2)])
        assert model.likelihood == likelihood
        expected = belief.expected(np.ones((2, 7), np.float32))
        assert np.allclose(expected, expected[0, 0])  # nothing tells the actions apart


def test_a_model_that_reads_the_time_is_not_taken_for_tasks_without_one():
    info = TaskInfo(np.zeros((1, 3, 2), np.float32), 3, 6, 20)
    with pytest.raises(InputError, match="contexts of 6 entries"):
        resolve_model("filter", info)
    known = np.full((1, 20, 6), np.nan)
    known[..., -1] = np.arange(20) / 20
    assert resolve_model("filter", replace(info, known_contexts=known)).ordered
    assert resolve_model("drifting-filter", info).ordered


def test_general_plays_binary_outcomes_of_any_sizes_up_to_its_own():
    for n_features, n_context in ((2, 5), (1, 10), (7, 1)):
        info = TaskInfo(np.zeros((2, 3, n_features), np.float32), 3, n_context, 8)
        model, belief = begin_belief("general", info, [np.random.default_rng(i) for i in range(2)])
        assert not len(model.bank)
        context = np.ones((2, n_context), np.float32)
        assert belief.expected(context).shape == (2, 3)
        assert (belief.complete(context, draws=2).contexts == 1).all()  # the task's own, in its own size
    for changes in ({"context_dim": 11}, {"likelihood": GAUSSIAN}):
        with pytest.raises(InputError, match="general has any and at most 10, bernoulli outcomes: train one with"):
            resolve_model("general", replace(info, **changes))
    with pytest.raises(InputError, match="horizon must be at most 1024 for this model, its longest history, got 1025"):
        begin_belief("general", replace(info, horizon=1025), [np.random.default_rng(i) for i in range(2)])
