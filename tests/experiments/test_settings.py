"""The study of settings at its tiny scale: its page and figure, its goals, and that it goes on where it was."""

import numpy as np
import pytest

from gents_gym.drawing.board import Sheet
from gents_gym.drawing.style import AGENTS
from gents_gym.evaluation.measures import totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import load_results
from gents_gym.experiments import settings_page
from gents_gym.experiments.conditions import AXES, SIZES
from gents_gym.experiments.settings import settings
from gents_gym.experiments.settings_page import Found, draw, goals


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "settings"
    settings(out, "tiny", workers=1, regimes=("delay",))
    return settings(out, "tiny", workers=1, regimes=("drift",))


def test_the_page_shows_what_was_played(played):
    text = played.read_text()
    records = load_results(played.parent / "delay/100/all").records[AXES["delay"].spec("100", SIZES["tiny"].horizon)]
    values = totals(records["greedy"], "expected")
    assert f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(2):.1f}" in text
    assert "| ts-gen(model=forgetting) | 2 |" in text
    assert "Not played yet: turnover 0, turnover 0.01" in " ".join(text.split())
    assert (played.parent / "settings.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_played_is_not_played_again(played):
    files = {path: path.stat().st_mtime_ns for path in played.parent.glob("*/*/**/*.safetensors")}
    assert len(files) == 6  # two models of each of three rates
    told = []
    settings(played.parent, "tiny", workers=1, on_progress=told.append, regimes=("drift",))
    assert told[-1].share == 1
    assert not any(now.phase == "playing" for now in told)
    assert {path: path.stat().st_mtime_ns for path in files} == files


def record(*regrets):
    """A record of tasks with one decision each."""
    values = np.array(regrets, np.float64)[:, None]
    return Rollout(np.zeros(values.shape, int), values, {"expected": values, "best": values}, tasks=("a",))


def test_goals_are_met_or_not():
    three = {"greedy": record(4, 5), "greedy(model=joint)": record(1, 2.5), "greedy(model=exact)": record(0, 1)}
    (half,) = goals(Found(AXES["correlation"], {"0.5": three}))
    assert (half.mean, half.tasks) == (-0.75, 2)  # 1 - 2 and 2.5 - 3
    assert half.verdict == "not shown"
    delay = {"0": {"ts-gen": record(1, 2), "greedy": record(1, 1)}}
    delay["10"] = {"ts-gen": record(3, 4.1, 9), "greedy": record(2, 2)}  # it went on at one level alone
    (least,) = goals(Found(AXES["delay"], delay))
    assert least.goal == "delay 10: increase of ts-gen − that of greedy ≤ 0"
    assert least.mean == pytest.approx(1.05)
    assert least.verdict == "not met"
    rates = {
        "0.005": {
            f"ts-gen(model={name})": record(*both) for name, both in {"still": (9, 9.1), "forgetting": (1, 1)}.items()
        }
    }
    assert [gap.verdict for gap in goals(Found(AXES["drift"], rates))] == ["met"]
    averaged = [f"ts-gen(model={name}, samples=8, m=64)" for name in ("forgetting", "still")]
    assert {*averaged} < {*AXES["drift"].agents}
    (gap,) = goals(Found(AXES["drift"], {"0.02": {averaged[0]: record(2, 3.2), averaged[1]: record(1, 2.1)}}))
    assert gap.goal == "drift 0.02: ts-gen(samples=8, m=64) on forgetting − on still ≤ 0"
    assert gap.verdict == "not met"


def test_an_agent_has_one_style_in_all_panels_and_its_name_at_the_end_of_its_curve(monkeypatch):
    sheets = []
    monkeypatch.setattr(settings_page, "to_bytes", lambda figure: sheets.append(figure) or b"")
    monkeypatch.setattr(settings_page, "Sheet", lambda *given: sheets.append(given[0]) or Sheet(*given))
    levels = {
        "drift": {"0": {"greedy(model=still)": record(1, 2)}, "0.02": {"greedy(model=still)": record(4, 6)}},
        "correlation": {"0": {"greedy": record(1, 2), "greedy(model=joint)": record(7, 9)}},
    }
    draw([Found(axis, levels.get(name, {})) for name, axis in AXES.items()])
    (still,), (filtered, joint) = sheets[0]
    assert [(name.text, name.end) for name in (still, filtered, joint)] == [
        ("greedy(model=still)", 5), ("greedy", 1.5), ("greedy(model=joint)", 8)
    ]  # fmt: skip
    assert still.look.color == filtered.look.color == joint.look.color == AGENTS["greedy"]
    assert len({still.look.dash, filtered.look.dash, joint.look.dash}) == 3
    assert not any(panel.get_legend() for panel in sheets[1].axes)
