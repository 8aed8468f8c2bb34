"""Code on the pages runs in order, prints what the pages show, and names commands that exist."""

import contextlib
import io
import math
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import gents_gym
from gents_gym.checks import InputError

TOP = Path(__file__).parent.parent
MARKDOWN = [TOP / "README.md", *sorted(TOP.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WIDTH = 100
TOLERANCE = 0.1  # of printed numbers: other machines round otherwise, and a decision may differ

# Their blocks run with the sizes of the page, or with smaller ones, by pattern.
PAGES: dict[str, dict[str, str]] = {
    "README.md": {},
    "docs/agents.md": {
        r"range\(10_000\), n_rows=1000": "range(50), n_rows=20",
        "v0": "v0(horizon=6)",
        "tasks=20": "tasks=2",
    },
    "docs/api_examples.md": {},
    "docs/calibration.md": {
        r"make_tasks\(.synthetic.\)": "make_tasks('synthetic', horizon=20)",
        "actions=1000": "actions=40, tasks=4, draws=19, rows=20, sbc='no'",
    },
    "docs/environments.md": {},
    "docs/evaluation.md": {
        "tasks=500": "tasks=2, workers=1, training_actions=20, env='gents_gym/Synthetic-v0(horizon=6)'",
        r'records\["gents_gym/Synthetic-v0"\]': "records['gents_gym/Synthetic-v0(horizon=6)']",
    },
    "docs/first_evaluation.md": {r"env=env, tasks=50": "env=env, tasks=50, workers=1"},
    "docs/imagined.md": {r"\./models/mine": "synthetic-filter"},
    "docs/inspect.md": {"task=3, steps=20": "task=3, steps=5"},
    "docs/live.md": {
        r'preset_config\("filter"\)': 'preset_config("filter", epochs=1, choose=False)'
    },  # goes on with docs/logs.md
    "docs/models.md": {},
    "docs/news.md": {r", corpus=.my-corpus.": ""},
    "docs/offline.md": {  # goes on with the model of docs/logs.md
        r'preset_config\("filter"\)': 'preset_config("filter", epochs=1, choose=False)',
        r"OfflineConfig\(last=0.2\)": "OfflineConfig(last=0.2, orders=2, tables=2)",
    },
    "docs/own_agent.md": {},
    "docs/own_environment.md": {},
    "docs/own_model.md": {
        r"num_envs=\d+": "num_envs=2",
        r"n_actions=\d+": "n_actions=100",
        r"horizon=\d+": "horizon=6",
        r"--tasks \d+": "--tasks 2 --workers 1",
        r"--actions \d+ --rows": "--actions 30 --rows",
        r"--rows \d+ --horizon \d+": "--rows 12 --horizon 12 --validation-actions 10",
        r"--epochs \d+ --batch \d+": "--epochs 1 --batch 10",
        r"losses --env": "losses --actions 4 --env",
        r"evaluate --tasks": "evaluate --env gents_gym/Synthetic-v0(horizon=6) --tasks",
    },
    "docs/p_theta.md": {},
    "docs/policies.md": {},
    "docs/regret.md": {},
    "docs/report.md": {
        r"random lints linucb .*? greedy ts-gen oracle": "greedy ts-gen",
        "--tasks": "--workers 1 --tasks",
    },
    "docs/third_party.md": {
        "num_envs=256": "num_envs=4",
        "n_steps=64, batch_size=4096": "n_steps=8, batch_size=8",
        "1_000_000": "32",
    },
    "docs/transformer.md": {"horizon=20": "horizon=5"},
    "docs/ts_gen.md": {},
}
# Their blocks read results that take hours to make.
READ_ONLY = {"docs/results/README.md", "docs/results/third_party.md"}
# Their commands run too; those of other pages are parsed alone.
COMMANDS_RUN = {"docs/own_model.md", "docs/report.md"}


def write_inputs(folder):
    """Write the files that pages suppose: a log, a table of penguins, and an agent."""
    rng = np.random.default_rng(0)
    item, rows = rng.integers(4, size=200), ["item,click,u1,u2,u3,device,price,age,ts,p"]
    for t, (each, u) in enumerate(zip(item, rng.normal(size=(200, 3)), strict=True)):
        values = [*u, ("phone", "desk")[t % 2], each / 2, each**2, t, 0.25]
        rows.append(",".join(map(str, [f"i{each}", rng.integers(2), *values])))
    (folder / "site.csv").write_text("\n".join(rows))
    kinds = "\n".join(f"{a},{b},{('a', 'b', 'c')[i % 3]}" for i, (a, b) in enumerate(rng.normal(size=(60, 2))))
    (folder / "penguins.csv").write_text(f"wing,bill,species\n{kinds}\n")
    (folder / "mine.py").write_text("from gents_gym.agents.linucb import LinUCB as MyAgent\n")


def check_printed(shown, printed):
    """Compare word by word; numbers may differ a little."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), printed
    for ours, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=0.5), printed


def run_python(block, page, names, folder, monkeypatch):
    if title := re.match(r"# (\w+\.py)\n", block):
        monkeypatch.delitem(sys.modules, title[1].removesuffix(".py"), raising=False)
        (folder / title[1]).write_text(block)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block, page, "exec"), names)
    return printed.getvalue()


def commands(block):
    """Return the words of each gents-gym command in a block of shell lines."""
    lines = (line.strip() for line in block.replace("\\\n", " ").splitlines())
    found = (
        shlex.split(line.replace(" ...", " --agents random --out folder"), comments=True)
        for line in lines
        if line.startswith("gents-gym ")
    )
    return [words[1:] for words in found]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, run_command):
    if page == "docs/third_party.md":
        pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(TOP / "examples"), *sys.path])
    monkeypatch.setenv("MPLBACKEND", "agg")
    write_inputs(tmp_path)
    text = (TOP / page).read_text()
    if page in ("docs/live.md", "docs/offline.md"):
        text = f"{(TOP / 'docs/logs.md').read_text()}\n{text}"
    names, printed = {"__name__": "page"}, ""
    for language, block in BLOCK.findall(text):
        for pattern, replacement in PAGES[page].items():
            block = re.sub(pattern, replacement, block)
        if language == "python":
            printed = run_python(block, page, names, tmp_path, monkeypatch)
        elif language == "text":
            check_printed(block, printed)
        elif language == "" and page in COMMANDS_RUN:
            for words in commands(block):
                if words[0] != "compare":
                    assert run_command(*words) == 0, words


def test_every_page_with_code_is_run():
    with_code = {str(path.relative_to(TOP)) for path in MARKDOWN if "```python" in path.read_text()}
    assert with_code == PAGES.keys() | READ_ONLY | {"docs/logs.md"}


def test_commands_on_the_pages_parse(monkeypatch):
    from gents_gym.cli.program import _parse

    found, wrong = set(), []
    for path in MARKDOWN:
        for language, block in BLOCK.findall(path.read_text()):
            if language == "":
                found |= {
                    tuple(re.sub(r"\$\w+|\$\{.*\}", "1", word) for word in words if word != "$news")
                    for words in commands(block)
                }
    for words in sorted(found):
        monkeypatch.setattr(sys, "argv", ["gents-gym", *words])
        try:
            _parse()
        except InputError as error:
            wrong.append(f"{words}: {error}")
    assert len(found) > 50
    assert not wrong


def test_lines_are_wrapped():
    long = []
    for path in (*MARKDOWN, TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", TOP / "CHANGELOG.md"):
        text = re.sub(r"^```text\n.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        lines = (line for line in text.splitlines() if len(line) > WIDTH)
        long += [f"{path.name}: {line}" for line in lines if not line.startswith("|") and "](" not in line]
    assert not long


def test_every_public_name_has_an_example():
    sections = re.findall(r"^## (\w+)$", (TOP / "docs" / "api_examples.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(gents_gym.__all__)
