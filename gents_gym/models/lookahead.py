"""Estimates the value of further observations for any belief: its forks observe imagined outcomes and predict again.

Sizes: B tasks, A actions, C imagined contexts, n imagined outcomes of an action, and one more place, the current
context, before the imagined ones.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gents_gym.checks import TaskError
from gents_gym.likelihoods import Bernoulli, Gaussian
from gents_gym.numerics.cubature import hermite_rule
from gents_gym.types import Belief, Feedback, LooksAhead, Outlook, TaskInfo

DRAWS = 256  # draws of the next outcome, if the belief gives no probabilities of outcomes
N_NODES = 7  # nodes of the rule for several observations; with two, agents had far more bad tasks
Observe = Callable[[np.ndarray, np.ndarray], Iterator[np.ndarray]]
LEAST = 1e-12  # variance of a reward below which there is nothing to learn


def look_ahead(
    belief: Belief,
    info: TaskInfo,
    context: np.ndarray,
    counts: np.ndarray,
    size: int,
    contexts: str | None = None,
    actions: np.ndarray | None = None,
) -> Outlook:
    """Return the value of further observations: from the belief itself, or else from forks of it.

    Args:
        belief: The belief of B tasks.
        info: What is known of the tasks.
        context: The current contexts, (B, D).
        counts: Numbers of observations, rising, (n,).
        size: C, the number of imagined contexts.
        contexts: Where they come from, as in :meth:`gents_gym.types.Belief.complete`.
        actions: The actions that exist, (B, n); the outlook covers only these. None: all A.
    """
    if isinstance(belief, LooksAhead):
        return belief.look_ahead(context, counts, size, contexts, actions)
    first = np.zeros((len(info), 1), np.int64)
    table = belief.complete(context, size + 1, 1, contexts, first)  # only its contexts are used; one column is cheapest
    imagined = table.contexts[:, 0, table.current + 1 :]
    return look_ahead_on_forks(belief, info, table.current, context, imagined, counts, actions)


def look_ahead_on_forks(
    belief: Belief,
    info: TaskInfo,
    time: int,
    context: np.ndarray,
    imagined: np.ndarray,
    counts: np.ndarray,
    actions: np.ndarray | None = None,
) -> Outlook:
    """Return the value of further observations for any belief: forks of it observe every imagined outcome.

    Args:
        belief: The belief of B tasks.
        info: What is known of the tasks.
        time: Decisions so far.
        context: The current contexts, (B, D).
        imagined: The imagined contexts, (B, C, D).
        counts: Numbers of observations, rising, (n,).
        actions: The actions that exist, (B, n); None: all A.
    """

    def observe(places: np.ndarray, outcomes: np.ndarray) -> Iterator[np.ndarray]:
        n_tasks, n_actions, n = outcomes.shape
        tasks = np.repeat(np.arange(n_tasks), n)
        for a in range(n_actions):
            fork = belief.fork(tasks)
            fork.decide(places[tasks, 0], np.full(len(tasks), a) if actions is None else actions[tasks, a])
            given = outcomes[:, a].reshape(-1).astype(np.float32)
            fork.observe(Feedback(np.arange(len(tasks)), np.full(len(tasks), time), given))
            with errors_of(n):
                found = expect(fork, places[tasks], None if actions is None else actions[tasks])  # (B·n, 1+C, A)
            yield found.reshape(n_tasks, n, *found.shape[1:])

    return find_outlook(belief, info, context, imagined, counts, observe, actions)


def expect(belief: Belief, contexts: np.ndarray, actions: np.ndarray | None) -> np.ndarray:
    """Return mean rewards of all actions, or of ``actions``, in double precision."""
    found = belief.expected(contexts) if actions is None else belief.expected(contexts, actions)
    return np.asarray(found, np.float64)


def find_outlook(
    belief: Belief,
    info: TaskInfo,
    context: np.ndarray,
    imagined: np.ndarray,
    counts: np.ndarray,
    observe: Observe,
    actions: np.ndarray | None = None,
) -> Outlook:
    """Return the value of further observations, from the predictions after one observation.

    The gain of one observation is exact if there are finitely many outcomes; of Gaussian outcomes three are imagined.
    For k observations, predictions move along a line: the regression of the predictions after one observation on its
    reward. The size of the move is Gaussian, with the variance that k observations would remove if outcomes were
    independent given the mean reward, as they are in linear models with Gaussian outcomes.

    Args:
        belief: The belief of B tasks.
        info: What is known of the tasks.
        context: The current contexts, (B, D).
        imagined: The imagined contexts, (B, C, D).
        counts: Numbers of observations, rising, (n,).
        observe: Yields, action by action, all predictions after each of its outcomes, (B, n, 1+C, A),
            given places (B, 1+C, D), the first of them that of the observation, and outcomes (B, A, n).
        actions: The actions that exist, (B, n), which replace A; None: all.
    """
    places = np.concatenate([context[:, None], imagined], axis=1).astype(np.float32)  # (B, 1+C, D)
    now = expect(belief, places, actions)  # (B, 1+C, A)
    outcomes, chances = _imagine_outcomes(belief, info, places[:, 0], now[:, 0], actions)  # (B, A, n) each
    played = now[:, 1:].argmax(axis=2)  # (B, C)
    gains, shares = [], []
    for a, after in enumerate(observe(places, outcomes)):
        move = _Move(after, chances[:, a], np.asarray(info.reward_fn(outcomes[:, a]), np.float64), a)
        each = [move.gain(now, int(k), info.likelihood.support is not None) for k in counts]
        gains.append(np.stack(each, axis=1))  # (B, n)
        shares.append(((played == a) * move.likeness).mean(axis=1))
    return Outlook(np.stack(gains, axis=1), np.stack(shares, axis=1))


@contextmanager
def errors_of(copies: int) -> Iterator[None]:
    """Make errors about a copy of a task name the task; a task's copies are contiguous."""
    try:
        yield
    except TaskError as error:
        error.position //= copies
        raise


class _Move:
    """How predictions move when an action is observed in the current context."""

    def __init__(self, after: np.ndarray, chances: np.ndarray, rewards: np.ndarray, action: int) -> None:
        """Take predictions (B, n, 1+C, A) after outcomes with probabilities and rewards (B, n)."""
        self.after, self.chances = after, chances[..., None, None]
        centred = rewards - (chances * rewards).sum(axis=1, keepdims=True)
        variance = (chances * centred**2).sum(axis=1)  # (B,)
        deviation = np.sqrt(np.maximum(variance, LEAST))
        self.mean = (self.chances * after).sum(axis=1)  # (B, 1+C, A)
        slopes = (self.chances * centred[..., None, None] * (after - self.mean[:, None])).sum(axis=1)
        self.line = slopes / deviation[:, None, None]  # slopes of all predictions, per standard deviation of the reward
        own = self.line[..., action]  # (B, 1+C)
        # Share of the reward's variance that is due to the mean reward, (B,).
        self.share = np.clip(own[:, 0] / deviation, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.likeness = np.nan_to_num(np.minimum((own[:, 1:] / own[:, :1]) ** 2, 1))  # (B, C)

    def gain(self, now: np.ndarray, count: int, is_finite: bool) -> np.ndarray:
        """Return the rise of the best prediction after this many observations, averaged over contexts, (B,)."""
        if count == 1 and is_finite:
            most = (self.chances[..., 0] * self.after[:, :, 1:].max(axis=3)).sum(axis=1)  # (B, C)
            return np.asarray((most - self.mean[:, 1:].max(axis=2)).mean(axis=1))
        # k observations remove k(1 + q) / (1 + kq) times as much variance as one, q = share / (1 - share).
        size = np.sqrt(count / (1 + (count - 1) * self.share))[:, None, None]
        nodes, weights = hermite_rule(N_NODES)
        moved = (now[:, 1:] + node * size * self.line[:, 1:] for node in nodes)
        most = sum(weight * part.max(axis=2) for weight, part in zip(weights, moved, strict=True))
        return np.asarray((most - now[:, 1:].max(axis=2)).mean(axis=1))


def _imagine_outcomes(
    belief: Belief, info: TaskInfo, context: np.ndarray, expected: np.ndarray, actions: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes of every action in the current context and their probabilities, (B, A, n) each.

    Args:
        belief: The belief.
        info: What is known of the tasks.
        context: (B, D).
        expected: The mean rewards there, (B, A).
        actions: The actions, (B, A); None: all.
    """
    likelihood = info.likelihood
    if isinstance(likelihood, Bernoulli):
        losing, winning = (float(reward) for reward in info.reward_fn(likelihood.support))
        chance = (expected - losing) / (winning - losing) if winning != losing else np.full_like(expected, 0.5)
        found = np.broadcast_to(likelihood.support, (*expected.shape, 2))
        return found, np.clip(np.stack([1 - chance, chance], axis=-1), 0, 1)
    table = belief.complete(context, 1, DRAWS, None, actions)
    drawn = table.outcomes[:, :, table.current].astype(np.float64)  # (B, M, A)
    if isinstance(likelihood, Gaussian):
        nodes, weights = hermite_rule(3)
        found = drawn.mean(axis=1)[..., None] + drawn.std(axis=1)[..., None] * nodes
        return found, np.broadcast_to(weights, found.shape)
    chances = (drawn[..., None] == likelihood.support).mean(axis=1)  # (B, A, n)
    return np.broadcast_to(likelihood.support, chances.shape), chances
