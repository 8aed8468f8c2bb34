"""What the command imports, in the process that a user starts."""

import subprocess
import sys
from pathlib import Path

SCRIPT = str(Path(sys.executable).with_name("gents-gym"))
STRAY = (
    "numpy",
    "gymnasium",
    "typing",
    "numexpr",
    "bottleneck",
    "tyro",
    "random",
    "signal",
    "joblib",
    "pyarrow",
    "yaml",
)
SMALL = ["--env", "gents_gym/Synthetic-v0(horizon=3)", "--tasks", "2", "--block", "1", "--workers", "2", "--out", "out"]


def test_commands_import_nothing_that_lies_beside_them(tmp_path):
    """Neither the command itself nor its workers."""
    for name in STRAY:
        (tmp_path / f"{name}.py").write_text(f"open('pwned-{name}', 'w').close()\nraise RuntimeError('stray')\n")
    (tmp_path / "mine.py").write_text("import helper\nOne = helper.One\n")
    (tmp_path / "helper.py").write_text("class One:\n    def act(self, observation):\n        return 1\n")
    for command, status in (
        ([SCRIPT, "evaluate", "--agents", "per-task(agent=mine:One)", *SMALL], 0),
        ([sys.executable, "-m", "gents_gym.cli", "report", "out"], 0),
        ([SCRIPT, "report", "nowhere"], 2),
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
    assert not list(tmp_path.glob("pwned*"))
