"""The study of imagined against real regret at its tiny scale."""

import pytest

from gents_gym import InputError
from gents_gym.evaluation.store import load_results
from gents_gym.experiments.imagined import imagined


def test_the_page_compares_imagined_and_real_regret(tmp_path):
    page = imagined(tmp_path / "study", "tiny", workers=1, regimes=("synthetic-filter",))
    text, records = page.read_text(), load_results(page.parent / "synthetic-filter").records
    assert len(records) == 2
    means = [
        part["softmax(model='synthetic-filter')"].regret["expected"].sum(axis=1).mean() for part in records.values()
    ]
    (row,) = [line for line in text.splitlines() if line.startswith("| softmax ")]
    assert [cell.split(" ±")[0].strip() for cell in row.split("|")[2:4]] == [f"{mean:.1f}" for mean in means]
    assert "2 imagined and 2 real tasks of 6 decisions, 3 agents; rank correlation" in " ".join(text.split())
    assert (page.parent / "imagined.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="seed is 0 there, 1 here"):
        imagined(page.parent, "tiny", seed=1, regimes=("synthetic-filter",))


def test_models_are_checked(tmp_path):
    with pytest.raises(InputError, match="unknown regime 'news-filer'; did you mean 'news-filter'"):
        imagined(tmp_path, "tiny", regimes=("news-filer",))
