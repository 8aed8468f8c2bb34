import numpy as np
import pytest

from gents_gym import ActionRows, Bernoulli, Categorical, Gaussian, InputError, Logs
from gents_gym.training.data import RowSets


def ragged():
    return RowSets(np.zeros((3, 1)), np.arange(12.0)[:, None].repeat(2, 1), np.arange(12) % 2, np.array([0, 2, 3, 12]))


def test_rows_of_a_log_action_by_action():
    features, contexts = np.array([[1], [2], [3]]), np.arange(5.0)[:, None]
    logs = Logs([2, 0, 2, 0, 2], contexts, np.array([0, 1, 1, 1, 0]), features, tasks=np.array([1, 0, 1, 0, 1]))
    rows = RowSets.from_logs(logs)
    assert rows.action_features.tolist() == [[1], [3]]
    assert rows.offsets.tolist() == [0, 2, 5]
    assert rows.contexts[:, 0].tolist() == [1, 3, 0, 2, 4]
    assert rows.outcomes.tolist() == [1, 1, 0, 1, 0]
    assert [part[:, 0].tolist() for part in rows.task_contexts] == [[1, 3], [0, 2, 4]]
    assert rows.columns == {"sha256": logs.content_hash}
    chosen = rows.choose(np.array([1]))
    assert (chosen.columns, len(chosen.task_contexts)) == (rows.columns, 2)


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


@pytest.mark.parametrize("offsets", [[0, 2, 2], [0, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
def test_offsets_must_give_every_action_rows(offsets):
    with pytest.raises(InputError, match=r"offsets must be N\+1=3 rising numbers from 0 to M=2"):
        RowSets(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2), np.array(offsets))


def test_arrays_are_checked_and_cast():
    rows = RowSets(np.zeros((1, 1)), np.zeros((2, 3)), np.zeros(2), np.array([0, 2]))
    assert rows.contexts.dtype == np.float32
    with pytest.raises(InputError, match="contexts must be finite, got nan"):
        RowSets(np.zeros((1, 1)), np.full((2, 3), np.nan), np.zeros(2), np.array([0, 2]))


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
