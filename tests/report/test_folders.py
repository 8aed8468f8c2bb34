import numpy as np
import pytest
from scipy import stats

from gents_gym import EvaluationConfig, InputError, evaluate, load_results
from gents_gym.report.comparison import compare, unpaired_difference
from gents_gym.report.folders import compare_folders

ENV = "gents_gym/Synthetic-v0(horizon=5, n_actions=3)"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Runs that share all, half or none of their tasks, or their environment."""
    top = tmp_path_factory.mktemp("folders")
    runs = {
        "one": (("linucb", "random"), {}),
        "two": (("linucb", "lints"), {}),
        "half": (("linucb",), {"tasks": 10}),
        "seed": (("linucb",), {"seed": 1}),
        "blocks": (("random",), {"block": 4}),
        "other": (("linucb",), {"env": ("gents_gym/Synthetic-v0(horizon=4, n_actions=3)",)}),
        "oracle": (("linucb",), {"oracle": "least-squares"}),
    }
    for name, (agents, changes) in runs.items():
        evaluate(EvaluationConfig(agents, **{"env": (ENV,), "tasks": 20, "block": 5, **changes}), top / name, workers=1)
    return top


def test_the_same_tasks_are_paired(folders):
    one, two = folders / "one", folders / "two"
    heading, line = compare_folders(one, two)
    assert heading == f"{ENV}: 20 tasks are the same in both folders, so the comparison is paired"
    assert line == f"  linucb of {one} and linucb of {two} have the same expected regret in all tasks (20 paired tasks)"
    lines = compare_folders(one, two, ("random", "lints"), "best")
    records = {**load_results(one).records[ENV], **load_results(two).records[ENV]}
    words = str(compare(records, "random", "lints", "best"))
    assert lines[1].replace(f" of {one}", "").replace(f" of {two}", "") == f"  {words}"


def test_a_part_of_the_tasks_is_paired(folders):
    lines = compare_folders(folders / "one", folders / "half")
    assert lines[0] == f"{ENV}: 10 tasks of 20 and 10 are the same in both folders, so the comparison is paired"
    assert "10 paired tasks" in lines[1]


def test_other_tasks_are_unpaired_and_it_is_said(folders):
    lines = compare_folders(folders / "one", folders / "seed")
    assert lines[0] == (
        f"{ENV}: no task is the same in both folders (seed 0 and 1), so the comparison is unpaired, "
        "with wider intervals"
    )
    assert "unpaired, 20 and 20 tasks" in lines[1]
    lines = compare_folders(folders / "one", folders / "blocks", ("random",))
    assert "(block 5 and 4), so the comparison is unpaired" in lines[0]


def test_all_pairs_if_no_agent_is_in_both(folders):
    assert len(compare_folders(folders / "half", folders / "blocks")) == 2
    assert len(compare_folders(folders / "two", folders / "blocks")) == 1 + 2


def test_other_oracles_leave_what_does_not_depend_on_them(folders):
    assert "best regret" in compare_folders(folders / "one", folders / "oracle")[1]
    with pytest.raises(InputError, match="unknown measure 'expected'; known: best, reward"):
        compare_folders(folders / "one", folders / "oracle", measure="expected")


@pytest.mark.parametrize(
    ("second", "arguments", "message"),
    [
        (
            "other",
            {},
            r"'.*one' and '.*other' must share an environment to be compared, got .*horizon=5.* and .*horizon=4",
        ),
        ("none", {}, "^second must be the folder of an evaluation"),
        ("two", {"agents": ("lints",)}, "unknown agent 'lints'"),
        ("two", {"agents": ("a", "b", "c")}, "agents must be one or two, the first folder's and the second's, got 3"),
        ("two", {"measure": "bst"}, "unknown measure 'bst'; did you mean 'best'"),
    ],
)
def test_bad_input(folders, second, arguments, message):
    with pytest.raises(InputError, match=message):
        compare_folders(folders / "one", folders / second, **arguments)


def test_a_missing_folder_is_named_as_its_argument(folders):
    with pytest.raises(InputError, match=r"^first must be the folder of an evaluation, .* got '.*none'"):
        compare_folders(folders / "none", folders / "one")


def test_the_unpaired_interval_is_welchs():
    rng = np.random.default_rng(0)
    one, other = rng.gamma(2, 3, 30), rng.gamma(3, 2, 17)
    found = unpaired_difference(("a", "b"), "best", one, other)
    truth = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(truth))
    assert found.mean == pytest.approx(one.mean() - other.mean())
    assert (found.tasks, found.reference_tasks) == (30, 17)
    assert np.isnan(found.share)
    same = unpaired_difference(("a", "b"), "best", np.ones(3), np.ones(3))
    assert (same.low, same.high, same.verdict) == (0, 0, 0)
    single = unpaired_difference(("a", "b"), "best", np.ones(3), np.ones(1))
    assert str(single) == "one task is not enough to compare a with b"
