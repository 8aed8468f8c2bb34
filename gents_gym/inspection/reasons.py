"""Why an agent played what it played: its twin, with the same random numbers, is asked for the scores that decided.

The twin draws what the agent drew, so the agent itself is asked nothing and plays as it does in an evaluation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gents_gym.agents.bayes_ucb import BayesUCB
from gents_gym.agents.gen_kg import GenKG
from gents_gym.agents.greedy import Greedy
from gents_gym.agents.ts_gen import GenUCB, TSGen
from gents_gym.types import Agent, Completion, RandomisedAgent, TaskInfo


@dataclass(frozen=True, eq=False)
class Reason:
    """What decided between the actions of one task."""

    scores: np.ndarray | None = None  # (A,); None: the agent does not say
    predictions: np.ndarray | None = None  # the part of the scores that is predicted reward, (A,); None: not split
    tables: Completion | None = None  # the tables that the agent drew
    policy: np.ndarray | None = None  # the action that the fitted policy plays at each of C places, (C,)


class Twin(Protocol):
    """An agent's twin: it is asked for a reason, then learns what happened, at every decision."""

    label: str  # what the scores are
    sentence: str  # why the action is played, with {score}; {value} for the part that is not predicted
    plays_highest: bool  # whether the highest score decides

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return the reason in the context (1, D), and the policy at places (1, C, D)."""
        ...

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn what happened, as the agent did."""
        ...


class Drawn:
    """The twin of agents that fit policies to drawn tables."""

    plays_highest = True

    def __init__(self, twin: TSGen, quantile: float | None = None) -> None:
        """Score actions by the mean over the policies, or by a quantile."""
        self._twin, self._quantile, self.observe = twin, quantile, twin.observe
        n = twin.samples
        source = "the policy fitted to the drawn table" if n == 1 else f"policies fitted to {n} drawn tables"
        if quantile is None:
            self.label = f"score of {source}" if n == 1 else f"mean score of {source}"
            self.sentence = f"{source} {'scores' if n == 1 else 'score'} it highest, {{score}}"
        else:
            self.label = f"{quantile:g} quantile of the scores of {source}"
            self.sentence = f"the {self.label} is highest for it, {{score}}"

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return the scores of the fitted policies, the tables they were fitted to, and the policy at the places."""
        tables = self._twin.complete_tables(context)
        scores = self._combine(self._twin.fit_policies(tables))[0]  # (A,)
        if places is None:
            return Reason(scores, tables=tables)
        policy = self._combine(self._twin.scores_at(places))[0].argmax(axis=-1)  # (C,)
        return Reason(scores, tables=tables, policy=policy)

    def _combine(self, scores: np.ndarray) -> np.ndarray:
        """Return what actions are chosen by, (B, M, ..., A) to (B, ..., A)."""
        return np.asarray(
            scores.mean(axis=1) if self._quantile is None else np.quantile(scores, self._quantile, axis=1)
        )


class Scored:
    """The twin of agents that play the highest of their scores."""

    plays_highest = True

    def __init__(self, twin: Greedy | BayesUCB, label: str, sentence: str) -> None:
        """Say in words what the scores are."""
        self._twin, self.label, self.sentence, self.observe = twin, label, sentence, twin.observe

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return the scores."""
        return Reason(self._twin.scores(context)[0])


class Valued:
    """The twin of the knowledge gradient: predictions, and what observations are worth."""

    plays_highest = True
    label = "prediction + value of information"
    sentence = (
        "its prediction plus {value}, which its outcome is worth to later decisions, is the highest score, {score}"
    )

    def __init__(self, twin: GenKG, greedy: Greedy) -> None:
        """Take the twin, and a greedy agent on its model for the part that is predicted."""
        self._twin, self._greedy = twin, greedy

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return the scores and the predictions in them."""
        return Reason(self._twin.scores(context)[0], self._greedy.scores(context)[0])

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Hand the outcome on to both."""
        self._twin.observe(context, action, outcome)
        self._greedy.observe(context, action, outcome)


class Randomised:
    """The twin of agents that can say with which probabilities they play."""

    label = "probability of being played"
    sentence = "it is played with probability {score}"
    plays_highest = False

    def __init__(self, twin: Agent) -> None:
        """Take the twin, which acts as well: its random numbers go on as the agent's."""
        self._twin, self.observe = twin, twin.observe

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return the probabilities."""
        assert isinstance(self._twin, RandomisedAgent)
        chances = np.array(self._twin.probabilities(context))[0]
        self._twin.act(context)
        return Reason(chances)


class Silent:
    """Stands for agents that do not say why."""

    label = ""
    sentence = "the agent does not say why"
    plays_highest = False

    def explain(self, context: np.ndarray, places: np.ndarray | None) -> Reason:
        """Return a reason without scores."""
        return Reason()

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Do nothing."""


def make_twin(agent: Agent, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> Twin:
    """Return the twin that explains an agent; it draws the same random numbers.

    Args:
        agent: A second agent of the same options, which is reset here.
        info: What is known of the task.
        rngs: A generator in the state in which the playing agent's was.
    """
    if isinstance(agent, GenUCB):
        options = (agent.model, agent.policy, agent.m, agent.samples, agent.warm_start, agent.contexts)
        sampler = TSGen(*options)
        sampler.reset(info, rngs)
        return Drawn(sampler, agent.quantile)
    if not isinstance(agent, TSGen | GenKG | Greedy | BayesUCB | RandomisedAgent):
        return Silent()
    agent.reset(info, rngs)
    if isinstance(agent, TSGen):
        return Drawn(agent)
    if isinstance(agent, GenKG):
        greedy = Greedy(agent.model)
        greedy.reset(info, [rng.spawn(1)[0] for rng in rngs])
        return Valued(agent, greedy)
    if isinstance(agent, BayesUCB):
        return Scored(
            agent, "upper quantile of the mean reward", "the upper quantile of its mean reward is highest, {score}"
        )
    if isinstance(agent, Greedy):
        return Scored(agent, "prediction", "its prediction is highest, {score}")
    return Randomised(agent)
