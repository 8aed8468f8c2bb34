"""The reference model: a model like others, by name, and for what it is not."""

import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_tasks
from gents_gym.models.load import begin_belief
from gents_gym.models.reference import ReferenceModel
from gents_gym.testing import check_model

TASKS = make_tasks("drifting", n_actions=3, horizon=8, context_dim=2, rate=0.3)
INFO = TaskInfo(np.zeros((1, 3, 2), np.float32), 3, 3, 8, truth=TASKS.truth)


def test_it_is_a_model():
    check_model(ReferenceModel(TASKS.truth, n_steps=2, n_draws=32), tasks=TASKS, steps=4)


def test_agents_name_it():
    belief = begin_belief("reference", INFO, [np.random.default_rng(0)])[1]
    assert belief.expected(np.zeros((1, 3))).shape == (1, 3)
    with pytest.raises(InputError, match="model 'reference' is for bernoulli ones"):
        begin_belief("exact", INFO, [np.random.default_rng(0)])


def test_what_it_is_not_for_is_refused():
    for options, message in (
        ({"outcomes": "gaussian"}, "is for bernoulli outcomes .others have model 'exact'., got gaussian ones"),
        ({"row_effect": 0.5}, "coefficients that walk or correlate, without more, got row_effect=0.5"),
    ):
        with pytest.raises(InputError, match=message):
            ReferenceModel(make_tasks("correlated", **options).truth)
