"""Tasks across data sets: whose rows are played, in which form, and what cannot be."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from gents_gym import InputError, make_tasks
from gents_gym.tasks.across import Across
from gents_gym.tasks.classification import Classification

ACROSS = Across(train=("iris", "diabetes"), test=("wine",), context_dim=3, horizon=40)


def test_the_test_split_has_rows_of_held_out_sets_alone():
    tasks = ACROSS.sample(0, range(6))
    wine = Classification("wine")
    contexts, labels = wine.part("test")
    pca = PCA(3, whiten=True).fit(wine.part("train")[0])
    known = pca.transform(contexts)
    for i in range(6):
        near = np.abs(np.abs(tasks.contexts[i, :, None]) - np.abs(known)).sum(axis=2)  # a component's sign is arbitrary
        rows = near.argmin(axis=1)
        # PCA(whiten=True) divides by n - 1.
        assert near.min(axis=1).max() < 0.2
        assert len({*rows}) == 40
        assert np.array_equal(tasks.texts[i][tasks.outcomes[i].argmax(axis=1)], wine.class_names[labels[rows]])
    assert tasks.outcomes.sum(axis=2).max() == tasks.outcomes.sum(axis=2).min() == 1
    names = {text for split in ("train", "validation") for text in ACROSS.sample(0, range(30), split).texts.ravel()}
    assert {"setosa", "versicolor", "virginica"} < names
    assert not names & {*wine.class_names}


def test_contexts_have_one_scale_in_all_sets_and_zeros_behind_few_columns():
    wide = Across(train=("iris",), test=("wine",), context_dim=6, horizon=40)
    contexts = wide.sample_actions(0, range(50), 60).contexts
    assert np.abs(contexts[..., 4:]).max() == 0
    assert contexts[..., :4].std(axis=(0, 1)) == pytest.approx(np.ones(4), abs=0.15)


def test_tasks_depend_on_seed_split_and_number_alone():
    many, one = ACROSS.sample(7, range(4)), ACROSS.sample(7, [2])
    assert np.array_equal(many.contexts[2], one.contexts[0])
    rows = ACROSS.sample_actions(1, [3], 500)
    assert rows.contexts.shape == (1, 500, 3)
    assert 0.2 < rows.outcomes.mean() < 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": []}, r"train must be a list of data sets, at least one, got \[\]"),
        ({"test": "wine"}, "test must be a list of data sets, at least one, got 'wine'"),
        ({"train": ["wine", "iris"]}, "train and test must have no data set in common, got wine in both"),
        ({"n_actions": 4}, "n_actions must be at most 3, the classes of iris, got 4"),
        ({"horizon": 90}, "horizon must be at most 54, the rows of wine's rarest classes, got 90"),
        ({"train": ["irs"]}, "unknown dataset 'irs'; did you mean 'iris'"),
    ],
)
def test_what_cannot_be_is_said(options, message):
    with pytest.raises(InputError, match=message):
        make_tasks("across", **options)
