"""Every planted defect of a belief is caught by its own check, and a sound model of all actions at once passes."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from gents_gym import Bernoulli, InputError
from gents_gym.testing import check_model
from gents_gym.types import Completion

WEIGHTS = np.random.default_rng(0).normal(size=(16, 7))  # of the types


class SoundBelief:
    """The task is of one of 16 types; their posterior is worked out again from all rows when it is asked for."""

    def __init__(self, info, rngs):
        self.info, self.rngs = info, list(rngs)
        self.features = np.array(info.action_features, np.float64)
        self.contexts = np.zeros((len(info), 0, info.context_dim), np.float32)
        self.actions, self.outcomes = np.zeros((len(info), 0), int), np.zeros((len(info), 0))  # NaN: not arrived

    def chances(self, contexts):  # (B, C, D) to (types, B, C, A)
        by_action = np.einsum("kf,baf->kba", WEIGHTS[:, :2], self.features)
        by_context = np.einsum("kd,bcd->kbc", WEIGHTS[:, 2:], contexts)
        return expit(1.5 * by_action[:, :, None] + 0.4 * by_context[..., None])

    def posterior(self):  # (types, B)
        p = np.take_along_axis(self.chances(self.contexts), self.actions[None, ..., None], 3)[..., 0]
        fit = np.where(self.outcomes == 1, p, 1 - p)
        likelihood = np.where(np.isnan(self.outcomes), 1, fit).prod(axis=2)
        return likelihood / likelihood.sum(axis=0)

    def expected(self, contexts, actions=None):
        many = contexts if contexts.ndim == 3 else contexts[:, None]
        chances = np.einsum("kb,kbca->bca", self.posterior(), self.chances(many))
        found = Bernoulli().expected_reward(self.info.reward_fn, chances)
        found = found if actions is None else np.take_along_axis(found, actions[:, None], axis=2)
        return found if contexts.ndim == 3 else found[:, 0]

    def variance(self, contexts):
        chances = Bernoulli().expected_reward(self.info.reward_fn, self.chances(contexts[:, None])[:, :, 0])
        return np.einsum("kb,kba->ba", self.posterior(), (chances - self.expected(contexts)) ** 2)

    def decide(self, context, action):
        self.contexts = np.concatenate([self.contexts, context[:, None]], axis=1)
        self.actions = np.concatenate([self.actions, action[:, None]], axis=1)
        self.outcomes = np.concatenate([self.outcomes, np.full((len(action), 1), np.nan)], axis=1)

    def observe(self, feedback):
        self.outcomes = self.outcomes.copy()
        self.outcomes[feedback.task, feedback.decision] = feedback.outcome

    def imagine(self, context, count, draws, contexts):
        own = np.concatenate([self.contexts, context[:, None]], axis=1)
        if contexts == "given":
            known = self.info.known_contexts[:, None, own.shape[1] : own.shape[1] + count]
            new = np.repeat(known, draws, axis=1)
        elif contexts in (None, "seen"):
            new = np.stack(
                [x[rng.integers(len(x), size=(draws, count))] for x, rng in zip(own, self.rngs, strict=True)]
            )
        else:
            raise InputError(f"contexts must be seen or given, got {contexts!r}")
        return np.concatenate([np.repeat(own[:, None], draws, axis=1), new], axis=2)

    def draw(self, imagined):  # outcomes of one type per table
        draws, size = imagined.shape[1], imagined.shape[2]
        n_tasks, n_actions = len(self.info), self.features.shape[1]
        chances = self.chances(imagined.reshape(n_tasks, draws * size, -1)).reshape(16, n_tasks, draws, size, n_actions)
        table = []
        for i, rng in enumerate(self.rngs):
            kinds = rng.choice(16, size=draws, p=self.posterior()[:, i])
            table.append(rng.random((draws, size, n_actions)) < chances[kinds, i, np.arange(draws)])
        return np.array(table, np.float32)

    def complete(self, context, rows=None, draws=1, contexts=None, actions=None):
        t = self.contexts.shape[1]
        end = self.info.horizon if rows is None else t + rows
        imagined = self.imagine(context, end - t - 1, draws, contexts).astype(np.float32)
        table = self.draw(imagined)
        seen = (self.actions[..., None] == np.arange(table.shape[3])) & ~np.isnan(self.outcomes)[..., None]
        table[:, :, :t] = np.where(seen[:, None], self.outcomes[:, None, :, None], table[:, :, :t])
        weights = np.ones_like(table)
        weights[:, :, :t] = seen[:, None]
        if actions is not None:
            table, weights = (np.take_along_axis(part, actions[:, None, None], 3) for part in (table, weights))
        return Completion(imagined, table, None if rows is None else weights, None, t)

    def fork(self, tasks):
        other = copy.copy(self)
        other.info, other.rngs = self.info[tasks], [self.rngs[i].spawn(1)[0] for i in tasks]
        for name in ("features", "contexts", "actions", "outcomes"):
            setattr(other, name, getattr(self, name)[tasks])
        return other

    def add(self, action_features):
        self.features = np.concatenate([self.features, action_features], axis=1)

    def state(self):
        return {name: getattr(self, name).copy() for name in ("contexts", "actions", "outcomes")}

    def restore(self, state):
        for name in ("contexts", "actions", "outcomes"):
            setattr(self, name, state[name].copy())


class Joint:
    """The model of a class of beliefs."""

    likelihood = Bernoulli()

    def __init__(self, belief=SoundBelief):
        self.belief = belief

    def begin(self, info, rngs):
        return self.belief(info, rngs)

    def context_features(self, contexts):
        return None

    def action_context_features(self, action_features, contexts):
        return None


def test_a_sound_model_passes():
    assert check_model(Joint) is None


def test_a_model_that_lacks_a_part_is_explained(explain):
    class Half:
        likelihood = Bernoulli()

        def begin(self, info, rngs):
            return SoundBelief(info, rngs)

    assert "it lacks context_features, action_context_features" in explain(Half)


def shifted(verb, change):
    """A belief that changes what a verb returns."""

    def altered(self, *given, **options):
        return change(self, getattr(SoundBelief, verb)(self, *given, **options))

    return type("", (SoundBelief,), {verb: altered})


def completed(**changes):
    """A belief that changes parts of its completions, each by a function of the belief and the completion."""

    def change(self, found):
        return replace(found, **{name: make(self, found) for name, make in changes.items()})

    return shifted("complete", change)


def edit(array, index, value):
    array = array.copy()
    array[index] = value(array[index]) if callable(value) else value
    return array


class NoBelief:
    def __init__(self, info, rngs):
        pass

    def expected(self, contexts):
        return np.zeros(4)


class WritesInfo(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, rngs)
        info.action_features[:] += 1


class WritesFeedback(SoundBelief):
    def observe(self, feedback):
        super().observe(feedback)
        feedback.outcome[:] = 0


class TakesTheMeanOverTasks(SoundBelief):
    def posterior(self):
        found = super().posterior()
        return 0.9 * found + 0.1 * found.mean(axis=1, keepdims=True)


class OneContextForAll(SoundBelief):
    def expected(self, contexts):
        if contexts.ndim == 3:
            return np.repeat(super().expected(contexts[:, :1]), contexts.shape[1], axis=1)
        return super().expected(contexts)


class OtherColumns(SoundBelief):
    def expected(self, contexts, actions=None):
        return super().expected(contexts, None if actions is None else actions[:, ::-1])


class Clock(SoundBelief):
    calls = 0

    def expected(self, contexts):
        self.calls += 1
        return np.clip(super().expected(contexts) + self.calls / 1000, 0, 1)


class SharedByBeliefs(SoundBelief):
    latest = None

    def observe(self, feedback):
        super().observe(feedback)
        type(self).latest = self

    def posterior(self):
        return SoundBelief.posterior(self.latest if self.latest and len(self.latest.info) == len(self.info) else self)


class ByNumber(SoundBelief):
    def expected(self, contexts):
        return super().expected(contexts) * np.linspace(0.5, 1, self.features.shape[1])


class KeepsContexts(SoundBelief):
    """A list of references, put together when it is asked for."""

    def __init__(self, info, rngs):
        super().__init__(info, rngs)
        self.kept = []

    def decide(self, context, action):
        super().decide(context, action)
        self.kept.append(context)
        self.contexts = np.stack(self.kept, axis=1)

    def posterior(self):
        self.contexts = np.stack(self.kept, axis=1) if self.kept else self.contexts
        return super().posterior()


class IgnoresRewards(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(replace(info, reward_fn=lambda outcome: outcome), rngs)


class TakesFeedbackInOrder(SoundBelief):
    """As if every task had one outcome, that of the latest decision."""

    def observe(self, feedback):
        self.outcomes = self.outcomes.copy()
        self.outcomes[: len(feedback.outcome), -1] = feedback.outcome[: len(self.outcomes)]


class TakesTheLatestDecision(SoundBelief):
    def observe(self, feedback):
        super().observe(replace(feedback, decision=np.full_like(feedback.decision, self.outcomes.shape[1] - 1)))


class LearnsInDecide(SoundBelief):
    """Takes an action that is played for a good one until the outcome is there."""

    def decide(self, context, action):
        super().decide(context, action)
        self.outcomes[:, -1] = 1


class FailsWithoutOutcomes(SoundBelief):
    def observe(self, feedback):
        super().observe(replace(feedback, outcome=feedback.outcome - 0 * feedback.outcome.max()))


class ForksShare(SoundBelief):
    """Copies nothing: rows of one list."""

    def fork(self, tasks):
        other = super().fork(tasks)
        other.origin, other.picked = self, tasks
        return other

    def observe(self, feedback):
        super().observe(feedback)
        if hasattr(self, "origin"):
            self.origin.outcomes[self.picked, 0] = 1 - self.origin.outcomes[self.picked, 0]


class ForksFollow(SoundBelief):
    forks = ()

    def fork(self, tasks):
        other = super().fork(tasks)
        self.forks = (*self.forks, (other, tasks))
        return other

    def observe(self, feedback):
        super().observe(feedback)
        for other, tasks in self.forks:
            other.outcomes[:, 0] = 1 - self.outcomes[tasks, 0]


class ForksInOrder(SoundBelief):
    def fork(self, tasks):
        return super().fork(np.sort(tasks))


class ForksForget(SoundBelief):
    def fork(self, tasks):
        return type(self)(self.info[tasks], [self.rngs[i].spawn(1)[0] for i in tasks])


class ForkingChanges(SoundBelief):
    def fork(self, tasks):
        other = super().fork(tasks)
        self.outcomes = 1 - self.outcomes
        return other


class TwinsShare(SoundBelief):
    """Forks of one task learn together."""

    def fork(self, tasks):
        other = super().fork(tasks)
        other.twins = np.asarray(tasks)
        return other

    def observe(self, feedback):
        super().observe(feedback)
        if hasattr(self, "twins"):
            same = self.twins[:, None] == self.twins
            self.outcomes[:, -1] = self.outcomes[same.argmax(axis=1), -1]


class ForksDrawFromTheOriginal(SoundBelief):
    def fork(self, tasks):
        other = super().fork(tasks)
        other.rngs = [self.rngs[i] for i in tasks]
        return other


class TwinsDrawTheSame(SoundBelief):
    def fork(self, tasks):
        other = super().fork(tasks)
        other.rngs = [np.random.default_rng(i) for i in tasks]
        return other


class AddsNothing(SoundBelief):
    def add(self, action_features):
        pass


class AddsInFront(SoundBelief):
    def add(self, action_features):
        self.features = np.concatenate([action_features, self.features], axis=1)


class AddsWithoutFeatures(SoundBelief):
    def add(self, action_features):
        super().add(0 * action_features)


class AddedOnesLearnNothing(SoundBelief):
    def observe(self, feedback):
        super().observe(feedback)
        self.outcomes[self.actions >= self.info.n_actions] = np.nan


class StateOfObjects(SoundBelief):
    def state(self):
        return {"belief": self}


class LiveState(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, rngs)
        self.count = np.zeros(len(info))

    def observe(self, feedback):
        super().observe(feedback)
        self.count += 1

    def state(self):
        return {**super().state(), "count": self.count}


class KeepsWhatItRestores(LiveState):
    def state(self):
        return {**SoundBelief.state(self), "count": self.count.copy()}

    def restore(self, state):
        super().restore(state)
        self.count = state["count"]


class LosesOutcomes(SoundBelief):
    def restore(self, state):
        super().restore(state)
        self.outcomes[:, 0] = np.nan


class RestoresNothing(SoundBelief):
    def restore(self, state):
        pass


class OpenCellsCount(SoundBelief):
    def decide(self, context, action):
        super().decide(context, action)
        self.decided = self.actions.copy()

    def complete(self, context, rows=None, draws=1, contexts=None, actions=None):
        found = super().complete(context, rows, draws, contexts, actions)
        if rows is None or actions is not None:
            return found
        played = self.actions[..., None] == np.arange(self.features.shape[1])
        return replace(found, weights=edit(found.weights, np.s_[:, :, : played.shape[1]], played[:, None]))


class LearnsWhatItImagines(SoundBelief):
    imagined = 0

    def complete(self, *given, **options):
        self.imagined += 1
        return super().complete(*given, **options)

    def posterior(self):
        return super().posterior() * 0.9**self.imagined + (1 - 0.9**self.imagined) / 16


class OwnGeneratorInBelief(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, [np.random.default_rng() for _ in rngs])


class OneGeneratorForAll(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, [rngs[0]] * len(rngs))


class SeedBySlot(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, [np.random.default_rng(i) for i in range(len(rngs))])


class DrawsFromTheWorld(SoundBelief):
    def draw(self, imagined):
        np.random.normal()  # noqa: NPY002
        return super().draw(imagined)


class SameTablesAgain(SoundBelief):
    def draw(self, imagined):
        kept = [rng.bit_generator.state for rng in self.rngs]
        found = super().draw(imagined)
        for rng, state in zip(self.rngs, kept, strict=True):
            rng.bit_generator.state = state
        return found

    def imagine(self, context, count, draws, contexts):
        return super().imagine(context, count, draws, "seen" if contexts is None and count == 0 else contexts)


class DrawsFromThePrior(SoundBelief):
    def draw(self, imagined):
        kept, self.outcomes = self.outcomes, np.full_like(self.outcomes, np.nan)
        found = super().draw(imagined)
        self.outcomes = kept
        return found


class PastFromThePrior(SoundBelief):
    """Rows of earlier decisions are drawn as if nothing had been observed."""

    def draw(self, imagined):
        found, kept = super().draw(imagined), self.outcomes
        self.outcomes = np.full_like(kept, np.nan)
        found[:, :, : kept.shape[1]] = super().draw(imagined)[:, :, : kept.shape[1]]
        self.outcomes = kept
        return found


class NotAutoregressive(SoundBelief):
    """A separate type for every row."""

    def draw(self, imagined):
        rows = np.split(imagined, imagined.shape[2], axis=2)
        return np.concatenate([SoundBelief.draw(self, row) for row in rows], axis=2)


class OneTableForAll(SoundBelief):
    def draw(self, imagined):
        return np.repeat(super().draw(imagined)[:, :1], imagined.shape[1], axis=1)


class AlwaysTheLikelier(SoundBelief):
    def draw(self, imagined):
        chances = self.expected(imagined.reshape(len(self.info), -1, imagined.shape[3]))
        noise = np.stack([rng.random(chances.shape[1:]) for rng in self.rngs]) / 5
        return (chances + noise > 0.6).astype(np.float32).reshape(*imagined.shape[:3], -1)


class IgnoresKnownContexts(SoundBelief):
    def imagine(self, context, count, draws, contexts):
        return super().imagine(context, count, draws, "seen")


class ForgetsRowsInForks(SoundBelief):
    """Believes what it did, and no longer knows which cells it saw."""

    forgot = False

    def fork(self, tasks):
        other = super().fork(tasks)
        other.forgot = True
        return other

    def complete(self, *given, **options):
        found = super().complete(*given, **options)
        return replace(found, outcomes=1 - found.outcomes) if self.forgot else found


class ForgetsRowsWhenRestored(ForgetsRowsInForks):
    def fork(self, tasks):
        return SoundBelief.fork(self, tasks)

    def restore(self, state):
        super().restore(state)
        self.forgot = True


class NeedsTheHorizon(SoundBelief):
    def __init__(self, info, rngs):
        super().__init__(info, rngs)
        self.rounds = info.horizon // 2


TABLE = "of a completed table is wrong"
DEFECTS = {
    "no belief": (NoBelief, "begin does not return a belief"),
    "writes info": (WritesInfo, "modifies info.action_features"),
    "writes feedback": (WritesFeedback, "modifies an array that observe was given"),
    "wrong shape": (shifted("expected", lambda _, p: p[..., :-1]), "expects impossible rewards"),
    "whole numbers": (shifted("expected", lambda _, p: p.round().astype(int)), "expects impossible rewards"),
    "NaN": (shifted("expected", lambda _, p: p * np.nan), "expects impossible rewards"),
    "too much": (shifted("expected", lambda _, p: 2 * p), "expects impossible rewards"),
    "other columns": (OtherColumns, "some actions are predicted differently from among all"),
    "one context for all": (OneContextForAll, "many contexts at once are predicted differently from one at a time"),
    "negative variance": (shifted("variance", lambda _, v: -v), "variance is wrong"),
    "variance of one": (shifted("variance", lambda _, v: v[:, :1]), "variance is wrong"),
    "a clock": (Clock, "a prediction depends on more than the history"),
    "shared by beliefs": (SharedByBeliefs, "a prediction depends on more than the history"),
    "a mean over tasks": (TakesTheMeanOverTasks, "predicts differently in a task next to other tasks"),
    "by number": (ByNumber, "predicts by the position of an action"),
    "keeps contexts": (KeepsContexts, "keeps an array that belongs to its caller"),
    "ignores rewards": (IgnoresRewards, "ignores the reward function"),
    "feedback in order": (TakesFeedbackInOrder, "late outcomes are learned differently"),
    "latest decision": (TakesTheLatestDecision, "late outcomes are learned differently"),
    "learns in decide": (LearnsInDecide, "a decision without an outcome changes what is expected"),
    "fails without outcomes": (FailsWithoutOutcomes, "fails in observe"),
    "forks in order": (ForksInOrder, "a fork does not believe what the original believes"),
    "forks forget": (ForksForget, "a fork does not believe what the original believes"),
    "forking changes": (ForkingChanges, "fork changes what the original believes"),
    "forks share": (ForksShare, "a fork shares what it learns with the original"),
    "forks follow": (ForksFollow, "a fork shares what the original learns"),
    "twins share": (TwinsShare, "copies of one task share what they learn"),
    "adds nothing": (AddsNothing, "add does not add actions"),
    "adds in front": (AddsInFront, "add changes what is expected of the other actions"),
    "adds without features": (AddsWithoutFeatures, "an added action is treated differently"),
    "added ones learn nothing": (AddedOnesLearnNothing, "an added action is treated differently"),
    "a state of objects": (StateOfObjects, "state is not plain"),
    "a live state": (LiveState, "a state changes after it was returned"),
    "keeps what it restores": (KeepsWhatItRestores, "restore keeps the arrays that it is given"),
    "restores nothing": (RestoresNothing, "restore does not bring back what was believed"),
    "loses outcomes": (LosesOutcomes, "restore does not bring back what was believed"),
    "alters observed cells": (
        completed(outcomes=lambda _, c: edit(c.outcomes, np.s_[:, :, 0], lambda y: 1 - y)),
        "an observed cell",
    ),
    "a dictionary": (shifted("complete", lambda _, c: vars(c)), f"contexts {TABLE}"),
    "too few rows": (completed(outcomes=lambda _, c: c.outcomes[:, :, 1:]), f"outcomes {TABLE}"),
    "other contexts": (completed(contexts=lambda _, c: c.contexts[:, :, ::-1]), f"contexts {TABLE}"),
    "infinite contexts": (
        completed(contexts=lambda _, c: edit(c.contexts, np.s_[:, :, -1], np.inf)),
        "expected: finite numbers",
    ),
    "another row": (completed(current=lambda _, c: c.current + 1), f"current {TABLE}"),
    "no weights": (completed(weights=lambda _, c: None), f"weights {TABLE}"),
    "all count": (completed(weights=lambda _, c: np.ones_like(c.outcomes)), f"the weights {TABLE}"),
    "nothing new counts": (
        completed(weights=lambda _, c: edit(np.ones_like(c.outcomes), np.s_[:, :, c.current :], 0)),
        f"the weights {TABLE}",
    ),
    "chances for outcomes": (
        completed(outcomes=lambda _, c: edit(c.outcomes, np.s_[:, :, -1], 0.5)),
        "seen: a completed outcome must be 0 or 1, got 0.5",
    ),
    "features of nowhere": (completed(features=lambda _, c: c.contexts), f"features {TABLE}"),
    "open cells count": (OpenCellsCount, "a decision without an outcome counts as observed"),
    "learns what it imagines": (LearnsWhatItImagines, "complete changes what is expected"),
    "ignores known contexts": (IgnoresKnownContexts, "ignores known contexts"),
    "forgets rows in forks": (ForgetsRowsInForks, "an observed cell"),
    "forgets rows when restored": (ForgetsRowsWhenRestored, "a state was restored"),
    "needs the horizon": (NeedsTheHorizon, "fails in begin"),
    "a generator of its own": (OwnGeneratorInBelief, "does not complete the same tables again"),
    "one generator for all": (OneGeneratorForAll, "completes a task differently next to other tasks"),
    "a seed by slot": (SeedBySlot, "completes a task differently next to other tasks"),
    "draws from the world": (DrawsFromTheWorld, "uses the global generator of numpy.random"),
    "forks draw from the original": (ForksDrawFromTheOriginal, "a fork draws from the original's generators"),
    "twins draw the same": (TwinsDrawTheSame, "copies of one task draw the same numbers"),
    "one table for all": (OneTableForAll, "does not draw what it expects"),
    "draws from the prior": (DrawsFromThePrior, "does not draw what it expects"),
    "the past from the prior": (PastFromThePrior, "does not draw what it expects"),
    "always the likelier": (AlwaysTheLikelier, "does not draw what it expects"),
    "not autoregressive": (NotAutoregressive, "does not draw an outcome given the earlier draws"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_explained(defect, explain):
    belief, message = DEFECTS[defect]
    assert message in explain(lambda: Joint(belief))
