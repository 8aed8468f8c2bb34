"""The study of planning at its tiny scale: what it tunes and plays, its page, and its verdicts."""

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import load_results
from gents_gym.experiments.planning import planning
from gents_gym.experiments.planning_page import Block, Gap, gaps
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
    assert f"| {REGIME} | auto − ½ · ts-gen(policy=logistic) ≤ 0 |" in text
    assert "Not played yet: synthetic-1-6" in text
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
            for agent, count in regime.agents(size).items():
                assert count % size.block[regime.long] == 0, agent
    with pytest.raises(InputError, match="unknown regime 'synthetic-0-50'; did you mean 'synthetic-0-500'"):
        planning("nowhere", "small", regimes=("synthetic-0-50",))


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
    best, half, tail = gaps(Block(Regime("synthetic", 1.0, 500), records, None))
    assert best.goal.startswith("auto − softmax")
    assert (best.tasks, best.verdict) == (400, "not met")
    assert best.mean == pytest.approx(2, abs=0.2)
    assert (half.tasks, half.verdict) == (100, "met")
    own, theirs = hard[:100], records[paper].regret["expected"][:, 0]
    assert tail.mean == pytest.approx(np.quantile(own, 0.95) - np.quantile(theirs, 0.95))
    assert tail.verdict == "met"
    assert tail.low < tail.mean < tail.high
    assert Gap("", 0.5, -1, 2, 9).verdict == "not shown"
