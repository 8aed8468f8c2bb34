"""The prior over settings: its kinds of outcomes against their definitions, and what agents see of a task."""

import numpy as np
import pytest

from gents_gym import InputError, make_tasks
from gents_gym.tasks import general
from gents_gym.tasks.general import General


def residual(scores, features):
    """What a least-squares fit of scores on (1, features) leaves, as a share of their variance."""
    design = np.concatenate([np.ones((len(features), 1)), features], axis=1)
    fitted = design @ np.linalg.lstsq(design, scores, rcond=None)[0]
    return ((scores - fitted) ** 2).sum() / ((scores - scores.mean(axis=0)) ** 2).sum()


def test_unused_entries_are_zeros_behind_the_others():
    tasks = General().sample(0, range(300))
    used = (tasks.contexts != 0).any(axis=1)  # (B, D)
    sizes = np.where(used, np.arange(1, 11), 0).max(axis=1)
    assert {*sizes} >= {*range(1, 11)}
    assert (tasks.action_features == 1).all()
    assert used.mean() > 0.45  # few of the first entries are constant


def test_scores_are_what_they_are_named_after():
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(400, 3)), np.repeat(np.arange(4), 100)
    assert residual(general._linear(rng, x, groups, 5), x) < 1e-20
    assert residual(general._products(rng, x, groups, 5), x) > 0.1
    assert residual(general._network(rng, x, groups, 5), x) > 0.01
    leaves = general._tree(rng, x, groups, 5)
    assert len(np.unique(leaves.round(9), axis=0)) <= 8
    by_group = general._groups(rng, x, groups, 5)
    assert len(np.unique(by_group, axis=0)) == 4
    assert (by_group[:100] == by_group[0]).all()
    assert residual(general._groups(rng, x, None, 5), x) < 1e-20  # without groups, linear


def test_one_label_is_right(monkeypatch):
    monkeypatch.setattr(general, "LABELS", 1.0)
    tasks = General(n_actions=10, horizon=50).sample(0, range(40))
    n_right = tasks.outcomes.sum(axis=2)  # (B, T): an action for each label, or several
    assert n_right.min() >= 1
    whole = (n_right == 1).all(axis=1)  # tasks of ten labels
    assert 0 < whole.sum() < 40
    np.testing.assert_allclose(tasks.means[whole].sum(axis=2), 1, atol=1e-5)
    assert (tasks.means[~whole].sum(axis=2) > 1).any()


def test_labels_may_be_those_of_groups(monkeypatch):
    """All rows of a group have the same chances; without classes, labels follow scores, which differ between rows."""
    monkeypatch.setattr(general, "LABELS", 1.0)
    monkeypatch.setattr(general, "GROUPED", 1.0)
    counts = []
    for classes in (1.0, 0.0):
        monkeypatch.setattr(general, "CLASSES", classes)
        means = General(horizon=100).sample(2, range(30)).means
        counts.append([len(np.unique(each.round(6), axis=0)) for each in means])
    assert max(counts[0]) <= 10
    assert np.median(counts[1]) > 10


def test_outcomes_have_their_chances(monkeypatch):
    """Of many tasks: the mean of (Y - p) / sqrt(p (1 - p)), squared, is 1."""
    for labels in (0.0, 1.0):
        monkeypatch.setattr(general, "LABELS", labels)
        tasks = General(n_actions=3).sample(1, range(200))
        p = tasks.means.astype(float).clip(1e-3, 1 - 1e-3)
        sure = (tasks.means > 0.02) & (tasks.means < 0.98)
        squares = ((tasks.outcomes - p) ** 2 / (p * (1 - p)))[sure]
        assert squares.mean() == pytest.approx(1, abs=0.03)


def test_a_single_action_is_distributed_as_one_of_a_task():
    tasks, rows = (
        General(n_actions=2, horizon=100).sample(0, range(3000)),
        General().sample_actions(0, range(3000), 100),
    )
    ours, theirs = (np.sort(part.mean(axis=1)) for part in (rows.outcomes, tasks.outcomes[:, :, 1]))
    assert np.abs(ours - theirs).mean() < 0.02  # the distance between distributions of base rates


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_actions": 1}, "n_actions must be at least 2, got 1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"context_dim": 0}, "context_dim must be at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_tasks("general", **options)
