"""What actions share is found again in tasks whose numbers are known."""

import numpy as np
import pytest
import torch

from gents_gym import InputError, make_tasks
from gents_gym.logs.record import Logs
from gents_gym.models.joint import JointConfig, JointModel
from gents_gym.training import sharing
from gents_gym.training.data import RowSets
from gents_gym.training.folder import split_actions
from gents_gym.training.sharing import estimate_row_effect, fit_sharing, joint_log_prob


def true_model(outcomes):
    """A joint model with nature's own prior, as far as its form admits it, which shares nothing yet."""
    model = JointModel(JointConfig(2, 5, likelihood=outcomes))
    with torch.no_grad():
        model.prior_mean[0, 1:] = 1
        model.prior_mean[1:, 0] = 1
        model.prior_mean[1, 1] = model.prior_mean[2, 2] = 1
        model.prior_scale[1:, 0] = np.log(0.25)
        model.prior_scale[1, 3] = model.prior_scale[2, 4] = 0.3
    if outcomes == "gaussian":
        model.form.set_noise(1.0)
    return model.eval()


@pytest.mark.parametrize(("outcomes", "within"), [("gaussian", 0.15), ("bernoulli", 0.25)])
def test_the_task_effect_is_found_again(outcomes, within, monkeypatch):
    for name, value in {"STEPS": 25, "TASKS": 16, "CELLS": 40}.items():
        monkeypatch.setattr(sharing, name, value)
    model = true_model(outcomes)
    tasks = make_tasks("correlated", outcomes=outcomes, correlation=0.7, horizon=60).sample(0, range(80), "train")
    fit_sharing(model, RowSets.from_tasks(tasks), np.random.default_rng(0))
    assert abs(float(model.share[0]) - 0.7) < within  # the intercept's, which outcomes say most of


def test_the_row_effect_is_found_again():
    for effect in (0.0, 0.5):
        tasks = make_tasks("correlated", outcomes="gaussian", row_effect=effect, horizon=80).sample(0, range(20))
        rows = RowSets.from_tasks(tasks)
        found = estimate_row_effect(true_model("gaussian"), rows, [np.flatnonzero(rows.tasks == i) for i in range(20)])
        assert abs(found - effect) < 0.06


def test_sequences_of_whole_tasks_are_as_likely_as_their_joint_gaussian():
    from scipy.stats import multivariate_normal

    model, rng = true_model("gaussian"), np.random.default_rng(0)
    along, level, owners = rng.normal(size=(2, 7, 6)), rng.normal(size=(2, 7)), rng.integers(3, size=(2, 7))
    outcomes, share = rng.normal(size=(2, 7)), np.linspace(0.1, 0.9, 6)
    parts = (torch.tensor(part, dtype=torch.float32) for part in (share, along, level))
    weights = torch.ones(2, 7)
    weights[1, 5:] = 0
    found = joint_log_prob(model, *parts, torch.tensor(owners), torch.tensor(outcomes, dtype=torch.float32), weights)
    for i, n in ((0, 7), (1, 5)):
        same = np.equal.outer(owners[i], owners[i])[:n, :n, None]
        products = along[i, :n, None] * along[i, None, :n]
        covariance = (products * (share + (1 - share) * same)).sum(-1) + np.eye(n)
        expected = multivariate_normal(level[i, :n], covariance).logpdf(outcomes[i, :n])
        assert np.isclose(float(found[i].sum().detach()), expected, atol=1e-3)


def test_rows_know_their_tasks():
    tasks = make_tasks("correlated", horizon=3, n_actions=2).sample(0, range(2))
    rows = RowSets.from_tasks(tasks)
    assert rows.tasks.tolist() == [0, 0, 1, 1]
    assert rows.decisions.tolist() == [0, 1, 2] * 4
    assert np.array_equal(rows.outcomes.reshape(2, 2, 3), tasks.outcomes.swapaxes(1, 2))
    chosen = rows.choose(np.array([2]))
    assert chosen.tasks.tolist() == [1]
    assert chosen.decisions.tolist() == [0, 1, 2]
    actions, contexts = np.array([2, 0, 3, 1, 2]), np.ones((5, 1))
    features, outcomes = np.ones((4, 1)), np.array([1, 0, 1, 0, 1])
    logs = RowSets.from_logs(Logs(actions, contexts, outcomes, features, tasks=np.array([1, 0, 1, 0, 1])))
    assert logs.tasks.tolist() == [0, 0, 1, 1]
    assert logs.decisions.tolist() == [0, 1, 0, 2, 1]
    left, right = split_actions(logs, 0.5, 0, whole_tasks=True)
    assert {*left.tasks.tolist()} != {*right.tasks.tolist()}
    assert len(left) == len(right) == 2


def test_rows_without_tasks_are_refused():
    rows = RowSets.from_rows(make_tasks("synthetic").sample_actions(0, range(3), 5))
    with pytest.raises(InputError, match="must know their tasks"):
        fit_sharing(true_model("bernoulli"), rows, np.random.default_rng(0))
    with pytest.raises(InputError, match="must have the column 'task'"):
        split_actions(rows, 0.5, 0, whole_tasks=True)
    alone = RowSets.from_tasks(make_tasks("synthetic", horizon=3).sample(0, range(1))).choose(np.array([0]))
    with pytest.raises(InputError, match="tasks of two actions or more"):
        fit_sharing(true_model("bernoulli"), alone, np.random.default_rng(0))
