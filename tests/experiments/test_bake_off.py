"""Tests the bake-off at its tiny scale: its page, its figure, and that it continues where it stopped."""

import pytest

from gents_gym import InputError, make_agent
from gents_gym.evaluation.store import load_results
from gents_gym.experiments.bake_off import SIZES, bake_off
from gents_gym.experiments.ranks import average_ranks
from gents_gym.types import Fittable


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "bake"
    return bake_off(out, "tiny", workers=1)


def test_the_page_ranks_all_agents_but_the_oracle(played):
    text = played.read_text()
    records = {env: dict(part) for env, part in load_results(played.parent / "run").records.items()}
    assert [part.pop("oracle").privileged for part in records.values()] == [True, True]
    for agent, rank in average_ranks(records).items():
        assert f"| {agent} | {rank.mean:.2f} | {rank.low:.2f} to {rank.high:.2f} |" in text
    assert "| oracle (privileged) | – |" in text
    assert "iris 12, wine 12" in " ".join(text.split())
    assert (played.parent / "bake-off.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_played_is_not_played_again(played):
    cells = {path: path.stat().st_mtime_ns for path in (played.parent / "run/cells").iterdir()}
    told = []
    bake_off(played.parent, "tiny", workers=1, on_progress=told.append)
    assert (told[-1].over, told[-1].total) == (8, 8)
    assert not any(now.phase == "playing" for now in told)
    assert {path: path.stat().st_mtime_ns for path in cells} == cells


def test_nobody_learns_from_labelled_rows():
    """Linear agents are fittable in general; here none of them has anything to fit."""
    for agent in SIZES["full"].agents:
        assert "prior=fitted" not in agent
        made = make_agent(agent)
        if not isinstance(made, Fittable):
            assert getattr(made, "model", "untrained") == "untrained"


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "bake-off.md").write_text("# My notes\n")
    with pytest.raises(InputError, match="is not of a study: move it away"):
        bake_off(tmp_path, "tiny")
    with pytest.raises(InputError, match="unknown scale 'smal'; did you mean 'small'"):
        bake_off(tmp_path, "smal")
