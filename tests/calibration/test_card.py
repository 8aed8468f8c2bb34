"""Calibrations as tables and pictures, and as a section of a model's card."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from gents_gym import CalibrationConfig, InputError
from gents_gym.calibration import card
from gents_gym.calibration.card import draw_calibrations, header, table_rows, write_card
from gents_gym.calibration.record import Calibration
from gents_gym.calibration.reliability import bin_events

CARD = "# A model\n\nWhat it is.\n"


def record(tested=True, steps=(0, 10), seed=0):
    rng = np.random.default_rng(seed)
    n_steps = len(steps)
    return Calibration(
        steps,
        tuple(bin_events(p := rng.random(300), rng.random(300) < p) for _ in steps),
        {name: rng.gamma(2, size=(40, n_steps)) for name in ("marginal", "joint")},
        {name: rng.random((40, n_steps)) for name in ("mean reward", "policy value")},
        {name: rng.random(n_steps) for name in ("mean reward", "policy value")},
        tested,
        CalibrationConfig(actions=40, tasks=40, steps=steps),
    )


def test_rows_hold_the_numbers():
    found = record()
    first = table_rows(found)[0]
    assert len(first) == len(header(found))
    assert first[0] == "0"
    assert first[1] == f"{found.reliability[0].error:.4f} ({found.reliability[0].chance:.4f})"
    joint = found.losses["joint"][:, 0]
    assert first[3] == f"{joint.mean():.4f} ± {joint.std(ddof=1) / np.sqrt(40):.4f}"
    shares = [np.mean(np.abs(found.positions["policy value"][:, 0] - 0.5) <= level / 2) for level in (0.5, 0.8, 0.95)]
    assert first[5] == " / ".join(f"{100 * share:.0f}" for share in shares)
    assert len(header(record(tested=False))) == len(table_rows(record(tested=False))[0]) == len(first) - 2


def test_a_picture_has_a_row_for_each_model():
    picture = imread(io.BytesIO(draw_calibrations({"_one": record(), "$two": record(tested=False)})))
    assert picture.shape[:2] == (860, 1700)
    middle = len(picture) // 2
    assert min(picture[:middle].std(), picture[middle:].std()) > 0.1


def test_a_card_has_the_section_once_and_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "draw_calibrations", lambda found: ", ".join(found).encode())
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(
        InputError, match=r"card needs models that are folders with config.json and README.md, got '.*mine'"
    ):
        write_card(folder, record(), "here")
    (folder / "config.json").write_text("{}")
    (folder / "README.md").write_text(CARD)
    write_card(folder, record(), "here")
    once = (folder / "README.md").read_text()
    assert once.startswith(f"{CARD}\n## Calibration\n\nhere, test split, seed 0: 40 actions")
    assert (folder / "calibration.png").read_bytes() == b"mine"
    (folder / "README.md").write_text(f"{once}\n## Notes\n\nMine.\n")
    write_card(folder, record(tested=False, seed=1), "there")
    twice = (folder / "README.md").read_text()
    assert twice.count("## Calibration") == 1
    assert "P* is not known: ranks are not tested." in twice
    assert twice.endswith("\n\n## Notes\n\nMine.\n")
    assert "here, test" not in twice.replace("there, test", "")
