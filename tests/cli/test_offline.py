"""The command ``gents-gym offline``, from a log and a model that was trained on it."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from gents_gym import make_tasks
from gents_gym.cli import console

N, A = 240, 4
ROLES = ("--action", "item", "--outcome", "click", "--context", "u*", "device", "--action-features", "z*")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A CSV file: uniform play on one task, with a device that says nothing."""
    tasks = make_tasks("synthetic", n_actions=A, horizon=N, context_dim=2).sample(0, [0])
    rng = np.random.default_rng(0)
    action = rng.integers(A, size=N)
    log = {"ts": np.arange(N), "item": [f"i{a}" for a in action]}
    log |= {f"u{j}": tasks.contexts[0, :, j] for j in range(2)}
    log |= {"device": np.where(rng.random(N) < 0.5, "tv", "pc"), "click": tasks.outcomes[0, np.arange(N), action]}
    log |= {f"z{j}": tasks.action_features[0, action, j] for j in range(2)}
    path = tmp_path_factory.mktemp("site") / "site.csv"
    pa.csv.write_csv(pa.table({**log, "p": np.full(N, 1 / A), "low": np.full(N, -1.0)}), path)
    return path


def test_from_a_csv_to_a_model_to_answers(capsys, tmp_path, command, site):
    model, out = tmp_path / "model", tmp_path / "answers"
    data = ("--data", site, *ROLES, "--time", "ts")
    small = ("--epochs", 1, "--no-choose", "--horizon", 20, "--split", "time")
    assert command("train", *data, *small, "--out", model) == 0
    capsys.readouterr()
    ask = ("offline", *data, "--propensity", "p", "--agents", "greedy", "random", "--orders", 1, "--tables", 2)
    assert command(*ask, "--model", model, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "device (one-hot: pc, tv)" in shown
    assert "logged policy" in shown
    assert "learned from rows that evaluate here" in shown
    assert "greedy: no conclusion, because the model learned from these rows" in shown
    assert "(doubly robust)" not in shown
    assert f"written to {out / 'offline.html'}" in shown
    assert {path.name for path in out.iterdir()} == {"offline.html", "table.csv"}
    assert command(*ask, "--model", model, "--last", 0.2) == 0
    shown = capsys.readouterr().out
    assert "learned from" not in shown
    assert "logged policy, imagined" in shown
    assert command(*ask, "--model", model, "--out", out) == 2
    assert "out must be a new or empty folder" in capsys.readouterr().err
    site.write_text(site.read_text().replace("tv", "fridge", 1))
    assert command(*ask, "--model", model) == 2
    assert "must have a level that the model knows, pc, tv, got 'fridge'" in capsys.readouterr().err


def test_progress_is_shown_without_a_terminal(capsys, monkeypatch, command, site):
    monkeypatch.setattr(console, "FIRST", 0.0)
    monkeypatch.setattr(console, "EVERY", 0.001)
    assert command("offline", "--data", site, *ROLES, "--propensity", "p", "--agents", "linucb") == 0
    assert "gents-gym: linucb plays order 4 of 4, after " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--propensity", "low"), "column 'low' of "),
        (("--propensity", "pp"), "unknown column for propensity: 'pp'"),
        ((), "a log without propensities must come with a model"),
        (("--propensity", "p", "--model", "none"), "none"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(capsys, tmp_path, command, site, words, message):
    assert command("offline", "--data", site, *ROLES, *words, "--agents", "random", "--out", tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()
