"""Every example runs as it stands, at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, path, "--tasks", "3", "--horizon", "20"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "regret" in done.stdout or "nats per step" in done.stdout


def test_there_are_examples():
    assert EXAMPLES
