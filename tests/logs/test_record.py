import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from gents_gym import Bernoulli, Categorical, Gaussian, InputError, Logs, Roles, read_logs
from gents_gym.logs.check import check_data
from gents_gym.logs.encoding import Encoding
from gents_gym.parquet import MOST

LOG = {
    "task": ["a", "a", "b", "a", "b"],
    "item": [0, 1, 0, 0, 1],
    "x1": [0.1, 0.2, 0.3, 0.4, 0.5],
    "x2": [1.0, 2.0, 3.0, 4.0, 5.0],
    "click": [0, 1, 1, 1, 0],
    "z": [10.0, 11.0, 20.0, 10.0, 21.0],
    "ts": [5, 4, 3, 2, 1],
    "p": [0.5, 0.5, 0.25, 0.5, 1.0],
}
ROLES = Roles("item", "click", ("x*",), ("z",), task="task")
ONE = Roles("item", "click", ("x1",))
LOGS_PAGE = Path(__file__).parents[2] / "docs" / "logs.md"


def write(folder, columns=LOG, kind="parquet"):
    path = folder / f"log.{kind}"
    (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(pa.table(columns), path)
    return path


def sources(folder):
    return write(folder), write(folder, kind="csv"), pa.table(LOG), pd.DataFrame(LOG)


def test_all_kinds_of_table_give_the_same_logs(tmp_path):
    for data in sources(tmp_path):
        logs = read_logs(data, ROLES)
        assert logs.actions.tolist() == [0, 1, 2, 0, 3]
        assert logs.action_ids == ("a/0", "a/1", "b/0", "b/1")
        assert logs.action_features.tolist() == [[10], [11], [20], [21]]
        assert np.array_equal(logs.contexts, np.float32([LOG["x1"], LOG["x2"]]).T)
        assert logs.outcomes.tolist() == LOG["click"]
        assert logs.tasks.tolist() == [0, 0, 1, 0, 1]
        assert [(rows.tolist(), own.tolist()) for rows, own in logs.streams()] == [
            ([0, 1, 3], [0, 1]),
            ([2, 4], [2, 3]),
        ]
        assert (logs.times, logs.propensities) == (None, None)
        assert logs.found.unused == ("ts", "p")


def test_rows_are_sorted_by_time_and_keep_their_propensities():
    logs = read_logs(pa.table(LOG), Roles("item", "click", ("x1",), time="ts", propensity="p"))
    assert logs.times.tolist() == [1, 2, 3, 4, 5]
    assert logs.propensities.tolist() == LOG["p"][::-1]
    assert logs.outcomes.tolist() == LOG["click"][::-1]
    assert np.array_equal(logs.contexts[:, 0], np.float32(LOG["x1"][::-1]))
    assert [logs.action_ids[action] for action in logs.actions] == [str(item) for item in LOG["item"][::-1]]
    days = pa.table({**LOG, "ts": np.array(["2026-01-02", "2026-01-01"] * 2 + ["2026-01-03"], "datetime64[s]")})
    assert np.diff(read_logs(days, Roles("item", "click", ("x1",), time="ts")).times).tolist() == [0, 86400, 0, 86400]


@pytest.mark.parametrize(
    "dates",
    [
        ["2026-01-02", "2026-01-01", "2026-01-04"],
        ["2026-01-02 12:00:00", "2026-01-01T12:00", "2026-01-01 00:00:00"],
        ["2026-01-02 12:00:00.25", "2026-01-02 12:00:00.5", "2026-01-02 12:00:01.000001"],
        ["2026-01-02 12:00:00Z", "2026-01-02 12:00:00+01:00", "2026-01-02 12:30:00Z"],
    ],
)
@pytest.mark.parametrize("dtype", [object, "string"])
def test_texts_of_dates_are_dates_in_every_kind_of_table(tmp_path, dates, dtype):
    log = {"item": [0, 1, 0], "click": [0, 1, 1], "x1": [1.0, 2.0, 3.0], "ts": dates}
    roles = Roles("item", "click", ("x1",), time="ts")
    frame = pd.DataFrame(log).astype({"ts": dtype})
    times = read_logs(frame, roles).times
    expected = sorted(pd.Timestamp(date).timestamp() for date in dates)
    np.testing.assert_allclose(times, expected, rtol=0, atol=1e-6)
    assert np.array_equal(times, read_logs(write(tmp_path, log, "csv"), roles).times)
    with pytest.raises(InputError, match="must hold numbers or dates, as 2026-01-31 12:00:00, got 'noon' in row 1"):
        read_logs(frame.assign(ts=[dates[0], "noon", dates[2]]), roles)


def test_uniform_propensities_are_those_of_a_tasks_own_actions():
    three = {"item": [0, 1, 2, 0, 1], "task": [0, 0, 0, 1, 1], "x1": np.zeros(5), "click": np.zeros(5)}
    one = Roles("item", "click", ("x1",), propensity="uniform")
    assert np.allclose(read_logs(pa.table(three), one).propensities, 1 / 3)
    several = Roles("item", "click", ("x1",), propensity="uniform", task="task")
    assert np.allclose(read_logs(pa.table(three), several).propensities, [1 / 3] * 3 + [1 / 2] * 2)


def test_features_may_be_in_a_table_of_their_own():
    log = {name: LOG[name] for name in ("item", "x1", "click")}
    log["z"] = [None, 1, 2, 3, 4]  # of the same name, and not used
    features = pa.table({"item": [2, 1, 0], "z": [7.0, 5.0, 6.0]})
    logs = read_logs(pa.table(log), Roles("item", "click", ("x1",), ("z",)), action_table=features)
    assert logs.found.unused == ("z",)
    assert logs.action_features.tolist() == [[6], [5]]  # an action without rows is left out
    for table, message in (
        (pa.table({"item": [1], "z": [5.0]}), "must have the features of every action, got none for '0'"),
        (pa.table({"item": [1, 0, 1], "z": [5.0] * 3}), "must have each action once, got '1' again in row 2"),
        (pa.table({"id": [1, 0], "z": [5.0] * 2}), "must have the column 'item', got id, z"),
        (pa.table({"item": [1, 0], "z": [5.0, None]}), "got none for 'z' in row 1"),
    ):
        with pytest.raises(InputError, match=message):
            read_logs(pa.table(log), Roles("item", "click", ("x1",), ("z",)), action_table=table)


def test_categories_become_an_entry_per_level_and_a_model_s_levels_are_followed():
    def table(devices):
        return pa.table({"item": [0, 1, 0], "click": [0, 1, 0], "x": [1, 2, 3], "device": devices})

    roles = Roles("item", "click", ("x", "device"))
    logs = read_logs(table(["tv", "pc", "tv"]), roles)
    assert logs.contexts.tolist() == [[1, 0, 1], [2, 1, 0], [3, 0, 1]]
    kept = Encoding.from_json(logs.encoding.to_json())
    assert kept == logs.encoding
    assert read_logs(table(["pc", "pc", "pc"]), roles, encoding=kept).contexts[:, 1:].tolist() == [[1, 0]] * 3
    with pytest.raises(InputError, match="level that the model knows, pc, tv, got 'fridge' in row 1"):
        read_logs(table(["pc", "fridge", "tv"]), roles, encoding=kept)
    with pytest.raises(InputError, match="columns must be those of the model, x, device, got x"):
        read_logs(table(["pc", "pc", "tv"]), Roles("item", "click", ("x",)), encoding=kept)
    with pytest.raises(InputError, match="must hold texts, as the model's, got int64"):
        read_logs(table([1, 2, 3]), roles, encoding=kept)


def test_a_feature_s_level_that_the_model_does_not_know_is_named_by_its_line(tmp_path):
    path, roles = tmp_path / "log.csv", Roles("item", "click", ("x",), ("kind",))
    path.write_text("item,x,click,kind\na,1,0,old\na,1,0,old\nb,2,1,new\n")
    kept = read_logs(path, roles).encoding
    path.write_text("item,x,click,kind\na,1,0,old\na,1,0,old\nb,2,1,used\n")
    with pytest.raises(InputError, match="level that the model knows, new, old, got 'used' in line 4"):
        read_logs(path, roles, encoding=kept)


def test_outcomes_decide_what_they_are_unless_it_is_said():
    stars = pa.table({**LOG, "click": [0, 1, 2, 1, 0]})
    assert read_logs(pa.table(LOG), ONE).likelihood == Bernoulli()
    assert read_logs(stars, ONE).likelihood == Gaussian()
    assert read_logs(stars, ONE, likelihood=Categorical(3)).likelihood == Categorical(3)
    with pytest.raises(InputError, match="outcome in the table 'data' must be a whole number from 0 to 1, got 2"):
        read_logs(stars, ONE, likelihood=Categorical(2))


@pytest.mark.parametrize(
    ("changes", "roles", "message"),
    [
        ({}, Roles("item", "click"), "context must name a column of the log, got none; it has task, item"),
        ({}, Roles("item", "clik", ("x1",)), "unknown column for outcome: 'clik'; did you mean 'click'?"),
        ({}, Roles("item", "click", ("u*",)), r"unknown column for context: 'u\*'"),
        ({}, Roles("item", "click", ("*",)), "column 'item' must have one role, got action and context"),
        ({"x1": [0.1, None, 0, float("nan"), 0]}, ONE, "got none for 'x1' in lines 3, 5: fill them in"),
        ({"click": [0, 1, None, 1, 0]}, ONE, "got none for 'click' in line 4"),
        ({"item": ["a", None, "b", "a", "b"]}, ONE, "got none for 'item' in line 3"),
        ({"x1": ["2026-01-01"] * 5}, ONE, "must hold numbers or categories, got date32"),
        ({"x1": [1e39, 0, 0, 0, 0]}, ONE, r"column 'x1' of '.*' must be finite, got 1e\+39 in line 2"),
        ({"p": [0.5, 0, 1, 1, 1]}, Roles("item", "click", ("x1",), propensity="p"), r"\(0, 1\], got 0 in line 3"),
        (
            {"ts": ["2026-01-01", "noon", *["2026-01-01"] * 3]},
            Roles("item", "click", ("x1",), time="ts"),
            "must hold numbers or dates, as 2026-01-31 12:00:00, got 'noon' in line 3",
        ),
        (
            {},
            Roles("item", "click", ("x1",), ("z",)),
            "same in every row of an action, got 10.* and 20.* for action '0'",
        ),
        ({"click": ["0", "1", "no", "1", "0"]}, ONE, "column 'click' of '.*' must hold numbers, got 'no' in line 4"),
    ],
)
def test_bad_logs(tmp_path, changes, roles, message):
    with pytest.raises(InputError, match=message):
        read_logs(write(tmp_path, {**LOG, **changes}, "csv"), roles)
    assert any(re.search(message, fault) for fault in check_data(tmp_path / "log.csv", roles).fatal)


def test_texts_are_refused_with_a_hint():
    words = {"item": np.arange(60) % 2, "click": np.zeros(60), "x": [f"word {i}" for i in range(60)]}
    with pytest.raises(InputError, match="got 60 distinct texts in 60 rows: embed texts first"):
        read_logs(pa.table(words), Roles("item", "click", ("x",)))


def test_ids_that_look_like_numbers_and_empty_cells(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("item,x,click,device\n007,1,0,tv\n7,2,1,\n")
    assert read_logs(path, Roles("item", "click", ("x",))).action_ids == ("007", "7")
    with pytest.raises(InputError, match="got none for 'device' in line 3"):
        read_logs(path, Roles("item", "click", ("x", "device")))
    page = " ".join(LOGS_PAGE.read_text().split())
    words = re.search(r"unless they are in quotes: an empty one, (.*?)\. A missing", page)
    assert {"", *re.findall("`(.*?)`", words[1])} == set(pa.csv.ConvertOptions().null_values)
    path.write_text("item,x,x,click\n007,1,1,0\n")
    with pytest.raises(InputError, match="must have each column once, got 'x' twice"):
        read_logs(path, Roles("item", "click", ("x",)))
    path.write_text("item,x,click\n")
    with pytest.raises(InputError, match="must have rows, got none"):
        read_logs(path, Roles("item", "click", ("x",)))


def test_what_is_no_table(tmp_path):
    (tmp_path / "log.parquet").write_text("no table")
    (tmp_path / "log.csv").write_bytes(b"item,\xff\xfe,click\n007,1,0\n")
    pa.parquet.write_table(pa.table({"x": np.zeros(MOST // 8 + 1)}), tmp_path / "large.parquet", compression="zstd")
    os.mkfifo(tmp_path / "fifo.csv")
    for name in ("log.parquet", "log.csv", "missing.csv", "large.parquet", "fifo.csv"):
        with pytest.raises(InputError, match=f"data must be a Parquet or CSV file, got '.*{name}'"):
            read_logs(tmp_path / name, ONE)
    with pytest.raises(InputError, match="a pyarrow table or a pandas data frame, got int"):
        read_logs(7, ONE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": [0, 2]}, r"action must lie in \[0, 2\), got 2"),
        ({"outcomes": np.zeros(3)}, r"outcomes must have shape \(n,\)=\(2,\), got \(3,\)"),
        ({"propensities": np.array([0.5, 1.5])}, r"propensities must lie in \(0, 1\], got 1.5 in row 1"),
        ({"times": np.array([2.0, 1.0])}, "times must rise from row to row"),
        ({"action_ids": ("a",)}, "action_ids must be A=2 names, got 1"),
    ],
)
def test_arrays_are_checked(changes, message):
    parts = {"actions": [0, 1], "contexts": np.zeros((2, 1)), "outcomes": np.zeros(2), "action_features": np.eye(2)}
    with pytest.raises(InputError, match=message):
        Logs(**{**parts, **changes})


def test_another_separator_is_one_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("item;click;u1\na;1;0.5\n")
    with pytest.raises(InputError, match=r"it has one column; its names are separated by ';', which must be commas"):
        read_logs(path, Roles("item", "click", ("u1",)))


def test_a_table_is_named_with_both_quotes():
    table = pa.table({"item": ["a", "b"], "click": [0, 1], "x": [0.5, 1.5], "z": [1.0, 2.0]})
    logs = read_logs(table, Roles(action="item", outcome="click", context=("x",), action_features=("z",)))
    assert repr(logs).startswith("Logs(the table 'data': 2 rows, ")
