"""What all tests share: nothing is left behind in the system's temporary folder, and commands run in this process."""

import sys

import pytest

from gents_gym import cli


@pytest.fixture(autouse=True, scope="session")
def sb3_logs(tmp_path_factory):
    """Let stable-baselines3, which opens a folder per model, write where pytest cleans up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield


@pytest.fixture
def run_command(monkeypatch):
    """A function that runs ``gents-gym`` with arguments in this process, and returns the exit status."""

    def run(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["gents-gym", *map(str, arguments)])
            patch.setattr(sys, "path", list(sys.path))
            try:
                cli.main()
            except SystemExit as stop:
                return stop.code
            return 0

    return run
