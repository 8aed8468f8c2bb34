import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from gents_gym import ActionRows, Bernoulli, Categorical, Gaussian, InputError
from gents_gym.parquet import MOST
from gents_gym.training.data import RowSets, read_logs

LOG = {
    "task": ["a", "a", "b", "a", "b"],
    "action": [0, 1, 0, 0, 1],
    "x1": [0.1, 0.2, 0.3, 0.4, 0.5],
    "x2": [1.0, 2.0, 3.0, 4.0, 5.0],
    "outcome": [0, 1, 1, 1, 0],
}
FEATURES = {"task": ["a", "a", "b", "b"], "action": [0, 1, 0, 1], "z": [10.0, 11.0, 20.0, 21.0]}


def write(folder, log=LOG, features=FEATURES, kind="parquet"):
    paths = []
    for name, table in (("log", log), ("z", features)):
        path = folder / f"{name}.{kind}"
        (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(pa.table(table), path)
        paths.append(path)
    return paths


def ragged():
    return RowSets(np.zeros((3, 1)), np.arange(12.0)[:, None].repeat(2, 1), np.arange(12) % 2, np.array([0, 2, 3, 12]))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_logs_become_row_sets(tmp_path, kind):
    rows = read_logs(*write(tmp_path, kind=kind))
    assert rows.action_features.tolist() == [[10], [11], [20], [21]]
    assert rows.offsets.tolist() == [0, 2, 3, 4, 5]
    assert np.allclose(rows.contexts, [[0.1, 1], [0.4, 4], [0.2, 2], [0.3, 3], [0.5, 5]])
    assert rows.outcomes.tolist() == [0, 1, 1, 1, 0]


def test_logs_of_one_task_need_no_task_column(tmp_path):
    log = {key: LOG[key] for key in ("action", "x1", "outcome")}
    features = {"action": [1, 0], "z": [5.0, 6.0]}
    rows = read_logs(*write(tmp_path, log, features))
    assert rows.offsets.tolist() == [0, 2, 5]
    assert rows.outcomes.tolist() == [1, 0, 0, 1, 1]


def test_outcomes_of_a_log_decide_what_they_are_unless_it_is_said(tmp_path):
    assert read_logs(*write(tmp_path)).likelihood == Bernoulli()
    stars = {**LOG, "outcome": [0, 1, 2, 1, 0]}
    assert read_logs(*write(tmp_path, stars)).likelihood == Gaussian()
    rows = read_logs(*write(tmp_path, stars), Categorical(3))
    assert rows.likelihood == rows.choose(np.array([1, 0])).likelihood == Categorical(3)
    dollars = read_logs(*write(tmp_path, {**LOG, "outcome": [-3.5, 120.0, 0.0, 1.0, 1e6]}))
    assert dollars.likelihood == Gaussian()
    assert dollars.outcomes.tolist() == [-3.5, 1.0, 120.0, 0.0, 1e6]
    with pytest.raises(InputError, match=r"outcome in '.*log.parquet' must be a whole number from 0 to 1, got 2"):
        read_logs(*write(tmp_path, stars), Categorical(2))
    with pytest.raises(InputError, match=r"outcome in '.*log.parquet' must be 0 or 1, got 2"):
        read_logs(*write(tmp_path, stars), Bernoulli())


def test_rows_carry_their_likelihood():
    parts = (np.zeros((1, 1)), np.zeros((3, 2)), np.array([0, 1, 1]), np.array([0, 3]))
    plain, declared = RowSets(*parts), RowSets(*parts, likelihood=Categorical(4))
    assert (plain.likelihood, declared.likelihood) == (Bernoulli(), Categorical(4))
    assert plain.content_hash == RowSets(*parts, likelihood=Bernoulli()).content_hash
    assert len({plain.content_hash, declared.content_hash, RowSets(*parts, likelihood=Gaussian()).content_hash}) == 3
    actions = ActionRows(np.zeros((1, 1)), np.zeros((1, 3, 2)), np.zeros((1, 3)), likelihood=Gaussian())
    assert RowSets.from_rows(actions).likelihood == Gaussian()
    with pytest.raises(InputError, match="outcomes must be a whole number from 0 to 2, got 7"):
        RowSets(*parts[:2], np.array([0, 7, 1]), parts[3], likelihood=Categorical(3))


def without(table, column):
    return {key: value for key, value in table.items() if key != column}


@pytest.mark.parametrize(
    ("log", "features", "message"),
    [
        (without(LOG, "outcome"), FEATURES, "data must have the column 'outcome'"),
        (without(LOG, "action"), FEATURES, "data must have the column 'action'"),
        (without(LOG, "task"), FEATURES, "data must have the column 'task'"),
        (LOG, without(FEATURES, "task"), "action_features must have the column 'task'"),
        (LOG, without(FEATURES, "z"), "action_features must have columns beside task, action, got none"),
        (
            {**LOG, "x1": [0.1, float("nan"), 0, 0, 0]},
            FEATURES,
            r"column 'x1' of '.*' must be finite, got nan at index",
        ),
        ({**LOG, "x1": [0.1, None, 0, 0, 0]}, FEATURES, r"column 'x1' of '.*' must be finite, got nan at index"),
        ({**LOG, "x1": list("abcde")}, FEATURES, "column 'x1' of '.*' must hold numbers, got string"),
        (
            {**LOG, "outcome": [0, 1, None, 1, 0]},
            FEATURES,
            r"column 'outcome' of '.*' must be finite, got nan at index",
        ),
        (
            {**LOG, "action": [0, 1, 0, 0, 7]},
            FEATURES,
            "actions of action_features alone, got task 'b', action '7'",
        ),
        (
            {**LOG, "action": [0, 1, 0, 0, 0]},
            FEATURES,
            "rows for every action, got none for task 'b', action '1'",
        ),
        (LOG, {**FEATURES, "action": [0, 0, 0, 1]}, "must have each action once, got task 'a', action '0' twice"),
    ],
)
def test_bad_logs(tmp_path, log, features, message):
    with pytest.raises(InputError, match=message):
        read_logs(*write(tmp_path, log, features))


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({**LOG, "action": [0, None, 0, 0, 1]}, "column 'action' of '.*' must hold an id in every row"),
        ({**LOG, "action": [[0], [1], [0], [0], [1]]}, "column 'action' of '.*' must hold an id in every row"),
        ({**LOG, "x1": [1e39, 0, 0, 0, 0]}, "column 'x1' of '.*' must be finite, got inf"),
    ],
)
def test_strange_columns(tmp_path, log, message):
    with pytest.raises(InputError, match=message):
        read_logs(*write(tmp_path, log))


def test_large_numbers_and_ids_that_look_like_numbers(tmp_path):
    read_logs(*write(tmp_path, {**LOG, "x1": [2**60 + 1, 0, 0, 0, 0]}))
    (tmp_path / "log.csv").write_text("action,x,outcome\n007,1,0\nA9,2,1\n")
    (tmp_path / "z.csv").write_text("action,z\nA9,1\n007,2\n")
    rows = read_logs(tmp_path / "log.csv", tmp_path / "z.csv")
    assert rows.outcomes.tolist() == [1, 0]
    assert (rows.context_names, rows.feature_names) == (("x",), ("z",))
    (tmp_path / "log.csv").write_text("action,x,x,outcome\n007,1,1,0\n")
    with pytest.raises(InputError, match="it has the column 'x' twice"):
        read_logs(tmp_path / "log.csv", tmp_path / "z.csv")
    (tmp_path / "log.csv").write_bytes(b"action,\xff\xfe,outcome\n007,1,0\n")
    with pytest.raises(InputError, match="data must be a Parquet or CSV file"):
        read_logs(tmp_path / "log.csv", tmp_path / "z.csv")


@pytest.mark.parametrize("offsets", [[0, 2, 2], [0, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
def test_offsets_must_give_every_action_rows(offsets):
    with pytest.raises(InputError, match=r"offsets must be N\+1=3 rising numbers from 0 to M=2"):
        RowSets(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2), np.array(offsets))


def test_arrays_are_checked_and_cast():
    rows = RowSets(np.zeros((1, 1)), np.zeros((2, 3)), np.zeros(2), np.array([0, 2]))
    assert rows.contexts.dtype == np.float32
    with pytest.raises(InputError, match="contexts must be finite, got nan"):
        RowSets(np.zeros((1, 1)), np.full((2, 3), np.nan), np.zeros(2), np.array([0, 2]))


def test_files_that_are_no_tables(tmp_path):
    log, z = write(tmp_path)
    log.write_text("no table")
    with pytest.raises(InputError, match="data must be a Parquet or CSV file"):
        read_logs(log, z)
    with pytest.raises(InputError, match="data must be a Parquet or CSV file"):
        read_logs(tmp_path / "missing.parquet", z)


def test_logs_that_unpack_to_far_more_than_their_size_and_fifos(tmp_path):
    pa.parquet.write_table(pa.table({"x": np.zeros(MOST // 8 + 1)}), tmp_path / "large.parquet", compression="zstd")
    os.mkfifo(tmp_path / "fifo.csv")
    for name, message in (("large.parquet", "it unpacks to 26[89] MB"), ("fifo.csv", "it must be a regular file")):
        with pytest.raises(InputError, match=rf"data must be a Parquet or CSV file, got .*{message}"):
            read_logs(tmp_path / name, tmp_path / name)


def test_permuted_sequences_hold_each_row_once():
    rows = ragged()
    batch = rows.resample(np.array([2, 0, 1]), 5, False, np.random.default_rng(0))
    assert batch.weights.sum(1).tolist() == [5, 2, 1]
    seen = batch.contexts[..., 0].numpy()
    assert len(set(seen[0])) == 5
    assert set(seen[0]) <= set(range(3, 12))
    assert sorted(seen[1, :2]) == [0, 1]
    assert seen[2, 0] == 2
    assert np.array_equal(batch.outcomes.numpy()[0], seen[0] % 2)


def test_bootstrapped_sequences_are_uniform_draws_with_replacement():
    rows = ragged()
    batch = rows.resample(np.array([2] * 400), 50, True, np.random.default_rng(0))
    assert (batch.weights == 1).all()
    counts = np.bincount(batch.contexts[..., 0].numpy().astype(int).ravel(), minlength=12)[3:]
    assert (np.abs(counts / counts.sum() - 1 / 9) < 4 * np.sqrt(1 / 9 / counts.sum())).all()
    short = rows.resample(np.array([0]), 50, True, np.random.default_rng(0))
    assert set(short.contexts[0, :, 0].tolist()) == {0, 1}


def test_sequences_in_their_own_order():
    batch = ragged().sequences(np.array([2, 0]), 4)
    assert batch.contexts[0, :, 0].tolist() == [3, 4, 5, 6]
    assert batch.contexts[1, :2, 0].tolist() == [0, 1]
    assert batch.weights.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_choosing_actions_keeps_their_rows():
    chosen = ragged().choose(np.array([2, 0]))
    assert chosen.offsets.tolist() == [0, 9, 11]
    assert chosen.contexts[:, 0].tolist() == [*range(3, 12), 0, 1]


def test_rectangular_rows_and_hashes():
    rows = ActionRows(np.zeros((2, 1)), np.arange(12.0).reshape(2, 3, 2), np.array([[0, 1, 0], [1, 1, 1]]))
    sets = RowSets.from_rows(rows)
    assert sets.offsets.tolist() == [0, 3, 6]
    assert np.array_equal(sets.contexts, rows.contexts.reshape(6, 2))
    assert sets.content_hash != sets.choose(np.array([1, 0])).content_hash
    with pytest.raises(InputError, match="there must be at least one action with rows"):
        RowSets(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0), np.zeros(1))
