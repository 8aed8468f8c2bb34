"""The reference model: a model like others, by name, and for what it is not."""

from dataclasses import replace

import numpy as np
import pytest

from gents_gym import ExactModel, Feedback, InputError, TaskInfo, make_tasks
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.load import begin_belief
from gents_gym.models.reference import ReferenceModel
from gents_gym.testing import check_model

SIZES = {"n_actions": 3, "horizon": 8, "context_dim": 2}
SETTINGS = {
    "walk": make_tasks("drifting", rate=0.3, **SIZES),
    "jump": make_tasks("drifting", drift="jump", rate=0.2, **SIZES),
    "task effect": make_tasks("correlated", **SIZES),
    "row effect": make_tasks("correlated", correlation=0, row_effect=0.5, **SIZES),
}
TASKS = SETTINGS["walk"]
INFO = TaskInfo(np.zeros((1, 3, 2), np.float32), 3, 3, 8, truth=TASKS.truth)


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_a_model(name):
    check_model(ReferenceModel(SETTINGS[name].truth, n_steps=2, n_draws=64), tasks=SETTINGS[name], steps=4)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_error_is_the_spread_of_repeated_runs(name):
    tasks, model = SETTINGS[name].sample(0, [1]), ReferenceModel(SETTINGS[name].truth, n_steps=4, n_draws=32)
    info = TaskInfo(tasks.action_features, 3, tasks.context_dim, 8, truth=tasks.truth)
    runs, errors = [], []
    for seed in range(100):
        belief = model.begin(info, [np.random.default_rng(seed)])
        for t in range(6):
            belief.decide(tasks.contexts[:, t], np.array([t % 3]))
            belief.observe(Feedback(np.array([0]), np.array([t]), tasks.outcomes[:, t, t % 3]))
        x = tasks.contexts[:, 6:]  # (1, 2, D)
        runs.append(belief.expected(x))
        errors.append(model.error(belief, x))
    ratio = np.std(runs, axis=0) / np.mean(errors, axis=0)  # (1, 2, A)
    assert ratio.mean() == pytest.approx(1, abs=0.15)


def test_agents_name_it():
    belief = begin_belief("reference", INFO, [np.random.default_rng(0)])[1]
    assert belief.expected(np.zeros((1, 3))).shape == (1, 3)
    with pytest.raises(InputError, match="model 'reference' is for bernoulli ones"):
        begin_belief("exact", INFO, [np.random.default_rng(0)])


def test_what_it_is_not_for_is_refused():
    with pytest.raises(InputError, match=r"is for bernoulli outcomes .others have model 'exact'., got gaussian ones"):
        ReferenceModel(make_tasks("correlated", outcomes="gaussian").truth)
    both = replace(SETTINGS["jump"].truth, correlation=0.5)
    with pytest.raises(InputError, match=r"correlation must be 0 for a jump in model 'reference', got 0.5"):
        ReferenceModel(both)
    with pytest.raises(InputError, match=r"correlation and row_effect must be 0 for a jump in model 'exact', got 0.5"):
        ExactModel(replace(both, likelihood=GAUSSIAN))
