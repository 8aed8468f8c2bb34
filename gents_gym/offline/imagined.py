"""What a model imagines of a log: predicted rewards of its rows, and tables of rows to come in which agents play."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gents_gym.models.load import begin_belief
from gents_gym.offline.estimators import Estimate, mean
from gents_gym.offline.play import Stream
from gents_gym.types import Agent, Belief, Feedback

MOST_DECISIONS = 500  # of an imagined task


@dataclass(frozen=True, eq=False)
class Imagination:
    """A model's belief after all rows of one task."""

    stream: Stream
    predicted: np.ndarray  # (n, A) the reward that it expected of each row and action, given the earlier rows
    belief: Belief
    picked: np.ndarray  # (T,) the rows whose contexts the imagined rows have

    def draw(self, tables: int) -> np.ndarray:
        """Return outcomes of the rows to come, drawn given the log, (tables, T, A)."""
        context = self.stream.contexts[self.picked[:1]]
        drawn = self.belief.complete(context, len(self.picked), tables, "given")
        return drawn.outcomes[0, :, -len(self.picked) :].astype(np.float64)


def read_stream(model: Any, stream: Stream, rng: np.random.Generator) -> Imagination:
    """Let a model, or what names one, read the rows of a task one after the other; ``rng`` draws what it imagines."""
    picked = rng.integers(len(stream.rows), size=min(len(stream.rows), MOST_DECISIONS))
    known = np.concatenate([stream.contexts, stream.contexts[picked]])[None]  # (1, n + T, D)
    info = replace(stream.info, horizon=known.shape[1], known_contexts=known)
    _, belief = begin_belief(model, info, [rng])
    predicted = np.empty((len(stream.rows), len(stream.action_features)))
    for k in range(len(predicted)):
        context = stream.contexts[k][None]
        predicted[k] = belief.expected(context)[0]
        belief.decide(context, stream.actions[k : k + 1])
        belief.observe(Feedback(np.array([0]), np.array([k]), stream.outcomes[k : k + 1]))
    return Imagination(stream, predicted, belief, picked)


def logged_value(read: Imagination, outcomes: np.ndarray) -> Estimate:
    """Return the value of what was logged in imagined tables (tables, T, A); the estimate's rows are the tables."""
    return mean(outcomes[:, np.arange(len(read.picked)), read.stream.actions[read.picked]].mean(axis=1))


def play_imagined(
    agent: Agent, read: Imagination, outcomes: np.ndarray, rngs: Sequence[np.random.Generator]
) -> Estimate:
    """Return the value of an agent that plays all imagined tables (tables, T, A) at once, from their first row on."""
    n_tables = len(outcomes)
    agent.reset(read.stream.info[np.zeros(n_tables, np.int64)], rngs)
    total = np.zeros(n_tables)
    for t, row in enumerate(read.picked):
        context = np.repeat(read.stream.contexts[row][None], n_tables, axis=0)  # (tables, D)
        action = np.array(agent.act(context))
        outcome = outcomes[np.arange(n_tables), t, action]
        total += outcome
        agent.observe(context, action, outcome)
    return mean(total / len(read.picked))
