"""Policies on features are those of their base class, fitted to what they are given."""

import numpy as np
import pytest

from gents_gym import InputError, make_policy
from gents_gym.types import FeaturePolicyClass, half


@pytest.mark.parametrize("base", ["logistic", "least-squares", "least-squares(alpha=2)"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_base_class_s(base, weighted):
    rng = np.random.default_rng(0)
    features, outcomes = rng.normal(size=(3, 40, 2)), rng.integers(2, size=(3, 40, 4)).astype(np.float32)
    weights = rng.integers(2, size=outcomes.shape).astype(np.float32) if weighted else None
    found = make_policy("features", base=base, reward_fn=half)
    assert isinstance(found, FeaturePolicyClass)
    plain = make_policy(base, reward_fn=half)
    assert not isinstance(plain, FeaturePolicyClass)
    one, other = (policy.fit(features, outcomes, None, weights).scores(features[:, 0]) for policy in (found, plain))
    assert np.array_equal(one, other)


def test_other_base_classes_are_refused():
    with pytest.raises(InputError, match="unknown base of features: 'mlp'; known: least-squares, logistic"):
        make_policy("features(base=mlp)")
