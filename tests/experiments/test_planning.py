"""The study of planning at its tiny scale: what it tunes and plays, its page, and its verdicts."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import load_results
from gents_gym.experiments import planning as module
from gents_gym.experiments import planning_page
from gents_gym.experiments.planning import planning
from gents_gym.experiments.planning_page import PAPER, Block, Gap, Result, draw, make_page, results
from gents_gym.experiments.regimes import SIZES, Regime
from gents_gym.models.tuned import read_tuned

REGIME = "synthetic-0-9"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return planning(tmp_path_factory.mktemp("study") / "plan", "tiny", workers=1, regimes=(REGIME,))


def test_auto_is_tuned_on_imagined_tasks_of_the_regime(played):
    (entry,) = read_tuned(played.parent / REGIME / "tuned/tuned.json")["entries"]
    assert (entry["horizon"], entry["n_actions"], entry["contexts"]) == (9, 10, 0.0)
    assert entry["env"].startswith("gents_gym/Imagined-v0(model='synthetic-filter'")
    assert f"`auto` plays `{entry['agent']}`" in " ".join(played.read_text().split())


def test_the_page_shows_what_is_there(played):
    text, records = played.read_text(), load_results(played.parent / REGIME / "4").records
    ((_, found),) = records.items()
    mean = found["greedy"].regret["expected"].sum(axis=1).mean()
    assert f"| greedy | 4 | {mean:.1f} ±" in text
    assert text.count("| auto | 4 |") == 1
    goals = text.split("### At most half of TS-Gen's regret")[1].split("###")[0]
    assert f"| {REGIME} | ts-gen(policy=logistic) |" in goals
    assert "too few: 1." in goals
    assert "Not played yet: synthetic-1-6" in " ".join(text.split())
    assert (played.parent / "planning.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_played_is_not_played_again(played):
    told = []
    planning(played.parent, "tiny", workers=1, on_progress=told.append, regimes=(REGIME,))
    assert not any(now.phase == "playing" for now in told)
    assert str(told[-1]).startswith(f"{REGIME}, ")
    assert told[-1].share == 1
    with pytest.raises(InputError, match="seed is 0 there, 1 here"):
        planning(played.parent, "tiny", seed=1, workers=1, regimes=(REGIME,))


def test_eight_regimes_and_three_wrong_models():
    for size in SIZES.values():
        assert len(size.regimes) == 11
        for regime in size.regimes.values():
            for agent, count in size.plan(regime).items():
                assert count % size.block[regime.long] == 0, agent
    with pytest.raises(InputError, match="unknown regime 'synthetic-0-50'; did you mean 'synthetic-0-500'"):
        planning("nowhere", "small", regimes=("synthetic-0-50",))


def test_scales_share_a_folder():
    """An evaluation is refused in a folder with blocks of another size."""
    blocks = {}
    for size in SIZES.values():
        for name, regime in size.regimes.items():
            for count in size.plan(regime).values():
                block = size.block[regime.long]
                assert blocks.setdefault((name, count), block) == block, (name, count)


def record(regrets):
    steps = np.asarray(regrets, float)[:, None]
    return Rollout(np.zeros((len(steps), 1), int), steps, {"expected": steps, "best": steps}, tasks=("one",))


def test_verdicts_are_of_common_tasks():
    rng = np.random.default_rng(0)
    hard = rng.normal(50, 20, 400)
    paper = Regime("synthetic", 1.0, 500).paper
    records = {
        paper: record(2.5 * hard[:100] + rng.normal(0, 1, 100)),
        "greedy": record(hard + 3),
        "softmax": record(hard - 2 + rng.normal(0, 1, 400)),
        "auto": record(hard),
    }
    best, half, tail = results(Block(Regime("synthetic", 1.0, 500), records, None))
    assert best.rival.startswith("softmax")
    assert (best.gap.tasks, best.verdict) == (400, "not met")
    assert best.gap.mean == pytest.approx(2, abs=0.2)
    assert (half.gap.tasks, half.verdict) == (100, "met")
    own, theirs = hard[:100], records[paper].regret["expected"][:, 0]
    assert half.sides == pytest.approx((own.mean(), theirs.mean() / 2))
    assert tail.sides == pytest.approx((np.quantile(own, 0.95), np.quantile(theirs, 0.95)))
    assert tail.gap.mean == pytest.approx(tail.sides[0] - tail.sides[1])
    assert tail.verdict == "met"
    assert tail.gap.low < tail.gap.mean < tail.gap.high


@pytest.mark.parametrize(
    ("goal", "low", "high", "tasks", "verdict"),
    [
        (0, -1, 2, 20, "level"),
        (1, -1, 2, 20, "not shown"),
        (1, -2, -1, 20, "met"),
        (0, 1, 2, 20, "not met"),
        (2, -2, -1, 19, "too few"),
    ],
)
def test_verdicts(goal, low, high, tasks, verdict):
    assert Result(goal, "", (0, 0), Gap("", (low + high) / 2, low, high, tasks)).verdict == verdict


def test_rows_are_ordered_and_compared_on_common_tasks():
    """The slow agent is worse on the tasks that it shares with auto, although its own mean is lower."""
    hard = np.arange(100.0)
    regime = SIZES["small"].regimes["synthetic-0-500"]
    records = {"gen-ucb": record(hard[:40] + 5), "greedy": record(hard - 1), "auto": record(hard)}
    text = make_page("gents-gym study planning", SIZES["small"], [Block(regime, records, None)])
    section = text.split("### Synthetic, one context, 500 decisions: `synthetic-0-500`")[1]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| ")]
    assert [(row[0], row[1], row[5]) for row in rows[1:]] == [
        ("| greedy", "100", "+1.0 (1.0 to 1.0)"),
        ("| auto", "100", "–"),
        ("| gen-ucb", "40", "-5.0 (-5.0 to -5.0)"),
    ]
    words = " ".join(text.split())
    assert "Fewer tasks than at this scale: `greedy` 100 of 200, `gen-ucb` 40 of 80, `auto` 100 of 200." in words
    assert "With less than this scale plays, as their sections say: synthetic-0-500." in words
    assert "Not played yet: `ts-gen(policy=logistic)`, `softmax`," in words
    assert "### No more regret than the best rival" in text
    assert "### At most half of TS-Gen's regret" not in text  # it has not played


def test_the_figure_names_regimes_in_words_and_has_one_color_for_the_papers_agent(monkeypatch):
    figures = []
    monkeypatch.setattr(planning_page, "to_bytes", lambda figure: figures.append(figure) or b"")
    regimes = [Regime("synthetic", 1.0, 500), Regime("news", 0.0, 2000), Regime("news", 1.0, 500, wrong="news-paper")]
    agents = [("ts-gen(policy=logistic)",), ("ts-gen(policy=mlp)", "ts-gen"), ("ts-gen",)]
    records = [{agent: record([1, 2]) for agent in each} for each in agents]
    draw([Block(regime, each, None) for regime, each in zip(regimes, records, strict=True)])
    panels = figures[0].axes
    assert [panel.get_title() for panel in panels] == [
        "synthetic, contexts vary\n500 decisions, 2 tasks",
        "news, one context\n2,000 decisions, 2 tasks",
        "on news-paper, contexts vary\n500 decisions, 2 tasks",
    ]
    colors = [
        (label.get_text(), line.get_color())
        for panel in panels
        for label, line in zip(
            panel.get_yticklabels(), [line for line in panel.lines if line.get_marker() == "d"], strict=True
        )
    ]
    assert [name for name, _ in colors] == [PAPER, PAPER, "ts-gen", "ts-gen"]
    assert len({*colors}) == 2


def test_results_of_another_scale_are_on_the_page(played, tmp_path, monkeypatch):
    """Of each agent the most tasks are read, also from a folder that was moved; what was not tuned is left out."""
    folder = tmp_path / "moved"
    shutil.copytree(played.parent, folder)
    larger = replace(SIZES["tiny"], light=(8, 8), heavy=(6, 6))
    monkeypatch.setitem(SIZES, "tiny", larger)
    monkeypatch.setattr(module, "_play", lambda *_: None)
    text = " ".join(planning(folder, "tiny", regimes=(REGIME,)).read_text().split())
    assert "`auto` 4 of 8" in text
    assert "| auto | 4 |" in text
    monkeypatch.setattr(module, "_entry", lambda *_: {**entry_of(folder), "agent": "gen-ucb"})
    text = " ".join(planning(folder, "tiny", regimes=(REGIME,)).read_text().split())
    assert "| auto | 4 |" not in text
    assert "Not played yet: `auto`" in text


def entry_of(folder):
    (entry,) = read_tuned(folder / REGIME / "tuned/tuned.json")["entries"]
    numbers = next(iter(entry["rungs"][-1]["agents"].values()))
    return {**entry, "rungs": [{**rung, "agents": {**rung["agents"], "gen-ucb": numbers}} for rung in entry["rungs"]]}
