"""What fitted policies of all classes refuse: contexts of other tasks or sizes, and weights below 0."""

import numpy as np
import pytest

from gents_gym import InputError, TaskInfo
from gents_gym.checks import InputTypeError, TaskError
from gents_gym.construct import make_policy

B, T, D, A = 2, 12, 3, 2
RNG = np.random.default_rng(0)
CONTEXTS = RNG.normal(size=(B, T, D)).astype(np.float32)
OUTCOMES = (RNG.random((B, T, A)) < 0.5).astype(np.float32)
POLICIES = {
    "logistic": {},
    "least-squares": {},
    "mlp": {"width": 4, "max_epochs": 2},
    "features": {},
    "estimator": {"estimator": "sklearn.linear_model:LogisticRegression"},
    "constrained": {"group1": CONTEXTS[0, :4], "group2": CONTEXTS[0, 4:8], "epsilon": 0.5},
}


@pytest.mark.parametrize(("name", "options"), POLICIES.items(), ids=POLICIES)
def test_contexts_that_do_not_fit_are_refused(name, options):
    policy = make_policy(name, **options).fit(CONTEXTS, OUTCOMES)
    assert policy.scores(CONTEXTS[:, 0].tolist()).shape == (B, A)
    odd = CONTEXTS[:, 0].copy()
    odd[1, 2] = np.nan
    for given, message in (
        (CONTEXTS[:1, 0], r"context must have shape \(B, D\)=\(2, 3\), got \(1, 3\)"),
        (np.ones((3, D)), r"context must have shape \(B, D\)=\(2, 3\), got \(3, 3\)"),
        (CONTEXTS[:, 0, :2], r"context must have shape \(B, D\)=\(2, 3\), got \(2, 2\)"),
        (CONTEXTS[:, :, :2], r"contexts must have shape \(B, C, D\), got \(2, 12, 2\)"),
        (CONTEXTS[0, 0], r"context must have shape \(B, D\)=\(2, 3\), got \(3,\)"),
        (odd, r"context must be finite, got nan at index \(1,( 0,)? 2\)"),
        (CONTEXTS[:, 0] + 1j, "context must be an array of numbers, got dtype complex"),
    ):
        with pytest.raises(InputError, match=message):
            policy.scores(given)


@pytest.mark.parametrize(("name", "options"), POLICIES.items(), ids=POLICIES)
def test_weights_below_0_are_refused(name, options):
    with pytest.raises(InputError, match="weights must be at least 0, got -1"):
        make_policy(name, **options).fit(CONTEXTS, OUTCOMES, weights=-np.ones_like(OUTCOMES))


@pytest.mark.parametrize("part", ["contexts", "outcomes"])
def test_a_table_with_nan_names_its_task(part):
    tables = {"contexts": CONTEXTS.copy(), "outcomes": OUTCOMES.copy()}
    tables[part][1, 3, 0] = np.nan
    with pytest.raises(TaskError, match=rf"{part} must be finite, got nan at index \(1, 3, 0\)") as caught:
        make_policy("logistic").fit(**tables)
    assert caught.value.position == 1


@pytest.mark.parametrize(("name", "options"), POLICIES.items(), ids=POLICIES)
def test_a_reward_that_is_no_function_is_refused(name, options):
    with pytest.raises(InputTypeError, match="reward_fn must be a function of outcomes, got 3"):
        make_policy(name, **options, reward_fn=3)
    with pytest.raises(InputTypeError, match="reward_fn must be a function of outcomes, got 3"):
        TaskInfo(np.zeros((1, 2, 2)), 2, 3, reward_fn=3)
