"""Plays an agent on logged rows: it acts in every logged context, and learns from the rows that replay accepts.

Replay by rejection (Li et al. 2011; with propensities, Dudík et al. 2012): a row is accepted if the agent plays the
logged action, and then with probability c / p, with c the least propensity. So each row is accepted with probability
c, whatever the agent and the context: accepted rows are what the agent would have met by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.checks import check_actions, check_array
from gents_gym.likelihoods import Likelihood
from gents_gym.logs.record import Logs
from gents_gym.types import Agent, RandomisedAgent, TaskInfo


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of one task of a log, with its own A actions."""

    rows: np.ndarray  # (n,) places in the log
    actions: np.ndarray  # (n,) in [0, A)
    contexts: np.ndarray  # (n, D)
    outcomes: np.ndarray  # (n,)
    propensities: np.ndarray | None  # (n,)
    action_features: np.ndarray  # (A, F)
    likelihood: Likelihood
    own: np.ndarray  # (A,) the actions' numbers in the log

    @property
    def info(self) -> TaskInfo:
        """What an agent may know."""
        features, size = self.action_features, self.contexts.shape[1]
        return TaskInfo(features[None], len(features), size, likelihood=self.likelihood)

    def choose(self, picked: np.ndarray) -> "Stream":
        """Return the stream of some rows, in the given order."""
        names = ("rows", "actions", "contexts", "outcomes", "propensities")
        parts = {name: part[picked] for name in names if (part := getattr(self, name)) is not None}
        return replace(self, **parts)


def split_streams(logs: Logs) -> list[Stream]:
    """Return the streams of a log's tasks."""
    streams = []
    for rows, own in logs.streams():
        local = np.searchsorted(own, logs.actions[rows])
        propensities = None if logs.propensities is None else logs.propensities[rows]
        arrays = (rows, local, logs.contexts[rows], logs.outcomes[rows], propensities)
        streams.append(Stream(*arrays, logs.action_features[own], logs.likelihood, own))
    return streams


@dataclass(frozen=True, eq=False)
class Played:
    """What an agent did on n rows."""

    rows: np.ndarray  # (n,) places in the log
    target: np.ndarray  # (n,) its probability of the logged action; 0 or 1 if it is known only what it played
    direct: np.ndarray  # (n,) predicted reward of what it plays; NaN without predictions
    accepted: np.ndarray  # (n,) whether replay accepted the row
    plays: np.ndarray  # (A,) how often it played each action of the log, in expectation


def watch(agent: Agent, stream: Stream) -> None:
    """Let an agent that was reset learn from logged rows, whatever it would have played itself."""
    for k in range(len(stream.rows)):
        context = stream.contexts[k][None]
        agent.act(context)
        agent.observe(context, stream.actions[k : k + 1], stream.outcomes[k : k + 1].astype(np.float64))


def play(
    agent: Agent,
    stream: Stream,
    rng: np.random.Generator,
    predicted: np.ndarray | None,
    learning: bool = True,
    least: float | None = None,
) -> Played:
    """Play an agent that was reset on the rows of a stream, in their order.

    Args:
        agent: The agent of one task. It must take a decision without an outcome: a rejected row has none.
        stream: The rows.
        rng: Decides which matching rows are accepted.
        predicted: Predicted rewards of the stream's rows and actions, (n, A), or None.
        learning: Whether it learns from accepted rows; otherwise it stays as it is.
        least: c, the least propensity of all tasks, so that rows of each count alike; None: that of the stream.
    """
    n_rows, n_actions = len(stream.rows), len(stream.action_features)
    lucky = np.ones(n_rows, np.bool_)
    if stream.propensities is not None:
        least = stream.propensities.min() if least is None else least
        lucky = rng.random(n_rows) < least / stream.propensities
    target, direct = np.zeros(n_rows), np.full(n_rows, np.nan)
    accepted, plays = np.zeros(n_rows, np.bool_), np.zeros(n_actions)
    odds = agent.probabilities if isinstance(agent, RandomisedAgent) else None
    for k in range(n_rows):
        context = stream.contexts[k][None]
        known = None if odds is None else odds(context)
        action = check_actions(agent.act(context), 1, n_actions)
        share = _shares(known, action, n_actions)
        logged = stream.actions[k]
        target[k], accepted[k] = share[logged], lucky[k] and action[0] == logged
        plays += share
        if predicted is not None:
            direct[k] = share @ predicted[k]
        if accepted[k] and learning:
            agent.observe(context, action, stream.outcomes[k : k + 1].astype(np.float64))
    return Played(stream.rows, target, direct, accepted, plays)


def _shares(known: np.ndarray | None, action: np.ndarray, n_actions: int) -> np.ndarray:
    """Return the probabilities of the actions, (A,): those that the agent says, or one for what it played."""
    if known is not None:
        return check_array("probabilities", known, "(B, A)", (1, n_actions), np.float64)[0]
    return np.eye(n_actions)[action[0]]


def join(parts: Sequence[Played], n_actions: int, own: Sequence[np.ndarray]) -> Played:
    """Return one record of several tasks, in the order of the log's rows; plays are by the log's actions."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows)
    plays = np.zeros(n_actions)
    for part, actions in zip(parts, own, strict=True):
        plays[actions] += part.plays

    def gather(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return Played(rows[order], gather("target"), gather("direct"), gather("accepted"), plays)
