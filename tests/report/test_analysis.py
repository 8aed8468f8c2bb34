import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gents_gym import Rollout
from gents_gym.checks import InputError
from gents_gym.cli.summary import summary_table
from gents_gym.evaluation.measures import measures, poor_yardstick, totals
from gents_gym.evaluation.store import Evaluation
from gents_gym.report.analysis import choose_baseline, curve, distribution, lift, rliable_scores, summary_rows
from gents_gym.report.tables import to_markdown

REGRETS = ("oracle", "expected", "best")


def record(seed, n_tasks=40, horizon=30, regrets=REGRETS, **given):
    rng = np.random.default_rng(seed)
    steps = {name: rng.gamma(0.5, size=(n_tasks, horizon)) - 0.2 for name in regrets}
    rewards = rng.random((n_tasks, horizon))
    return Rollout(np.zeros((n_tasks, horizon), int), rewards, steps, tuple(range(n_tasks)), **given)


def evaluation(records, agents):
    return Evaluation({"agents": list(agents), "env": list(records)}, records, {})


def test_rows_agree_with_pandas_and_scipy():
    records = {"a": record(0, seconds=2.4), "b": record(1, privileged=True)}
    rows = summary_rows("env", records)
    assert [(row["env"], row["agent"], row["privileged"], row["tasks"]) for row in rows] == [
        ("env", "a", False, 40),
        ("env", "b", True, 40),
    ]
    assert rows[0]["ms_per_decision"] == pytest.approx(2.4e3 / (40 * 30))
    assert np.isnan(rows[1]["ms_per_decision"])
    for row, found in zip(rows, records.values(), strict=True):
        for measure in (*REGRETS, "reward"):
            steps = found.rewards if measure == "reward" else found.regret[measure]
            sums = pd.DataFrame(steps).sum(axis=1)
            assert row[f"{measure}_mean"] == pytest.approx(sums.mean())
            assert row[f"{measure}_se"] == pytest.approx(stats.sem(sums))
            assert row[f"{measure}_median"] == pytest.approx(sums.median())
            assert row[f"{measure}_q90"] == pytest.approx(sums.quantile(0.9))
            assert row[f"{measure}_q99"] == pytest.approx(sums.quantile(0.99))
            assert row[f"{measure}_q01"] == pytest.approx(sums.quantile(0.01))
        assert row["reward_per_decision"] == pytest.approx(found.rewards.mean())


def test_lift_is_the_ratio_of_means_and_its_error_is_right():
    """The spread of the lifts of many samples is what one sample's s.e. says."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        hard = rng.gamma(4, size=(50, 1))  # tasks differ, and both agents meet the same
        pair = [Rollout(np.zeros((50, 1), int), gain * hard + rng.normal(size=(50, 1))) for gain in (3, 2)]
        found.append(lift(*pair))
    lifts, errors = np.array(found).T
    assert lifts.mean() == pytest.approx(0.5, abs=0.01)
    assert errors.mean() == pytest.approx(lifts.std(), rel=0.1)
    one, other = record(0), record(1)
    assert lift(one, other)[0] == pytest.approx(one.rewards.mean() / other.rewards.mean() - 1)
    assert lift(other, other) == (0, 0)
    worthless = Rollout(np.zeros((2, 1), int), np.array([[1.0], [-1.0]]))
    assert np.isnan(lift(one, worthless)).all()
    assert np.isnan(lift(Rollout(np.zeros((1, 1), int), np.ones((1, 1))), worthless)).all()


def test_the_baseline_is_random_or_the_least():
    records = {"a": record(0), "random": record(1), "b": record(2)}
    assert choose_baseline(records) == "random"
    del records["random"]
    least = min(records, key=lambda name: records[name].rewards.mean())
    assert choose_baseline(records) == least
    records[least] = record(0 if least == "a" else 2, privileged=True)
    assert choose_baseline(records) != least


def test_what_all_agents_have_is_measured():
    assert measures({"a": record(0), "b": record(1, regrets=("best",))}) == ("best", "reward")
    assert measures({"a": record(0, regrets=())}) == ("reward",)


def test_curves_keep_the_ends_and_agree_with_a_loop():
    found = record(0, horizon=30)
    steps, mean, error = curve(found, "expected", points=7)
    assert steps[0] == 1
    assert steps[-1] == 30
    assert len(steps) == 7
    for step, here, spread in zip(steps, mean, error, strict=True):
        sums = [sum(task[:step]) for task in found.regret["expected"]]
        assert here == pytest.approx(np.mean(sums))
        assert spread == pytest.approx(stats.sem(sums))
    assert list(curve(found, "expected")[0]) == list(range(1, 31))


def test_distributions_are_empirical():
    found = record(0, n_tasks=50)
    values, shares = distribution(found, "best")
    expected = stats.ecdf(totals(found, "best")).cdf
    assert np.allclose(values, expected.quantiles)
    assert np.allclose(shares, expected.probabilities)
    few, their_shares = distribution(found, "best", points=5)
    assert (few[0], few[-1], len(few)) == (values[0], values[-1], 5)
    assert np.allclose(their_shares, expected.evaluate(few))


def test_scores_have_rliables_shape():
    long, short = record(0, horizon=30), record(1, horizon=10)
    found = evaluation({"one": {"a": long, "b": record(2)}, "two": {"a": short}}, "ab")
    scores = rliable_scores(found)
    assert list(scores) == ["a"]
    assert scores["a"].shape == (40, 2)
    assert np.allclose(scores["a"], np.stack([long.rewards.mean(axis=1), short.rewards.mean(axis=1)], axis=1))
    assert np.allclose(rliable_scores(found, "best")["a"][:, 1], -short.regret["best"].mean(axis=1))


def test_scores_count_the_decisions_that_were_made():
    ended = Rollout(np.array([[0, 0], [0, -1]]), np.array([[1.0, 0.0], [1.0, np.nan]]))
    assert rliable_scores(evaluation({"env": {"a": ended}}, "a"))["a"].tolist() == [[0.5], [1.0]]


def test_scores_need_an_agent_everywhere():
    with pytest.raises(InputError, match="an agent that has played all environments, got none"):
        rliable_scores(evaluation({"one": {"a": record(0)}, "two": {"b": record(1)}}, "ab"))
    with pytest.raises(InputError, match="unknown measure 'bst'; did you mean 'best'"):
        rliable_scores(evaluation({"one": {"a": record(0)}}, "a"), "bst")


def against_oracle(expected, oracle):
    """A record of agents' regrets of tasks, (B,), given what the oracle's own best regret is."""
    regrets = {"oracle": expected, "expected": expected, "best": expected + oracle}
    steps = {name: np.asarray(values, float)[:, None] for name, values in regrets.items()}
    return Rollout(np.zeros((len(expected), 1), int), -steps["best"], steps, tuple(range(len(expected))))


def test_an_oracle_that_is_beaten_is_a_poor_yardstick():
    rng = np.random.default_rng(0)
    oracle = rng.gamma(4, 5, 40)
    greedy = against_oracle(rng.normal(-15, 2, 40), oracle)
    random = against_oracle(rng.normal(30, 2, 40), oracle)
    records = {"random": random, "greedy": greedy}
    said = poor_yardstick(records)
    own, theirs = oracle.mean(), greedy.regret["best"].sum(axis=1).mean()
    assert f"its own best regret is {own:.1f} per task, that of greedy is {theirs:.1f}." in said
    assert measures(records) == ("best", "oracle", "expected", "reward")
    assert said.replace("**", "") in to_markdown("env", records)
    table = summary_table("env", records)
    assert said.rstrip(".") in table.caption
    assert [column.header for column in table.columns][1:5] == ["reward", "best", "oracle", "expected"]
    assert table.columns[5].header == "best\nmedian"


@pytest.mark.parametrize("center", [0.1, 5])
def test_an_oracle_that_is_not_clearly_beaten_stays_the_yardstick(center):
    values = np.array([center - 3, center + 3.1, center, center])
    records = {"a": against_oracle(values, np.ones(4)), "one": against_oracle(np.array([-1.0]), np.ones(1))}
    assert poor_yardstick(records) is None
    assert measures(records) == ("oracle", "expected", "best", "reward")
    assert poor_yardstick({"a": Rollout(np.zeros((2, 1), int), np.zeros((2, 1)))}) is None
