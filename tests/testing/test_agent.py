"""Every planted defect is caught by its own check, and the message says what to do."""

import functools
import gc
import importlib
import pickle
import random
import re
import sys
import threading
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
import torch

import gents_gym
from gents_gym import BanditVectorEnv, InputError
from gents_gym.testing import ContractError, check_agent


class Honest:
    """Gaussian noise on the mean reward of each action; draws from each task's own generator."""

    def reset(self, info, rngs):
        self.info, self.rngs = info, rngs
        self.sums = np.zeros((len(info), info.n_actions))
        self.counts = np.ones((len(info), info.n_actions))

    def noise(self):
        return np.stack([rng.normal(size=self.info.n_actions) for rng in self.rngs])

    def act(self, context):
        return (self.sums / self.counts + 0.3 * self.noise() / np.sqrt(self.counts)).argmax(axis=1)

    def observe(self, context, action, outcome):
        tasks = np.arange(len(action))
        self.sums[tasks, action] += self.info.reward_fn(outcome)
        self.counts[tasks, action] += 1


class NumpyRandom(Honest):
    def noise(self):
        return np.random.normal(size=self.sums.shape)  # noqa: NPY002


class PythonRandom(Honest):
    def act(self, context):
        return np.array([random.randrange(self.info.n_actions) for _ in context])


class TorchRandom(Honest):
    def noise(self):
        return torch.randn(self.sums.shape).numpy()


class SeedsTheWorld(Honest):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        np.random.seed(0)  # noqa: NPY002


class UnseededGenerator(Honest):
    def reset(self, info, rngs):
        super().reset(info, [np.random.default_rng() for _ in rngs])


class OneGeneratorForAll(Honest):
    def reset(self, info, rngs):
        super().reset(info, [rngs[0]] * len(rngs))


class SeedBySlot(Honest):
    def reset(self, info, rngs):
        super().reset(info, [np.random.default_rng(i) for i in range(len(rngs))])


class Remembers(Honest):
    def __init__(self):
        self.total = Counter()

    def act(self, context):
        earlier = np.array([self.total[a] for a in range(self.info.n_actions)])
        return (self.sums / self.counts + 0.3 * self.noise() + 0.1 * earlier).argmax(axis=1)

    def observe(self, context, action, outcome):
        super().observe(context, action, outcome)
        self.total.update(action[outcome > 0].tolist())


class RemembersInItsClass(Honest):
    games = 0

    def reset(self, info, rngs):
        super().reset(info, rngs)
        type(self).games += 1

    def act(self, context):
        return np.full(len(context), self.games % self.info.n_actions)


class UnfinishedBusiness(Honest):
    """What it notes in act is only cleared in observe."""

    pending = None

    def act(self, context):
        if self.pending is not None:
            return np.zeros(len(context), int)
        self.pending = context.copy()
        return super().act(context)

    def observe(self, context, action, outcome):
        super().observe(context, action, outcome)
        self.pending = None


class KeepsItsRoom(Honest):
    """Clears its counts only if their number changes."""

    sums = np.zeros((0, 0))

    def reset(self, info, rngs):
        kept = self.sums, getattr(self, "counts", None)
        super().reset(info, rngs)
        if kept[0].shape == self.sums.shape:
            self.sums, self.counts = kept


class Columns(Honest):
    def act(self, context):
        return super().act(context)[:, None]


class OneForAll(Honest):
    def act(self, context):
        return 0


class Floats(Honest):
    def act(self, context):
        return super().act(context).astype(float)


class Ragged(Honest):
    def act(self, context):
        return [[0], *super().act(context)[1:]]


class NotANumber(Honest):
    def act(self, context):
        return np.full(len(context), np.nan)


class OutOfRange(Honest):
    def act(self, context):
        return super().act(context) + 1


class BatchMates(Honest):
    def act(self, context):
        scores = self.sums / self.counts
        return (scores - scores.mean(axis=0) + 0.1 * self.noise()).argmax(axis=1)


class WritesContexts(Honest):
    def observe(self, context, action, outcome):
        context -= context.mean(axis=1, keepdims=True)
        super().observe(context, action, outcome)


class WritesOutcomes(Honest):
    def observe(self, context, action, outcome):
        outcome *= 2
        super().observe(context, action, outcome)


class WritesFeatures(Honest):
    def act(self, context):
        self.info.action_features[:] += 1
        return super().act(context)


class KeepsContexts(Honest):
    """Acts by the context of the decision before, of which it keeps no copy."""

    last = None

    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.last = np.zeros((len(info), 1))

    def act(self, context):
        found = (self.last[:, 0] > 0).astype(int)
        self.last = context
        return found


class ReusesItsAnswer(Honest):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.answer = np.zeros(len(info), int)

    def act(self, context):
        self.answer[:] = super().act(context)
        return self.answer


class LooksUpTheStack(Honest):
    def act(self, context):
        frame = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if isinstance(value, BanditVectorEnv):
                    return value.tasks.means[:, int(value._time[0])].argmax(axis=1)
            frame = frame.f_back
        return super().act(context)


class SearchesTheHeap(Honest):
    """Finds the environment that has just been reset, and plays the action of the best outcomes in all."""

    def reset(self, info, rngs):
        super().reset(info, rngs)
        envs = [env for env in gc.get_objects() if type(env) is BanditVectorEnv and env._played and not env._time.any()]
        found = [env.tasks for env in envs if np.array_equal(env.tasks.action_features, info.action_features)]
        self.best = found[-1].outcomes.sum(axis=1).argmax(axis=1) if found else None

    def act(self, context):
        return super().act(context) if self.best is None else self.best


class LooksAhead(Honest):
    """Acts by the contexts to come."""

    def act(self, context):
        frame = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if isinstance(value, BanditVectorEnv):
                    return (value.tasks.contexts[:, -1, 0] > 0).astype(int)
            frame = frame.f_back
        return super().act(context)


class LooksLate(LooksUpTheStack):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.decisions = 0

    def act(self, context):
        self.decisions += 1
        return super().act(context) if self.decisions > 15 else Honest.act(self, context)


class HoldsAnEnvironment(Honest):
    def __init__(self):
        self.helpers = {"env": gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3)}


class HoldsOneInAFunction(Honest):
    def __init__(self):
        envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3)
        self.peek = lambda: envs.unwrapped.tasks


class HoldsOneInAPartial(Honest):
    def __init__(self):
        self.peek = functools.partial(getattr, gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3), "tasks")


class HoldsOneInItsClass(Honest):
    env = gym.make("gents_gym/Synthetic-v0", horizon=3)


class HoldsOneInASlot(Honest):
    class Box:
        __slots__ = ("env",)

    def __init__(self):
        self.box = self.Box()
        self.box.env = gym.make("gents_gym/Synthetic-v0", horizon=3)


class UsesTheNotebooks(Honest):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.split = envs.split


envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3)


class OneSize(Honest):
    def __init__(self):
        self.weights = np.ones(5)

    def act(self, context):
        return super().act(context) * (context @ self.weights > 0)


class NeedsTheHorizon(Honest):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.rounds = info.horizon // 2


class KeepsItsSizes(Honest):
    """Allocates once, for the number of actions that it sees first."""

    room = None

    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.room = info.n_actions if self.room is None else max(self.room, info.n_actions)

    def noise(self):
        return np.stack([rng.normal(size=self.room)[-self.info.n_actions :] for rng in self.rngs])


class IgnoresRewards(Honest):
    def observe(self, context, action, outcome):
        tasks = np.arange(len(action))
        self.sums[tasks, action] += outcome
        self.counts[tasks, action] += 1


class HoldsALock(Honest):
    def __init__(self):
        self.lock = threading.Lock()

    def fit(self, rows):
        return self


class FitsWithTheWorld(Honest):
    def fit(self, rows):
        np.random.normal()  # noqa: NPY002
        return self


class FailsToFit(Honest):
    def fit(self, rows):
        raise ValueError("too few rows")


class NeedsArguments(Honest):
    def __init__(self, rate):
        self.rate = rate


class Fails(Honest):
    def observe(self, context, action, outcome):
        raise KeyError("action 3")


class NoObserve:
    def reset(self, info, rngs):
        pass

    def act(self, context):
        return np.zeros(len(context), int)


class LateHonest(Honest):
    """Takes outcomes by the number of their decision."""

    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.acted = []

    def act(self, context):
        self.acted.append(super().act(context))
        return self.acted[-1].copy()

    def observe_late(self, feedback):
        action = np.stack(self.acted, axis=1)[feedback.task, feedback.decision]
        np.add.at(self.sums, (feedback.task, action), self.info.reward_fn(feedback.outcome))
        np.add.at(self.counts, (feedback.task, action), 1)


class ForgetsLateOutcomes(LateHonest):
    def observe_late(self, feedback):
        pass


class TakesTheLatestAction(LateHonest):
    """Correct if outcomes are in time; late ones are assigned by slot, so it plays differently next to other tasks."""

    def observe_late(self, feedback):
        action = self.acted[-1]
        for i, outcome in zip(feedback.task, feedback.outcome, strict=True):
            self.sums[i, action[len(feedback.task) - 1 if len(feedback.task) < len(action) else i]] += outcome
            self.counts[i, action[len(feedback.task) - 1 if len(feedback.task) < len(action) else i]] += 1


class MaskedHonest(Honest):
    def act(self, context, available=None):
        scores = self.sums / self.counts + 0.3 * self.noise() / np.sqrt(self.counts)
        return (scores if available is None else np.where(available, scores, -np.inf)).argmax(axis=1)


class IgnoresTheMask(Honest):
    def act(self, context, available=None):
        return super().act(context)


class DrawsMoreWithAMask(MaskedHonest):
    def act(self, context, available=None):
        if available is not None:
            self.noise()
        return super().act(context, available)


class OneMaskForAll(MaskedHonest):
    """Plays what is available, but chooses by the first task's mask."""

    def act(self, context, available=None):
        action = super().act(context, available)
        if available is not None and not available.all():
            first = available & (np.arange(available.shape[1]) > available[0].argmax())
            return np.where(first.any(axis=1), first.argmax(axis=1), action)
        return action


DEFECTS = {
    NumpyRandom: "uses the global generator of numpy.random",
    PythonRandom: "uses the global generator of random",
    TorchRandom: "uses the global generator of torch",
    SeedsTheWorld: "uses the global generator of numpy.random",
    UnseededGenerator: "is not reproducible",
    RemembersInItsClass: "is not reproducible",
    OneGeneratorForAll: "plays differently next to other tasks",
    SeedBySlot: "plays differently next to other tasks",
    BatchMates: "plays differently next to other tasks",
    Remembers: "does not forget: something of earlier tasks is left",
    UnfinishedBusiness: "does not forget: something of earlier tasks is left",
    KeepsItsRoom: "does not forget: something of earlier tasks is left",
    KeepsItsSizes: "does not forget the sizes of earlier tasks",
    Columns: "seen: action must have shape (B,)=(17,), got (17, 1)",
    OneForAll: "seen: action must have shape (B,)=(17,), got ()",
    Floats: "seen: action must be a whole number, got dtype float64",
    Ragged: "seen: action must have shape (B,)=(17,), got [[0], ",
    NotANumber: "seen: action must be a whole number, got nan",
    OutOfRange: "seen: action must lie in [0, 4), got 4",
    WritesContexts: "modifies an array that observe was given",
    WritesOutcomes: "modifies an array that observe was given",
    WritesFeatures: "modifies info.action_features",
    KeepsContexts: "keeps an array that belongs to its caller",
    LooksUpTheStack: "acts on information that it cannot have seen",
    SearchesTheHeap: "acts on information that it cannot have seen",
    LooksLate: "acts on information that it cannot have seen",
    LooksAhead: "acts on information that it cannot have seen",
    HoldsAnEnvironment: "HoldsAnEnvironment.helpers['env'] is of type",
    HoldsOneInAFunction: "HoldsOneInAFunction.peek.envs is of type BanditVectorEnv",
    HoldsOneInAPartial: "HoldsOneInAPartial.peek.args[0] is of type BanditVectorEnv",
    HoldsOneInItsClass: "HoldsOneInItsClass.env is of type",
    HoldsOneInASlot: "HoldsOneInASlot.box.env is of type",
    UsesTheNotebooks: "UsesTheNotebooks.reset.envs is of type BanditVectorEnv",
    OneSize: "fails in act",
    NeedsTheHorizon: "fails in reset",
    IgnoresRewards: "ignores the reward function",
    HoldsALock: "cannot be copied",
    FitsWithTheWorld: "uses the global generator of numpy.random",
    FailsToFit: "seen: ValueError: too few rows",
    NeedsArguments: "NeedsArguments cannot be made",
    Fails: "seen: KeyError: 'action 3'",
    NoObserve: "it lacks ['observe']",
    IgnoresTheMask: "plays what is not available",
    DrawsMoreWithAMask: "plays differently if everything is available",
    OneMaskForAll: "plays differently next to other tasks",
    ForgetsLateOutcomes: "learns differently in observe_late",
    TakesTheLatestAction: "plays differently next to other tasks",
}


def test_an_honest_agent_passes_as_class_instance_function_and_spec():
    for agent in (Honest, Honest(), lambda: Honest(), "linucb(alpha=0.5)"):
        assert check_agent(agent) is None


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_planted_defect_is_explained(defect):
    with pytest.raises(ContractError, match=re.escape(DEFECTS[defect])) as caught:
        check_agent(defect)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["what was done", "expected", "seen", "what to do"]


class OneSizeAndSaysSo(OneSize):
    def reset(self, info, rngs):
        if info.context_dim != 5:
            raise InputError(f"contexts must have 5 numbers, got {info.context_dim}")
        super().reset(info, rngs)


class HoldsAModule(Honest):
    """And a function of it: neither is an environment, whatever else the module has."""

    def __init__(self):
        self.module, self.make = gym, gym.make_vec


class OneRewardAndSaysSo(IgnoresRewards):
    def reset(self, info, rngs):
        if info.reward_fn(np.array([0.0, 1.0])).tolist() != [0, 1]:
            raise InputError("the reward must be the outcome")
        super().reset(info, rngs)


@pytest.mark.parametrize("agent", [OneSizeAndSaysSo, OneRewardAndSaysSo])
def test_an_agent_may_refuse_what_it_is_not_made_for(agent):
    assert check_agent(agent) is None


class SeeksDoubt(Honest):
    """Plays actions whose rewards vary most; 1 - R varies as R does."""

    def act(self, context):
        mean = (self.sums + 0.5) / self.counts
        return (mean * (1 - mean)).argmax(axis=1)


class HasAnAttributeLikeTheNotebooks(Honest):
    def act(self, context):
        self.envs = len(context)
        return super().act(context)


class ImportsLate(Honest):
    def reset(self, info, rngs):
        super().reset(info, rngs)
        importlib.import_module("draws_at_import")


@pytest.mark.parametrize(
    "agent",
    [LateHonest, MaskedHonest, HoldsAModule, ReusesItsAnswer, SeeksDoubt, HasAnAttributeLikeTheNotebooks, ImportsLate],
)
def test_what_is_unusual_but_right_passes(agent, tmp_path, monkeypatch):
    (tmp_path / "draws_at_import.py").write_text("import random\n\nrandom.random()\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert check_agent(agent) is None


def test_agents_are_told_the_space_of_their_features():
    told = []

    class Listens(Honest):
        def reset(self, info, rngs):
            super().reset(info, rngs)
            told.append(info.space)

    check_agent(lambda: Listens(), "news(n_actions=3, horizon=9)", steps=4)
    assert told[0] == gents_gym.make_tasks("news").sample(0, [0]).space


def test_the_error_can_be_pickled():
    with pytest.raises(ContractError) as caught:
        check_agent(Floats)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_rounding_is_admitted_only_where_it_is_asked_for():
    class PartsAlone(Honest):
        def act(self, context):
            return super().act(context) if len(context) != 1 else np.zeros(1, int)

    with pytest.raises(ContractError, match="may_part=1 admits a task that parts"):
        check_agent(PartsAlone)
    assert check_agent(PartsAlone, may_part=2) is None


def test_an_instance_is_copied_and_left_as_it_was():
    agent = Honest()
    check_agent(agent)
    assert vars(agent) == {}


def test_other_tasks_can_be_played():
    assert check_agent(Honest, "news(n_actions=3, horizon=9)") is None
    assert check_agent(Honest, gents_gym.make_tasks("synthetic", horizon=8)) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 3}, "steps must be at least 4, got 3"),
        ({"may_part": -1}, "may_part must be at least 0, got -1"),
        ({"tasks": "sinthetic"}, "unknown task distribution 'sinthetic'; did you mean 'synthetic'"),
        ({"agent": "linucbb"}, "unknown agent 'linucbb'; did you mean 'linucb'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        check_agent(**{"agent": Honest, **arguments})
