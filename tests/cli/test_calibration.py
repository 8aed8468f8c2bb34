"""The command that measures calibration."""

import json
import shutil

import pytest

from gents_gym.models.load import WEIGHTS

SMALL = ("--env", "gents_gym/Synthetic-v0(horizon=12)", "--actions", 8, "--tasks", 3, "--draws", 4, "--rows", 5)


def test_numbers_are_printed_and_written(command, capsys, tmp_path):
    out = tmp_path / "found"
    small = (*SMALL, "--group", 2, "--models", "synthetic-filter", "exact")
    assert command("calibration", *small, "--out", out) == 0
    shown = capsys.readouterr().out
    for text in ("8 actions, 3 tasks", "reliability error", "exact: uniform ranks are not refuted", str(out)):
        assert text in shown
    assert {path.name for path in out.iterdir()} == {"calibration.png", "calibration.json"}
    found = json.loads((out / "calibration.json").read_text())
    assert [step["observed"] for step in found["models"]["exact"]["steps"]] == [0, 10]
    assert found["models"]["exact"]["config"]["actions"] == 8
    assert command("calibration", *small, "--out", out) == 2
    assert "out must be a new or empty folder" in capsys.readouterr().err


def test_a_trained_models_card_is_filled(command, capsys, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(WEIGHTS / "synthetic-filter", folder)
    assert command("calibration", *SMALL, "--models", folder, "--card") == 0
    assert "## Calibration\n\ngents_gym/Synthetic-v0(horizon=12), test split" in (folder / "README.md").read_text()
    assert (folder / "calibration.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--models", "news-filter"), "model must be trained on tasks with 2 action features"),
        (("--models", "synthetic-filtr"), "did you mean 'synthetic-filter'?"),
        (("--models", "exact", "exact"), "models must name at least one model, and each once, got exact, exact"),
        (("--models", "synthetic-filter", "--card"), "card needs models that are folders with config.json"),
        (("--steps", "0", "12"), "steps must lie below the horizon, 12, got 12"),
        (("--draws", "0"), "draws must be at least 1, got 0"),
        (("--sbc", "perhaps"), "--sbc"),
    ],
)
def test_bad_input_is_refused_in_one_line(command, capsys, tmp_path, words, message):
    out = tmp_path / "out"
    assert command("calibration", "--env", "gents_gym/Synthetic-v0(horizon=12)", *words, "--out", out) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()
