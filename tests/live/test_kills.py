"""The script that kills live processes, twice; `make slow` kills more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_killed_processes_lose_nothing(tmp_path):
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, script, "--kills", "2", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "all survived" in done.stdout
