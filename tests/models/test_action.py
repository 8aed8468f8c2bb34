"""The adapter of three methods: what it hands to the model, and what it takes over from it."""

import numpy as np
import pytest
import torch

from gents_gym import Bernoulli, Categorical, Gaussian, InputError, Model, TaskInfo
from gents_gym.models.action import PerAction
from gents_gym.models.belief import ActionBelief
from gents_gym.models.load import as_model
from gents_gym.types import Feedback

B, A, D, F = 2, 3, 4, 2


class Sums:
    """The state is (sum of contexts, sum of outcomes, Z); the prediction reads all of it."""

    def start(self, action_features):
        return np.column_stack([np.zeros((len(action_features), D + 1)), action_features])

    def predict(self, state, context):
        return 1 / (1 + np.exp(-state.sum(axis=1) / 5 - context.sum(axis=1) / 10))

    def append(self, state, context, outcome, where=None):
        rows = np.column_stack([context, outcome, np.zeros((len(state), F))])
        return state + (rows if where is None else rows * where[:, None])


class TorchSums(torch.nn.Module):
    """The same, of tensors."""

    def start(self, action_features):
        return torch.cat([torch.zeros(len(action_features), D + 1), action_features], 1)

    def predict(self, state, context):
        return torch.sigmoid(state.sum(1) / 5 + context.sum(1) / 10)

    def append(self, state, context, outcome, where=None):
        rows = torch.cat([context, outcome[:, None], torch.zeros(len(state), F)], 1)
        return state + (rows if where is None else rows * where[:, None])


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    info = TaskInfo(rng.normal(size=(B, A, F)).astype(np.float32), A, D, 5)
    return info, rng.normal(size=(B, D)).astype(np.float32), [np.random.default_rng(i) for i in range(B)]


def test_the_adapter_is_a_model():
    assert isinstance(PerAction(Sums()), Model)
    model = Sums()
    assert as_model(model) == PerAction(model)
    assert as_model(PerAction(model)) == PerAction(model)


@pytest.mark.parametrize("kind", [Sums, TorchSums])
def test_predictions_are_the_model_s_own_for_each_action_by_itself(kind):
    info, context, rngs = numbers()
    belief, model = PerAction(kind()).begin(info, rngs), Sums()
    belief.decide(context, np.array([2, 0]))
    belief.observe(Feedback(np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0])))
    found = belief.expected(2 * context)
    for b in range(B):
        for a in range(A):
            state = model.start(info.action_features[b, a][None])
            if (b, a) in ((0, 2), (1, 0)):
                state = model.append(state, context[b][None], np.array([1.0 - b]))
            assert found[b, a] == pytest.approx(model.predict(state, 2 * context[b][None])[0], abs=1e-6)


def test_methods_are_given_float32_arrays_or_tensors():
    given = []

    class Notes(Sums):
        def append(self, state, context, outcome, where=None):
            given.append((context, outcome, where))
            return super().append(state, context, outcome, where)

    class TorchNotes(TorchSums):
        def append(self, state, context, outcome, where=None):
            given.append((context, outcome, where))
            return super().append(state, context, outcome, where)

    info, context, rngs = numbers()
    for kind, array in ((Notes, np.ndarray), (TorchNotes, torch.Tensor)):
        del given[:]
        belief = PerAction(kind()).begin(info, rngs)
        belief.decide(context.astype(np.float64), np.array([2, 0]))
        belief.observe(Feedback(np.array([1]), np.array([0]), np.array([1])))
        belief.complete(context, rows=2)
        assert len(given) == 4  # the trial, the outcome and two imagined rows
        for contexts, outcomes, where in given:
            assert all(isinstance(part, array) for part in (contexts, outcomes, where))
            dtypes = [str(part.dtype).removeprefix("torch.") for part in (contexts, outcomes, where)]
            assert dtypes == ["float32", "float32", "bool"]
        assert given[1][2].tolist() == [False] * 3 + [True, False, False]


def test_no_gradients_are_kept():
    info, context, rngs = numbers()

    class Learnt(TorchSums):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def predict(self, state, context):
            return torch.sigmoid(state.sum(1) * self.weight)

    belief = PerAction(Learnt()).begin(info, rngs)
    assert belief.expected(context).shape == (B, A)
    assert belief.complete(context).outcomes.shape == (B, 1, 5, A)


@pytest.mark.parametrize("likelihood", [Gaussian(), Categorical(4), None])
def test_likelihood_bank_and_features_are_the_model_s(likelihood):
    class Rich(Sums):
        bank = torch.full((2, D), 9.0)

        def context_features(self, contexts):
            return contexts[..., :1] * 2

        def action_context_features(self, action_features, contexts):
            return action_features[..., :1] + contexts[..., :1]

    model = Rich()
    if likelihood is not None:
        model.likelihood = likelihood
    made, (info, context, rngs) = PerAction(model), numbers()
    assert made.likelihood == (likelihood or Bernoulli())
    assert np.array_equal(made.context_features(context), context[:, :1] * 2)
    z = info.action_features
    assert np.array_equal(made.action_context_features(z, context[:, None]), z[..., :1] + context[:, None, :1])
    if likelihood is None:
        found = made.begin(info, rngs).complete(context)
        assert (found.contexts[:, :, 1:] == 9).all()
        assert np.array_equal(found.features, found.contexts[..., :1] * 2)


def test_without_them_contexts_are_the_task_s_own_and_there_are_no_features():
    made, (info, context, rngs) = PerAction(Sums()), numbers()
    belief = made.begin(info, rngs)
    assert isinstance(belief, ActionBelief)
    found = belief.complete(context)
    assert (found.contexts == context[:, None, None]).all()
    assert found.features is None
    assert made.context_features(context) is None
    assert made.action_context_features(info.action_features, context) is None
    assert belief.variance(context) is None


@pytest.mark.parametrize("model", [3, None, Sums, object(), lambda: Sums()])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(InputError, match=r"model must be .* got "):
        as_model(model)


def test_what_lacks_a_part_is_told_which():
    class Half:
        def start(self, action_features):
            return action_features

    class HalfJoint:
        def begin(self, info, rngs):
            return None

    for model, missing in ((Half, "predict, append"), (HalfJoint, "likelihood, context_features, action_context_feat")):
        with pytest.raises(InputError, match=f", which lacks {missing}"):
            as_model(model())
