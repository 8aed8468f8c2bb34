"""The command ``gents-gym train``."""

import json
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gents_gym import load_model, registry
from gents_gym.cli.train import Train, TrainOptions
from gents_gym.files import held
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.config import TrainConfig, preset_config

SMALL = ("--actions", 20, "--rows", 15, "--horizon", 10, "--epochs", 1, "--validation-actions", 20)


def notes(out):
    return json.loads((out / "config.json").read_text())["notes"]


ROLES = ("--action", "action", "--outcome", "outcome", "--context", "x*", "--action-features", "z")


def write_logs(folder, log, features):
    """Write a log whose action a has ``features[a]``; return the options that name its columns."""
    pq.write_table(pa.table({**log, "z": np.asarray(features)[log["action"]]}), folder / "log.parquet")
    return "--data", folder / "log.parquet", *ROLES


def test_every_option_of_training_is_one_of_the_command(capsys, command):
    assert command("train", "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for entry in fields(TrainConfig):
        assert (f"--{entry.name.replace('_', '-')}" in shown) == (entry.name != "model")
    for text in ("T, rows of a training sequence.", "Gigabytes of memory for sequences", "Passes over the training"):
        assert text in shown
    assert {entry.name for entry in fields(Train)} & {entry.name for entry in fields(TrainConfig)} == set()


@pytest.mark.parametrize(
    ("options", "env", "expected"),
    [
        ({}, "gents_gym/Synthetic-v0", preset_config("filter")),
        ({"preset": "paper(width=7)"}, "gents_gym/Synthetic-v0", preset_config("paper", model={"width": 7})),
        ({"epochs": 2, "choose": False}, "gents_gym/News-v0", preset_config("filter", "news", epochs=2, choose=False)),
        ({"steps": 3, "blind": True, "seed": 4, "batch": 5, "replacement": True}, "gents_gym/Synthetic-v0",
         TrainConfig(steps=3, blind=True, seed=4, batch=5, replacement=True)),
    ],
)  # fmt: skip
def test_what_is_not_given_is_the_presets_and_the_settings(tmp_path, options, env, expected):
    assert Train(TrainOptions(**options), tmp_path, env)._config() == expected


def test_train_from_an_environment(capsys, tmp_path, command):
    assert command("train", *SMALL, "--no-choose", "--out", tmp_path / "filter") == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[1].startswith("filter model (default sizes; batches of 500) written to ")
    losses = notes(tmp_path / "filter")["yardsticks"]
    assert shown[0].endswith("; " + ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items()))
    assert command("train", *SMALL, "--preset", "paper(hidden_layers=1)", "--out", tmp_path / "paper") == 0
    assert json.loads((tmp_path / "paper" / "config.json").read_text())["config"]["hidden_layers"] == 1


def test_a_log_gets_a_line_per_epoch(tmp_path):
    options = (*SMALL[:-4], "--epochs", 2, "--validation-actions", 20, "--learning-rates", 0.01, 0.001)
    words = map(str, ("train", *options, "--preset", "paper", "--out", tmp_path / "model"))
    command = [sys.executable, "-m", "gents_gym.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads((tmp_path / "model" / "history.json").read_text())
    first, *lines = done.stderr.splitlines()
    assert first == "first epoch"
    for line, row in zip(lines, rows, strict=True):
        epoch = f"learning rate {(0.01, 0.001)[row['run']]:g}, epoch {row['epoch']} of 2"
        assert line.startswith(f"{epoch}: training {row['training']:.4f}, validation {row['validation']:.4f}, best ")
    assert len(done.stdout.splitlines()) <= 3


def test_a_finished_training_says_so_and_a_held_folder_is_refused(capsys, tmp_path, command):
    out = tmp_path / "model"
    train = ("train", *SMALL, "--no-choose", "--out", out)
    assert command(*train) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    written = capsys.readouterr().out
    assert command(*train) == 0
    assert capsys.readouterr().out == written.replace("written to", "was already finished in")
    assert command(*train, "--seed", 1) == 2
    assert "with another seed" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (tmp_path / "held").mkdir()
    with held("out", tmp_path / "held"):
        assert command(*train[:-1], tmp_path / "held") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gents-gym: out must have one writer at a time, got '")
    assert not list((tmp_path / "held").iterdir())


def test_what_was_compared_is_printed(capsys, tmp_path, command, monkeypatch):
    monkeypatch.setitem(registry.CANDIDATES, "filter", ({"prior_width": 0}, {"prior_width": 2}))
    assert command("train", *SMALL, "--batch", 7, "--out", tmp_path / "model") == 0
    shown = capsys.readouterr().out
    plain, bent = (row["validation"] for row in notes(tmp_path / "model")["candidates"])
    assert f"compared before training: {plain:.4f} with prior_width=0, {bent:.4f} with prior_width=2" in shown
    assert "batches of 7) written to" in shown


def test_context_sequences_of_the_train_split_fit_the_urn(tmp_path, command):
    for spread, low, high in ((1, 0, 0), (0.2, 0.8, 1)):
        out = tmp_path / str(spread)
        env = f"gents_gym/Synthetic-v0(context_spread={spread}, horizon=40)"
        assert command("train", *SMALL, "--no-choose", "--env", env, "--out", out) == 0
        assert low <= float(load_model(out).urn) <= high
        assert notes(out)["task_contexts"] == 50


def test_train_on_logs_that_say_little_says_so(capsys, tmp_path, command):
    rng = np.random.default_rng(0)
    log = {"action": rng.integers(8, size=200), "x": rng.normal(size=200), "outcome": rng.integers(2, size=200)}
    logs = write_logs(tmp_path, log, rng.normal(size=8))
    assert command("train", *logs, "--no-choose", "--epochs", 1, "--out", tmp_path / "logged") == 0
    kept = notes(tmp_path / "logged")["columns"]
    assert (kept["contexts"], kept["action_features"]) == ([{"name": "x"}], [{"name": "z"}])
    card = (tmp_path / "logged" / "README.md").read_text()
    assert "logs: log.parquet" in card
    assert "no contexts of whole tasks are known" in card
    verdict = notes(tmp_path / "logged")["verdict"]
    assert verdict.startswith(("The model hardly beats the ", "The model does not beat the "))
    assert f"**{verdict}**" in card
    assert verdict in capsys.readouterr().out.splitlines()


def test_tasks_in_logs_fit_the_urn(tmp_path, command):
    """Contexts of a task are alike; rows of tasks are mixed in the file, each task's in its order."""
    tasks = Synthetic(context_spread=0.2, horizon=30).sample(0, range(12), "train")
    rng = np.random.default_rng(0)
    task = rng.permutation(np.repeat(np.arange(12), 30))
    step = np.array([(task[:i] == which).sum() for i, which in enumerate(task)])
    action = step % 10
    log = {"task": task, "action": action, "outcome": tasks.outcomes[task, step, action]}
    log |= {f"x{j}": tasks.contexts[task, step, j] for j in range(5)}
    logs = (*write_logs(tmp_path, log, rng.normal(size=10)), "--task", "task")
    assert command("train", *logs, "--no-choose", "--epochs", 1, "--out", tmp_path / "logged") == 0
    assert notes(tmp_path / "logged")["task_contexts"] == 12
    assert 0.8 < float(load_model(tmp_path / "logged").urn) < 1


OWN = """
from gents_gym.models.filter import FilterModel

class Mine(FilterModel):
    kind = "mine"
"""


def test_a_class_of_ones_own_trains_and_is_loaded_by_its_name(capsys, tmp_path, command, monkeypatch):
    (tmp_path / "own_class.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "model"
    assert command("train", *SMALL, "--preset", "own_class:Mine(context_width=3)", "--out", out) == 0
    assert notes(out)["candidates"] == []
    assert "own_class:Mine model (context_width=3; batches of 500) written to" in capsys.readouterr().out
    measured = ("losses", "--models", out, "--actions", 5, "--env", "gents_gym/Synthetic-v0(horizon=5)")
    assert command(*measured) == 2
    assert "must have a registered kind" in capsys.readouterr().err
    assert command(*measured, "--kind", "own_class:Mine") == 0
    play = ("evaluate", "--tasks", 2, "--workers", 1, "--env", "gents_gym/Synthetic-v0(horizon=3)")
    named = f"greedy(model='own_class:Mine(folder={out})')"
    assert command(*play, "--agents", named, "--out", tmp_path / "played") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "filer"], "unknown preset 'filer'; did you mean 'filter'?"),
        (["--preset", "paper(layers=2)"], "unknown size of a paper model: 'layers'"),
        (
            ["--data", "x.parquet", "--action", "y", "--actions", "5"],
            "actions and rows must be given only without data",
        ),
        (["--data", "x.parquet", "--action", "y"], "data must be a Parquet or CSV file, got 'x.parquet'"),
        (["--action", "item"], "columns, action_table and split must be given only with data, got no data"),
        (["--likelihood", "gaussian"], "likelihood must be given only with data, got 'gaussian'"),
        (
            ["--preset", "paper", "--env", "gents_gym/Synthetic-v0(outcomes=gaussian)"],
            "outcomes must be bernoulli for a paper model, got gaussian: train a filter",
        ),
        (["--env", "CartPole-v1"], "env must be one of gents_gym's, with a task distribution, got 'CartPole-v1'"),
        (["--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--memory", "-1"], "memory must be above 0, got -1"),
        (["--actions", "0"], "actions must be at least 1, got 0"),
    ],
)
def test_bad_training_input_is_one_line(capsys, tmp_path, command, arguments, message):
    out = tmp_path / "out"
    small = ("--horizon", 10) if "--data" in arguments else ("--horizon", 10, "--rows", 15)
    small += () if {"--actions", "--data"} & {*arguments} else ("--actions", 20)
    assert command("train", *small, *arguments, "--out", out) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert len(shown.splitlines()) == 1
    assert not (out / "config.json").exists()


def test_logs_of_stars_are_categories_if_they_are_named_so(capsys, tmp_path, command):
    rng = np.random.default_rng(0)
    log = {"action": rng.integers(8, size=200), "x": rng.normal(size=200), "outcome": rng.integers(3, size=200)}
    logs = write_logs(tmp_path, log, rng.normal(size=8))
    stars = ("--likelihood", "categorical(3)", "--epochs", 1, "--no-choose", "--out", tmp_path / "stars")
    assert command("train", *logs, *stars) == 0
    assert "rows with categorical(3) outcomes" in (tmp_path / "stars" / "README.md").read_text()
    assert command("train", *logs, "--epochs", 1, "--no-choose", "--out", tmp_path / "numbers") == 0
    assert str(load_model(tmp_path / "numbers").likelihood) == "gaussian"


def test_what_was_taken_is_printed_and_the_latest_rows_may_validate(capsys, tmp_path, command):
    rng = np.random.default_rng(0)
    log = {"action": rng.integers(4, size=100), "x": rng.normal(size=100), "outcome": rng.integers(2, size=100)}
    logs = write_logs(
        tmp_path, {**log, "device": np.array(["tv", "pc"])[log["action"] % 2], "ts": range(100)}, range(4)
    )
    logs = (*logs[:-2], "device", "--action-features", "z", "--time", "ts")
    small = ("--epochs", 1, "--no-choose", "--horizon", 10, "--split", "time", "--out", tmp_path / "model")
    assert command("train", *logs, *small) == 0
    shown = capsys.readouterr().out
    assert "x, device (one-hot: pc, tv): 3 entries" in shown
    assert "time             ts: 0 to 99" in shown
    kept = notes(tmp_path / "model")
    assert kept["rows"] == {"training": 80, "validation": 20}
    assert kept["columns"]["contexts"] == [{"name": "x"}, {"name": "device", "levels": ["pc", "tv"]}]
    assert kept["source"] == "logs: log.parquet; the latest rows validate"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--action", "itm"], "unknown column for action: 'itm'"),
        (["--context", "x", "p"], "column 'p' must have one role, got propensity and context"),
        (["--propensity", "over"], "column 'over' of '{data}' must lie in (0, 1], got 1.5 in row 2"),
        (["--action-features"], "action_features must name columns to train on, got none"),
        (["--split", "time"], "a split by time needs the role time, got none"),
    ],
)
def test_a_bad_log_is_one_line_and_nothing_is_written(capsys, tmp_path, command, changes, message):
    log = {"action": np.arange(8) % 4, "x": np.zeros(8), "outcome": np.arange(8) % 2, "p": np.full(8, 0.25)}
    data, path, *_ = write_logs(tmp_path, {**log, "over": 0.5 + 0.5 * (np.arange(8) % 4)}, range(4))
    given = {"--action": ["action"], "--outcome": ["outcome"], "--context": ["x"], "--action-features": ["z"]}
    given |= {"--propensity": ["p"], changes[0]: changes[1:]}
    words = [word for flag, values in given.items() for word in (flag, *values)]
    assert command("train", data, path, *words, "--out", tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message.format(data=path) in line
    assert not (tmp_path / "out").exists()
