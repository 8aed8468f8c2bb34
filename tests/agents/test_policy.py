"""Which policy class is fitted to completed tables, on what, and what is refused."""

import re

import numpy as np
import pytest

from gents_gym import Categorical, Gaussian, InputError, TaskInfo, load_model
from gents_gym.agents.policy import check_policy, choose_policy
from gents_gym.policies.logistic import Logistic
from gents_gym.types import Completion

B, M, T, D, A = 2, 3, 12, 5, 4
INFO = TaskInfo(np.zeros((B, A, 2), np.float32), A, D, T)


class Model:
    """No more of a model than the choice asks for."""

    def __init__(self, features=False):
        self._features = features

    def context_features(self, contexts):
        return np.concatenate([contexts, contexts**2], axis=-1) if self._features else None


def completion(weights=False, features=None, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(B, M, T, D)).astype(np.float32)
    outcomes = rng.integers(2, size=(B, M, T, A)).astype(np.float32)
    counted = rng.integers(2, size=outcomes.shape).astype(np.float32) if weights else None
    return Completion(contexts, outcomes, counted, Model(True).context_features(contexts) if features else None, 7)


@pytest.mark.parametrize(
    ("likelihood", "features", "name"),
    [
        (INFO.likelihood, False, "logistic"),
        (INFO.likelihood, True, "features(base=logistic)"),
        (Gaussian(), False, "least-squares"),
        (Gaussian(), True, "features(base=least-squares)"),
        (Categorical(3), False, "least-squares"),
    ],
)
def test_the_default_goes_by_outcomes_and_features(likelihood, features, name):
    info = TaskInfo(INFO.action_features, A, D, T, likelihood=likelihood)
    chosen = choose_policy(None, Model(features), info)
    assert (chosen.name, chosen.on_features) == (name, features)


def test_a_class_that_is_named_reads_what_it_reads():
    assert not choose_policy("logistic", Model(True), INFO).on_features
    assert choose_policy("features", Model(True), INFO).on_features
    assert choose_policy("features", load_model("news-filter"), TaskInfo(INFO.action_features, A, D)).on_features
    given = Logistic(C=2.0)
    assert choose_policy(given, Model(), INFO).policy_class is given


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_every_table_is_fitted_by_itself(features, weights):
    tables = completion(weights, features)
    chosen = choose_policy(None, Model(features), INFO)
    found = chosen.fit(tables, None).scores
    assert found.shape == (B, M, A)
    read = tables.features if features else tables.contexts
    for b in range(B):
        for m in range(M):
            options = {} if tables.weights is None else {"weights": tables.weights[b, m][None]}
            fitted = Logistic().fit(read[b, m][None], tables.outcomes[b, m][None], **options)
            assert np.allclose(fitted.scores(read[b, m, 7][None])[0], found[b, m], atol=1e-5)


def test_fits_start_from_the_last_one():
    class Noting:
        last = None

        def fit(self, contexts, outcomes, warm_start=None):
            self.last = warm_start
            return self

        def scores(self, context):
            return np.zeros((len(context), A))

    noting = Noting()
    chosen = choose_policy(noting, Model(), INFO)
    first = chosen.fit(completion(), None)
    assert noting.last is None
    chosen.fit(completion(seed=1), first)
    assert noting.last is noting


def test_what_is_refused():
    class Unweighted:
        def fit(self, contexts, outcomes, warm_start=None):
            return self

        def scores(self, context):
            return np.zeros((len(context), A + 1))

    with pytest.raises(InputError, match=re.escape("policy must accept weights in fit to use m imputed rows")):
        choose_policy(Unweighted(), Model(), INFO).check_weights()
    with pytest.raises(InputError, match=re.escape("the policy's scores must have shape (B·M, A)=(6, 4), got (6, 5)")):
        choose_policy(Unweighted(), Model(), INFO).fit(completion(), None)
    with pytest.raises(InputError, match="policy must read contexts for a model without context features, got"):
        choose_policy("features", Model(), INFO)
    gaussian = TaskInfo(INFO.action_features, A, D, T, likelihood=Gaussian())
    with pytest.raises(InputError, match="policy must be a policy class for gaussian outcomes, such as least-squares"):
        choose_policy("logistic", Model(), gaussian)
    for policy in (Logistic, 3, object()):
        with pytest.raises(InputError, match="policy must be a policy class with fit, or its id, got"):
            check_policy(policy)
    with pytest.raises(InputError, match="unknown policy class 'logistc'; did you mean 'logistic'"):
        check_policy("logistc")
    assert check_policy(None) is None
