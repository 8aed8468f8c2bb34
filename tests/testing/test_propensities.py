"""Tests that planted defects in an agent's probabilities are found, and that honest agents pass."""

import re

import numpy as np
import pytest

from gents_gym.construct import make_tasks
from gents_gym.testing import ContractError, check_agent
from gents_gym.testing.agent import DEFAULT_TASKS, N_TASKS
from gents_gym.testing.player import Player
from gents_gym.testing.propensities import _tail, check_propensities


class Honest:
    """Softmax of mean rewards by Gumbel noise."""

    heat = 0.5

    def reset(self, info, rngs):
        self.info, self.rngs = info, rngs
        self.sums, self.counts = np.zeros((2, len(info), info.n_actions))
        self.others = [rng.spawn(1)[0] for rng in rngs]

    def scores(self, context):
        return (self.sums + context[:, :1] * np.arange(self.info.n_actions)) / (1 + self.counts)

    def act(self, context):
        noise = np.stack([rng.gumbel(size=self.info.n_actions) for rng in self.rngs])
        return (self.scores(context) / self.heat + noise).argmax(axis=1)

    def observe(self, context, action, outcome):
        tasks = np.arange(len(action))
        self.sums[tasks, action] += self.info.reward_fn(outcome)
        self.counts[tasks, action] += 1

    def probabilities(self, context):
        weights = np.exp(self.scores(context) / self.heat)
        return weights / weights.sum(axis=1, keepdims=True)


class Votes(Honest):
    """The share of four draws, the one that is played first among them."""

    def probabilities(self, context):
        self.noise = np.stack([rng.gumbel(size=self.info.n_actions) for rng in self.rngs])
        more = [np.stack([rng.gumbel(size=self.info.n_actions) for rng in self.others]) for _ in range(3)]
        best = [(self.scores(context) / self.heat + noise).argmax(axis=1) for noise in (self.noise, *more)]
        return np.mean([each[:, None] == np.arange(self.info.n_actions) for each in best], axis=0)

    def act(self, context):
        if not hasattr(self, "noise"):
            return super().act(context)
        return (self.scores(context) / self.heat + self.__dict__.pop("noise")).argmax(axis=1)


class VotesWithoutThePlayed(Votes):
    def probabilities(self, context):
        other = Votes.probabilities(self, context)
        return np.eye(self.info.n_actions)[(other * [1, 2, 3, 4][: self.info.n_actions]).argmax(axis=1)]


class Uniform(Honest):
    def probabilities(self, context):
        return np.full((len(context), self.info.n_actions), 1 / self.info.n_actions)


class TooSharp(Honest):
    def probabilities(self, context):
        weights = Honest.probabilities(self, context) ** 2.5
        return weights / weights.sum(axis=1, keepdims=True)


class TooFlat(Honest):
    def probabilities(self, context):
        weights = Honest.probabilities(self, context) ** 0.4
        return weights / weights.sum(axis=1, keepdims=True)


class Reversed(Honest):
    def probabilities(self, context):
        return Honest.probabilities(self, context)[:, ::-1]


class OfAnotherTask(Honest):
    def probabilities(self, context):
        return np.roll(Honest.probabilities(self, context), 1, axis=0)


class OneHot(Honest):
    def probabilities(self, context):
        return np.eye(self.info.n_actions)[self.scores(context).argmax(axis=1)]


class NoDistribution(Honest):
    def probabilities(self, context):
        return Honest.probabilities(self, context) * 1.01


class Negative(Honest):
    def probabilities(self, context):
        found = Honest.probabilities(self, context)
        found[:, 0], found[:, 1] = -0.1, found[:, :2].sum(axis=1) + 0.1
        return found


class OnlyThePlayed(Honest):
    def probabilities(self, context):
        return Honest.probabilities(self, context)[:, 0]


class DrawsFromTheSameStream(Honest):
    def probabilities(self, context):
        for rng in self.rngs:
            rng.random()
        return Honest.probabilities(self, context)


class LearnsFromTheQuestion(Honest):
    def probabilities(self, context):
        found = Honest.probabilities(self, context)
        self.counts += 1
        return found


FREQUENCIES = "plays actions with other frequencies than its probabilities"
DEFECTS = {
    Uniform: FREQUENCIES,
    TooSharp: FREQUENCIES,
    TooFlat: FREQUENCIES,
    Reversed: FREQUENCIES,
    OfAnotherTask: FREQUENCIES,
    OneHot: "above 0 for the action that is played, got 0",
    VotesWithoutThePlayed: "above 0 for the action that is played, got 0",
    NoDistribution: "must be at least 0 and sum to 1 over actions",
    Negative: "must be at least 0 and sum to 1 over actions",
    OnlyThePlayed: "must have shape (B, A)=(17, 4), got (17,)",
    DrawsFromTheSameStream: "plays differently when probabilities are requested",
    LearnsFromTheQuestion: "plays differently when probabilities are requested",
}


@pytest.fixture(scope="module")
def tasks():
    return make_tasks(DEFAULT_TASKS).sample(0, range(N_TASKS), "train")


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_planted_defect_is_explained(defect, tasks):
    player = Player(defect.__name__, defect, 8)
    with pytest.raises(ContractError, match=re.escape(DEFECTS[defect])):
        check_propensities(player, tasks, player.play(tasks, range(N_TASKS)))


def test_a_defect_is_found_by_the_whole_check():
    with pytest.raises(ContractError, match=FREQUENCIES):
        check_agent(Uniform)


@pytest.mark.parametrize("agent", [Honest, Votes])
def test_honest_probabilities_pass(agent):
    check_agent(agent)


def test_the_tail_bound_holds_for_sums_of_coins():
    """At no level do more sums lie beyond than the bound says."""
    coins = np.random.default_rng(0).random((20_000, 50)) < 0.1
    bounds = np.array([_tail(sum_ - 5.0, 50 * 0.09) for sum_ in coins.sum(axis=1)])
    for level in (0.3, 0.1, 0.01, 0.001):
        assert (bounds < level).mean() <= level
    assert (bounds < 0.1).any()
