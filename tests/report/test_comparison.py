import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from gents_gym import EvaluationConfig, Rollout, evaluate, load_results, rollout
from gents_gym.checks import InputError
from gents_gym.report.comparison import compare, compare_all

TASKS = tuple(range(50))


def record(regret, rewards=None, indices=TASKS):
    """A record of tasks whose totals are given, (B,)."""
    regret = np.asarray(regret, float)[:, None]
    rewards = -regret if rewards is None else np.asarray(rewards, float)[:, None]
    return Rollout(np.zeros(regret.shape, int), rewards, {"expected": regret}, indices)


@pytest.fixture
def records():
    """Tasks that differ far more than agents: "near" is better than "far" by 1 ± 1 in each."""
    rng = np.random.default_rng(0)
    hard = rng.gamma(2, 20, len(TASKS))
    return {
        "far": record(hard),
        "near": record(hard - 1 + rng.normal(size=len(TASKS))),
        "twin": record(hard + 5 * rng.normal(size=len(TASKS))),
    }


def sums(found, measure):
    return (found.rewards if measure == "reward" else found.regret[measure])[:, 0]


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("measure", ["expected", "reward"])
def test_intervals_are_those_of_the_paired_t_test(records, measure, confidence):
    for (one, other), found in compare_all(records, measure, confidence).items():
        truth = stats.ttest_rel(sums(records[one], measure), sums(records[other], measure))
        assert (found.low, found.high) == pytest.approx(truth.confidence_interval(confidence))
        assert found.mean == pytest.approx((found.low + found.high) / 2)
        assert (found.verdict != 0) == (truth.pvalue < 1 - confidence)
        assert found == compare(records, one, other, measure, confidence)


def test_pairing_shows_what_means_alone_do_not(records):
    near, far = (sums(records[name], "expected") for name in ("near", "far"))
    assert stats.ttest_ind(near, far).pvalue > 0.5
    assert compare(records, "near", "far").verdict == 1
    assert compare(records, "far", "near").verdict == -1


def test_less_regret_and_more_reward_are_better(records):
    regret, reward = (compare(records, "near", "far", measure) for measure in ("expected", "reward"))
    assert regret.mean < 0 < reward.mean
    better = np.mean([a < b for a, b in zip(*(sums(records[n], "expected") for n in ("near", "far")), strict=True)])
    assert regret.share == reward.share == better
    assert 0.5 < better < 1


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    skewed = rng.exponential(size=(2000, len(TASKS))) - 1  # true mean 0
    zeros = record(np.zeros(len(TASKS)))
    found = [compare({"a": record(row), "b": zeros}, "a", "b").verdict for row in skewed]
    assert 0.03 < np.mean(np.array(found) != 0) < 0.08


def test_words(records):
    found = compare(records, "near", "far")
    words = f"{-found.mean:.2f} less expected regret per task (95 % interval {-found.high:.2f} to {-found.low:.2f}"
    assert str(found) == f"near beats far: {words}, 50 paired tasks)"
    assert str(compare(records, "far", "near")) == str(found)
    assert str(compare(records, "near", "far", "reward")).startswith(f"near beats far: {-found.mean:.2f} more reward")
    even = compare(records, "twin", "far")
    assert str(even) == (
        f"no difference is shown between twin and far: {even.mean:+.2f} expected regret per task, "
        f"the first less the second (95 % interval {even.low:.2f} to {even.high:.2f}, 50 paired tasks)"
    )


def test_equals_are_not_told_apart(records):
    found = compare({"a": records["far"], "b": records["far"]}, "a", "b")
    assert (found.mean, found.low, found.high, found.verdict, found.share) == (0, 0, 0, 0, 0)


def test_one_task_tells_nothing():
    alone = {"a": record([1.0], indices=(0,)), "b": record([9.0], indices=(0,))}
    found = compare(alone, "a", "b")
    assert (found.mean, found.verdict) == (-8, 0)
    assert np.isnan([found.low, found.high]).all()
    assert str(found) == "one task is not enough to compare a with b"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nar", "far"), "unknown agent 'nar'; did you mean 'near'"),
        (("near", "fax"), "unknown reference 'fax'; did you mean 'far'"),
        (("near", "far", "best"), "unknown measure 'best'; known: expected, reward"),
        (("near", "far", "reward", 1.0), "confidence must lie between 0 and 1, got 1.0"),
        (("near", "far", "reward", "x"), "confidence must be a number, got 'x'"),
    ],
)
def test_bad_arguments(records, arguments, message):
    with pytest.raises(InputError, match=message):
        compare(records, *arguments)


def test_other_tasks_cannot_be_compared(records):
    other = {**records, "far": record(np.zeros(len(TASKS)), indices=TASKS[::-1])}
    for call in (lambda: compare(other, "near", "far"), lambda: compare_all(other, "expected")):
        with pytest.raises(InputError, match="records must have the same tasks"):
            call()


def test_the_same_numbers_of_other_tasks_cannot_be_compared(tmp_path):
    """Two folders of different seeds: their tasks have the same numbers, and nothing else in common."""
    env = "gents_gym/Synthetic-v0(horizon=3)"
    found = {
        seed: evaluate(EvaluationConfig(agents, (env,), tasks=4, block=2, seed=seed), tmp_path / name, workers=1)
        for name, seed, agents in (("one", 0, ("lints",)), ("other", 1, ("linucb",)))
    }
    again = evaluate(EvaluationConfig(("random",), (env,), tasks=4, block=2), tmp_path / "again", workers=1)
    whole = evaluate(EvaluationConfig(("random",), (env,), tasks=4, block=4), tmp_path / "whole", workers=1)
    mine = found[0].records[env]
    with pytest.raises(InputError, match="records must have the same tasks to be compared, got tasks with different"):
        compare({**mine, **found[1].records[env]}, "lints", "linucb")
    with pytest.raises(InputError, match="which shows in blocks of the same size, got 2 and 1"):
        compare({**mine, **whole.records[env]}, "lints", "random")
    assert compare({**mine, **load_results(tmp_path / "again").records[env]}, "lints", "random").tasks == 4
    assert again.records[env]["random"].tasks == mine["lints"].tasks


def test_played_records_of_other_seeds_cannot_be_compared():
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3, autoreset_mode="Disabled")
    found = {f"seed {seed}": rollout(envs, "random", seed) for seed in (0, 1)}
    with pytest.raises(InputError, match="got tasks with different hashes"):
        compare(found, "seed 0", "seed 1")
