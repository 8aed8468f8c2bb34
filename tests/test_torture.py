"""The kill-and-tamper script, for seconds; `make torture` runs it for an hour."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("torture", Path(__file__).with_name("torture.py"))
torture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torture)


@pytest.mark.slow
def test_killed_commands_go_on_and_tampering_is_refused(tmp_path):
    tried = torture.torture(0, seed=1, folder=tmp_path)
    assert tried["evaluate ended with the same bytes"] == 1
    assert sum(count for what, count in tried.items() if what.startswith("changes")) == 40
    assert sum(count for what, count in tried.items() if what.endswith("refused")) > 20
