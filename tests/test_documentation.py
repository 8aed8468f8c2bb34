"""Code on the pages runs as it stands, at a small size."""

import re
import shlex
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PAGES = ["own_model.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SMALLER = {  # sizes on a page, and those in the tests
    r"num_envs=\d+": "num_envs=2",
    r"n_actions=\d+": "n_actions=100",
    r"horizon=\d+": "horizon=6",
    r"--tasks \d+": "--tasks 2 --workers 1",
    r"--actions \d+ --rows": "--actions 30 --rows",
    r"--rows \d+ --horizon \d+": "--rows 12 --horizon 12 --validation-actions 10",
    r"--epochs \d+ --batch \d+": "--epochs 1 --batch 10",
    r"losses --env": "losses --actions 4 --env",
    r"evaluate --tasks": "evaluate --env gents_gym/Synthetic-v0(horizon=6) --tasks",
}


def smaller(text):
    for pattern, replacement in SMALLER.items():
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(TOP / "examples"), *sys.path])
    names, n_run = {}, 0
    for language, block in BLOCK.findall((TOP / "docs" / page).read_text()):
        block = smaller(block)
        if language == "python":
            title = re.match(r"# (\w+\.py)\n", block)
            if title:
                monkeypatch.delitem(sys.modules, title[1].removesuffix(".py"), raising=False)
                (tmp_path / title[1]).write_text(block)
            exec(compile(block, page, "exec"), names)
            n_run += 1
        elif language == "" and block.startswith("gents-gym"):
            for line in block.replace("\\\n", " ").splitlines():
                assert run_command(*shlex.split(line)[1:]) == 0, line
                n_run += 1
    assert n_run > 8
