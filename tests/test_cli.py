"""The command line, in the process that a user starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gents_gym import cli, registry

SMALL = "gents_gym/Synthetic-v0(horizon=10)"


def run(*arguments, cwd=None):
    command = [str(Path(sys.executable).with_name("gents-gym")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def main(monkeypatch, *arguments):
    """Run the command in this process; return the exit status."""
    monkeypatch.setattr(sys, "argv", ["gents-gym", *map(str, arguments)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_list_names_every_id(monkeypatch, capsys):
    assert main(monkeypatch, "list") == 0
    shown = capsys.readouterr().out
    for name in (*registry.ENVIRONMENTS, *registry.AGENTS, *registry.POLICIES):
        assert f"  {name} " in shown


def test_evaluate_prints_a_table_and_writes_a_folder(tmp_path):
    out = tmp_path / "new" / "folder"
    done = run(
        "evaluate", "--env", SMALL, "--agents", "linucb", "lints(prior=fitted)", "oracle",
        "--tasks", 5, "--seed", 1, "--training-actions", 20, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {p.name for p in out.iterdir()} == {"results.parquet", "regret.png", "manifest.json"}
    for shown in ("linucb", "lints(prior=fitted)", "oracle *", "expected", "can be negative", str(out)):
        assert shown in done.stdout
    assert done.stderr == ""
    assert json.loads((out / "manifest.json").read_text())["config"]["seed"] == 1


def test_agents_from_the_folder_one_stands_in(tmp_path):
    (tmp_path / "mine.py").write_text("class One:\n    def act(self, observation):\n        return 1\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "registry.py").write_text("raise RuntimeError('not yours')")
    done = run(
        "evaluate", "--env", SMALL, "--agents", "per-task(agent=mine:One)", "--tasks", 2, "--out", "o", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [[], ["evaluate"], ["bench"], ["list"]])
def test_help_helps(monkeypatch, capsys, command):
    assert main(monkeypatch, *command, "--help") == 0
    assert "usage: gents-gym" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agents", "linucbb"], "unknown agent 'linucbb'; did you mean 'linucb'?"),
        (["--agents", "linucb(alpha=-1)"], "alpha must be at least 0, got -1"),
        (["--agents", "linucb", "--tasks", "0"], "tasks must be at least 1, got 0"),
        (["--agents", "linucb", "--tasks", "x"], "Error parsing --tasks: invalid literal for int()"),
        (["--agents", "linucb", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["--agents", "linucb", "--env", "gents_gym/Sinthetic-v0"], "env 'gents_gym/Sinthetic-v0' cannot be made"),
        (["--agents", "linucb", "--env", "Nope-v0"], "env 'Nope-v0' cannot be made"),
        (["--agents", "linucb", "--oracle", "logistc"], "unknown policy class 'logistc'; did you mean 'logistic'?"),
        (["--agents", "linucb", "--taskz", "3"], "--taskz"),
        (["--agents", "nope:Nope"], "cannot import agent 'nope:Nope': No module named 'nope'"),
        ([], "--agents"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(monkeypatch, capsys, tmp_path, arguments, message):
    out = tmp_path / "out"
    assert main(monkeypatch, "evaluate", *arguments, "--out", out) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert shown.startswith("gents-gym: ")
    assert len(shown.splitlines()) == 1
    assert not out.exists()


def test_an_unknown_command(monkeypatch, capsys):
    assert main(monkeypatch, "evalute") == 2
    assert "evalute" in capsys.readouterr().err


def test_a_used_folder_is_refused_and_kept(monkeypatch, capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(monkeypatch, "evaluate", "--agents", "linucb", "--out", tmp_path) == 2
    assert f"out must be a new or empty folder, got '{tmp_path}'" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    assert main(monkeypatch, "evaluate", "--agents", "linucb", "--out", tmp_path / "notes.txt") == 2
    assert "out must be a folder, got the file" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_unwritable_folder(monkeypatch, capsys):
    assert main(monkeypatch, "evaluate", "--agents", "linucb", "--out", "/proc/gents-gym") == 2
    assert "out must be a writable folder, got '/proc/gents-gym'" in capsys.readouterr().err


def test_bench_as_json(monkeypatch, capsys):
    monkeypatch.setattr(cli, "run_benchmarks", lambda: {"vector_env_speedup": 2.0, "linucb_vs_mabwiser": None})
    assert main(monkeypatch, "bench", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"vector_env_speedup": 2.0, "linucb_vs_mabwiser": None}
