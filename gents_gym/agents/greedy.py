"""Greedy, ε-greedy and softmax agents, which act on one-step predictions of the model that TS-Gen samples from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.ahead import Ahead
from gents_gym.agents.available import Available, counts_of, even_chances, find_available, pick_any, pick_best, spread
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL, BeliefHolder, first_task
from gents_gym.agents.ties import Chooser, check_ties
from gents_gym.checks import InputError, check_number, check_rngs
from gents_gym.models.load import check_model_name
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, TaskInfo


@dataclass
class Greedy(Resettable):
    """Plays the action with the highest predicted mean reward."""

    model: Any = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one

    def __post_init__(self) -> None:
        """Check the options."""
        check_model_name(self.model)
        check_ties(self.ties)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits these tasks; only the first is tried."""
        first, rngs, context = first_task(info)
        trial = Greedy(self.model)
        trial.reset(first, rngs)
        trial.scores(context)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._info, self._held = info, BeliefHolder(self.model, info, rngs)
        self._choose = Chooser(self.ties, rngs, info.n_actions)
        self._scores = Ahead(self.scores)

    def scores(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the predicted mean rewards, (B, D) to (B, A), or for the live actions, (B, n)."""
        return self._held.expected(context, live)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest prediction."""
        live = find_available(available, self._info)
        return self.acts(context, self._choose(self._scores.take(context, live), live))

    def acts(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,) that are played in the contexts (B, D)."""
        return self._held.acts(context, action)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return probability 1 for the action with the highest prediction, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return self._choose.probabilities(self._scores.look(context, live), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._held.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._held.observe_late(feedback)


@dataclass
class EpsilonGreedy(Resettable):
    """Plays a random action with probability ε, and otherwise the greedy one."""

    model: Any = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    epsilon: float = 0.1  # probability of a random action
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one

    def __post_init__(self) -> None:
        """Check the options."""
        if check_number("epsilon", self.epsilon, 0) > 1:
            raise InputError(f"epsilon must be at most 1, got {self.epsilon}")
        self._greedy = Greedy(self.model, self.ties)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits these tasks; only the first is tried."""
        self._greedy.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._greedy.reset(info, rngs)
        self._info = info
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 2)
        self._coins = Ahead(self._toss)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,)."""
        explore, which = self._coins.take(context).T
        anything = pick_any(which, find_available(available, self._info), self._info.n_actions)
        action = np.where(explore < self.epsilon, anything, self._greedy.act(context, available))
        return self._greedy.acts(context, action)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return ε/A for every action, plus 1 - ε for the greedy one, (B, D) to (B, A)."""
        self._coins.look(context)  # first, as in act, because a model's predictions may draw from the same generators
        uniform = even_chances(find_available(available, self._info), self._info)
        return self.epsilon * uniform + (1 - self.epsilon) * self._greedy.probabilities(context, available)

    def _toss(self, context: np.ndarray) -> np.ndarray:
        return self._uniform.next()  # (B, 2)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._greedy.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._greedy.observe_late(feedback)


@dataclass
class Softmax(Resettable):
    """Plays actions with probability proportional to exp(prediction / temperature): PreDeToR-τ."""

    model: Any = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    temperature: float = 0.05  # lower is greedier

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("temperature", self.temperature, 0, above=True)
        self._greedy = Greedy(self.model)

    def check(self, info: TaskInfo) -> None:
        """Raise unless the model fits these tasks; only the first is tried."""
        self._greedy.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._greedy.reset(info, rngs)
        self._info = info
        self._scores = Ahead(self._greedy.scores)
        self._gumbel = Draws(check_rngs(rngs, len(info)), "gumbel", info.n_actions)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,): the argmax of prediction plus temperature times Gumbel noise is a softmax draw."""
        live = find_available(available, self._info)
        scores = self._scores.take(context, live) + self.temperature * self._gumbel.next(counts_of(live))
        return self._greedy.acts(context, pick_best(scores, live))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the softmax of the predictions over the temperature, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        scores = self._scores.look(context, live)
        scores = scores if live is None else live.mask(scores)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.temperature)
        return spread(weights / weights.sum(axis=1, keepdims=True), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._greedy.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._greedy.observe_late(feedback)
