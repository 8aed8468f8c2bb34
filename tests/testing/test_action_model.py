"""Every planted defect of a model of single actions is caught by its own check, and sound ones pass."""

import random

import numpy as np
import pytest
import torch
from scipy.special import expit

from gents_gym import Categorical, Gaussian
from gents_gym.testing import check_model


class Sound:
    """P(Y=1) by features, context, and count and sum of the outcomes so far; the state is (Z, count, sum)."""

    def start(self, action_features):
        return np.column_stack([action_features, np.zeros((len(action_features), 2))])

    def logit(self, state, context):
        mean = (state[:, -1] + 1) / (state[:, -2] + 2)
        return 0.3 * state[:, :-2].sum(axis=1) + 0.4 * context[:, 0] - 0.2 * context[:, -1] + 3 * (mean - 0.5)

    def predict(self, state, context):
        return expit(self.logit(state, context))

    def append(self, state, context, outcome, where=None):
        where = np.ones(len(state)) if where is None else where
        rows = np.column_stack([where, where * outcome])
        return np.column_stack([state[:, :-2], state[:, -2:] + rows])


class SoundGaussian(Sound):
    """Its bank is of contexts that no task has, and its state is a dictionary with a tuple in it."""

    likelihood = Gaussian()
    bank = np.full((3, 5), 7.0)

    def start(self, action_features):
        return {"features": np.array(action_features), "seen": tuple(np.zeros((2, len(action_features))))}

    def predict(self, state, context):
        count, total = state["seen"]
        mean = state["features"].sum(axis=1) + context[:, 0] + total / (count + 1)
        return np.column_stack([mean, 1 + 1 / (count + 1)])

    def append(self, state, context, outcome, where=None):
        where = np.ones(len(outcome)) if where is None else where
        count, total = state["seen"]
        return {**state, "seen": (count + where, total + where * outcome)}


class SoundCategorical:
    """Counts of the outcomes, a Dirichlet prior that the context tilts."""

    likelihood = Categorical(3)

    def start(self, action_features):
        return np.ones((len(action_features), 3)) + np.abs(action_features[:, :1])

    def predict(self, state, context):
        tilted = state * np.exp(0.3 * np.outer(context[:, 0], [-1, 0, 1]))
        return tilted / tilted.sum(axis=1, keepdims=True)

    def append(self, state, context, outcome, where=None):
        rows = np.eye(3)[outcome.astype(int)]
        return state + (rows if where is None else rows * where[:, None])


class SoundTorch(torch.nn.Module):
    """A recurrent network with fixed weights; the state is a list of two tensors."""

    def __init__(self):
        super().__init__()
        weights = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32) / 2
        self.mix, self.read = torch.nn.Parameter(torch.tensor(weights)), torch.nn.Parameter(torch.ones(6))

    def start(self, action_features):
        return [torch.zeros(len(action_features), 6), action_features]

    def predict(self, state, context):
        return torch.sigmoid(state[0] @ self.read + state[1].sum(1) / 4 + context[:, 0] / 3)

    def append(self, state, context, outcome, where=None):
        inputs = torch.cat([state[0], context, outcome[:, None]], 1)  # (N, 12)
        hidden = torch.tanh(inputs @ self.mix)
        return [hidden if where is None else torch.where(where[:, None], hidden, state[0]), state[1]]


class WithFeatures(Sound):
    def context_features(self, contexts):
        return np.sin(contexts)

    def action_context_features(self, action_features, contexts):
        lead = np.broadcast_shapes(action_features.shape[:-1], contexts.shape[:-1])
        parts = (np.broadcast_to(part, (*lead, part.shape[-1])) for part in (action_features, contexts))
        return np.concatenate(list(parts), axis=-1)


@pytest.mark.parametrize(
    "model", [Sound, SoundGaussian, SoundCategorical, SoundTorch, WithFeatures], ids=lambda model: model.__name__
)
def test_sound_models_pass(model):
    assert check_model(model) is None


class BatchMates(Sound):
    def logit(self, state, context):
        return super().logit(state, context - context.mean(axis=0))


class ByPlace(Sound):
    def start(self, action_features):
        state = super().start(action_features)
        state[:, -1] = np.arange(len(state)) / 10
        return state


class ChangesItsState(Sound):
    def append(self, state, context, outcome, where=None):
        where = np.ones(len(state)) if where is None else where
        state[:, -2] += where
        state[:, -1] += where * outcome
        return state


class PredictsInItsState(Sound):
    def predict(self, state, context):
        state[:, :-2] -= 0.1
        return super().predict(state, context)


class WritesContexts(Sound):
    def predict(self, state, context):
        context *= 2
        return super().predict(state, context)


class WritesOutcomes(Sound):
    def append(self, state, context, outcome, where=None):
        outcome -= 0.5
        return super().append(state, context, outcome + 0.5, where)


class WritesFeatures(Sound):
    def start(self, action_features):
        action_features /= 2
        return super().start(action_features)


class NumpyRandom(Sound):
    def logit(self, state, context):
        return super().logit(state, context) + np.random.normal(size=len(state))  # noqa: NPY002


class PythonRandom(Sound):
    def logit(self, state, context):
        return super().logit(state, context) + random.random()


class TorchRandom(Sound):
    def logit(self, state, context):
        return super().logit(state, context) + torch.randn(len(state)).numpy()


class SeedsTheWorld(Sound):
    def start(self, action_features):
        np.random.seed(0)  # noqa: NPY002
        return super().start(action_features)


class Dropout(SoundTorch):
    """Left in training mode."""

    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.3)

    def predict(self, state, context):
        return super().predict([self.drop(state[0]), state[1]], context)


class BatchNorm(SoundTorch):
    """Left in training mode too."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(5, track_running_stats=False)

    def predict(self, state, context):
        return super().predict(state, self.norm(context) if len(context) > 1 else context)


class TorchInPlace(SoundTorch):
    def append(self, state, context, outcome, where=None):
        state[0].copy_(super().append(state, context, outcome, where)[0])
        return state


class OwnGenerator(Sound):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def logit(self, state, context):
        return super().logit(state, context) + 0.1 * self.rng.normal(size=len(state))


class CountsItsCalls(Sound):
    calls = 0

    def logit(self, state, context):
        self.calls += 1
        return super().logit(state, context) + self.calls / 100


class LearnsInItself(Sound):
    """One sum for all: what is appended to one state shows in the others."""

    def __init__(self):
        self.total = 0.0

    def logit(self, state, context):
        return super().logit(state, context) + np.tanh(self.total / 10)

    def append(self, state, context, outcome, where=None):
        self.total += 1.0
        return super().append(state, context, outcome, where)


class GrowingState(Sound):
    def append(self, state, context, outcome, where=None):
        return np.column_stack([state, outcome])


class StateOfLists(Sound):
    def start(self, action_features):
        return {"histories": [[] for _ in action_features]}


class StateOfOneRow(Sound):
    def start(self, action_features):
        return np.zeros((1, 4))


class StateOfNumbers(Sound):
    def start(self, action_features):
        return (super().start(action_features), 0)


class WhereIgnored(Sound):
    def append(self, state, context, outcome, where=None):
        return super().append(state, context, outcome)


class WhereForOutcomesAlone(Sound):
    def append(self, state, context, outcome, where=None):
        return super().append(state, context, outcome if where is None else outcome * where)


class WithoutWhere(Sound):
    def append(self, state, context, outcome):
        return super().append(state, context, outcome)


class Columns(Sound):
    def predict(self, state, context):
        return super().predict(state, context)[:, None]


class OneForAll(Sound):
    def predict(self, state, context):
        return 0.5


class OutOfRange(Sound):
    def predict(self, state, context):
        return 1.5 * super().predict(state, context)


class NotANumber(Sound):
    def predict(self, state, context):
        return np.where(state[:, -2] > 3, np.nan, 0.5)


class Divides(Sound):
    def logit(self, state, context):
        return super().logit(state, context) if state[0, -2] < 2 else {}["nothing"]


class MeansAlone(SoundGaussian):
    def predict(self, state, context):
        return super().predict(state, context)[:, 0]


class NoVariance(SoundGaussian):
    def predict(self, state, context):
        return super().predict(state, context) * [1, 0]


class SumsToMore(SoundCategorical):
    def predict(self, state, context):
        return np.minimum(1.1 * super().predict(state, context), 1)


class NotMadeTheSame(Sound):
    def __init__(self):
        self.shift = np.random.default_rng().normal()

    def logit(self, state, context):
        return super().logit(state, context) + self.shift


class MadeByTheWorld(Sound):
    def __init__(self):
        self.shift = np.random.normal()  # noqa: NPY002


class NeedsArguments(Sound):
    def __init__(self, rate):
        self.rate = rate


class LacksAppend:
    def start(self, action_features):
        return action_features

    def predict(self, state, context):
        return np.full(len(state), 0.5)


class BankOfAnotherSize(Sound):
    bank = np.zeros((10, 3))


class NamesItsLikelihood(Sound):
    likelihood = "bernoulli"


class FeaturesByBatch(WithFeatures):
    def context_features(self, contexts):
        return contexts - contexts.reshape(-1, contexts.shape[-1]).mean(axis=0)


class FeaturesOfPairsNotBroadcast(WithFeatures):
    def action_context_features(self, action_features, contexts):
        return np.zeros((len(action_features), len(contexts), 3))


BESIDE = "the prediction of an action depends on the other actions"
MORE = "a prediction depends on more than the history"
NONE = "returns invalid predictions"
DEFECTS = {
    BatchMates: BESIDE,
    BatchNorm: BESIDE,
    ByPlace: BESIDE,
    ChangesItsState: "append changes the state that it is given",
    TorchInPlace: "append changes the state that it is given",
    PredictsInItsState: "predict changes the state that it is given",
    WritesContexts: "predict changes the context that it is given",
    WritesOutcomes: "append changes the outcome that it is given",
    WritesFeatures: "start changes the action features that it is given",
    NumpyRandom: "uses the global generator of numpy.random",
    PythonRandom: "uses the global generator of random",
    TorchRandom: "uses the global generator of torch",
    Dropout: "uses the global generator of torch",
    SeedsTheWorld: "uses the global generator of numpy.random",
    MadeByTheWorld: "uses the global generator of numpy.random",
    OwnGenerator: MORE,
    CountsItsCalls: MORE,
    LearnsInItself: MORE,
    GrowingState: "append changes the shape of the state",
    StateOfLists: "start returns an invalid state",
    StateOfOneRow: "start returns an invalid state",
    StateOfNumbers: "start returns an invalid state",
    WhereIgnored: "append does not follow where",
    WhereForOutcomesAlone: "append does not follow where",
    WithoutWhere: "fails in append",
    Columns: f"Columns {NONE}",
    OneForAll: f"OneForAll {NONE}",
    OutOfRange: "seen: the prediction must be probabilities in [0, 1], got 1.",
    NotANumber: "seen: the prediction must be probabilities in [0, 1], got nan",
    Divides: "seen: KeyError: 'nothing'",
    MeansAlone: "expected: a finite mean and a variance above 0, of shape (20, 2)",
    NoVariance: "seen: the prediction must be finite means with variances above 0, got 0",
    SumsToMore: "probabilities with a sum of 1, got 1.1",
    NotMadeTheSame: "is different when it is made again",
    NeedsArguments: "NeedsArguments cannot be made",
    LacksAppend: "it lacks append",
    BankOfAnotherSize: "the model's bank must have shape (n, D), got (10, 3)",
    NamesItsLikelihood: "does not say what an outcome is",
    FeaturesByBatch: "the features of a context depend on the other contexts",
    FeaturesOfPairsNotBroadcast: "action_context_features has a wrong shape",
}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_planted_defect_is_explained(defect, explain):
    assert DEFECTS[defect] in explain(defect)
