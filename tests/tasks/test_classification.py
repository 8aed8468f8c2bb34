"""Data sets as bandits: whose rows are played, how they are scaled, and what label noise does."""

import gymnasium as gym
import numpy as np
import pytest
from sklearn.datasets import load_wine

from gents_gym import InputError, make_tasks
from gents_gym.tasks.classification import Classification

WINE = Classification("wine")


def rows_of(contexts, distribution):
    """Return which rows of the data set contexts (..., D) are, by looking through all of them."""
    flat = contexts.reshape(-1, contexts.shape[-1])
    return np.array([np.flatnonzero((distribution._contexts == x).all(axis=1))[0] for x in flat])


def test_a_task_is_an_order_of_the_test_rows_and_the_right_class_is_worth_one():
    tasks, labels = WINE.sample(3, range(2)), load_wine().target
    for i in range(2):
        rows = rows_of(tasks.contexts[i], WINE)
        assert len(set(rows)) == tasks.horizon == 90
        assert np.array_equal(tasks.outcomes[i].argmax(axis=1), labels[rows])
    assert np.array_equal(tasks.outcomes.sum(axis=2), np.ones((2, 90)))
    assert np.array_equal(tasks.means, tasks.outcomes)
    assert np.array_equal(tasks.action_features[1], np.eye(3))
    assert tasks.texts[0].tolist() == ["class_0", "class_1", "class_2"]
    assert tasks.oracle == "logistic"
    assert tasks.truth is None
    assert not np.array_equal(tasks.contexts[0], tasks.contexts[1])


def test_no_row_is_of_two_splits_whatever_the_seed():
    seen = {}
    for split in ("train", "validation", "test"):
        drawn = [WINE.sample(seed, [0], split).contexts for seed in (0, 1)]
        drawn += [WINE.sample_actions(2, range(3), 40, split).contexts]
        seen[split] = {row for part in drawn for row in rows_of(part, WINE)}
    assert not seen["train"] & seen["test"]
    assert not seen["validation"] & (seen["train"] | seen["test"])
    assert [len(rows) for rows in seen.values()] == [71, 17, 90]
    labels = load_wine().target
    for rows in seen.values():
        shares = np.bincount(labels[list(rows)]) / len(rows)
        assert np.abs(shares - np.bincount(labels) / len(labels)).max() < 0.05


def test_columns_are_standardised_by_the_train_rows():
    data, train = load_wine().data, WINE._parts["train"]
    expected = (data - data[train].mean(axis=0)) / data[train].std(axis=0)
    assert np.allclose(WINE._contexts, expected.clip(-5, 5), atol=1e-5)
    digits = Classification("digits")
    assert digits.context_dim < 64  # some pixels are always white
    assert np.abs(digits._contexts).max() == 5


def test_the_first_tasks_stay_the_same_bits_when_more_are_drawn():
    many, one = WINE.sample(7, range(5)), WINE.sample(7, [3])
    assert many[3].hashes == one.hashes


def test_label_noise_is_in_the_means_and_in_the_table():
    noisy = Classification("iris", label_noise=0.3).sample(0, range(200))
    clean = Classification("iris").sample(0, range(200))
    assert np.array_equal(noisy.contexts, clean.contexts)
    assert np.allclose(noisy.means, 0.7 * clean.outcomes + 0.1)
    assert np.array_equal(noisy.outcomes.sum(axis=2), np.ones((200, 75)))
    right = (noisy.outcomes * clean.outcomes).sum(axis=2)
    assert abs(right.mean() - 0.8) < 4 * np.sqrt(0.16 / right.size)


def test_errors_may_cost():
    tasks = make_tasks("classification", dataset="iris", reward_fn="signed", label_noise=0.3).sample(0, [0])
    assert set(np.unique(tasks.rewards)) == {-1, 1}
    assert np.allclose(np.unique(tasks.means), [2 * 0.1 - 1, 2 * 0.8 - 1])
    assert set(np.unique(tasks.outcomes)) == {0, 1}


def test_single_actions_are_classes_with_rows_of_the_train_part():
    rows, labels = WINE.sample_actions(0, range(30), 100), load_wine().target
    classes = rows.action_features.argmax(axis=1)
    assert set(classes) == {0, 1, 2}
    for i in (0, 7):  # 100 rows of 71: one whole order, and a part of the next
        at = rows_of(rows.contexts[i], WINE)
        assert set(at) == set(WINE._parts["train"])
        assert np.array_equal(rows.outcomes[i], labels[at] == classes[i])


def test_a_quantity_is_cut_by_the_train_rows():
    cut = Classification("diabetes", bins=4)
    assert cut.n_actions == 4
    assert np.bincount(cut._labels[cut._parts["train"]], minlength=4).tolist() == pytest.approx([44] * 4, abs=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "diabetes"}, "bins must be given if the target is a quantity"),
        ({"dataset": "iris", "horizon": 76}, "horizon must be at most the 75 rows of the test part, got 76"),
        ({"dataset": "iris", "horizon": 0}, "horizon must be at least 1"),
        ({"dataset": "iris", "test": 1}, "test must be below 1, got 1"),
        ({"dataset": "iris", "test": 0.001}, "enough rows for a test part, got 150 rows"),
        ({"dataset": "iris", "label_noise": 1.0}, "label_noise must be below 1, got 1.0"),
        ({"dataset": "iris", "bins": 3}, "bins must be None for a target of classes"),
        ({"dataset": "iri"}, "unknown dataset 'iri'; did you mean 'iris'"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message):
        gym.make("gents_gym/Classification-v0", **options)


def test_a_file_without_anything_to_see_is_refused(tmp_path):
    (tmp_path / "flat.csv").write_text("x,y\n" + "1,a\n1,b\n" * 20)
    with pytest.raises(InputError, match="dataset must have a column that varies"):
        Classification(str(tmp_path / "flat.csv"), "y")
