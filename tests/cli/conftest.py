"""What tests of single commands share."""

import sys

import pytest

from gents_gym import cli


@pytest.fixture
def command(monkeypatch):
    """Run ``gents-gym`` with the given words in this process; return the exit status."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["gents-gym", *map(str, words)])
        monkeypatch.setattr(sys, "path", list(sys.path))
        try:
            cli.main()
        except SystemExit as stop:
            return stop.code
        return 0

    return run
