"""What holds for all tests: nothing is left behind in the system's folder for temporary files."""

import pytest


@pytest.fixture(autouse=True)
def sb3_logs(monkeypatch, tmp_path_factory):
    """Let stable-baselines3, which opens a folder per model, write where pytest cleans up."""
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path_factory.getbasetemp() / "sb3"))
