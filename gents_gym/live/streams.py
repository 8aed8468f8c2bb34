"""One stream of decisions: a task without an end, and what a model believes of it."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gents_gym.checks import InputError, check_array
from gents_gym.construct import make_agent
from gents_gym.live.store import Event, unpack
from gents_gym.models.load import begin_belief
from gents_gym.randomness import ROLES
from gents_gym.types import Agent, Feedback, LiveBelief, Model, RandomisedAgent, RewardFn, TaskInfo, VotingAgent

SLACK = 4  # the rows that are kept beyond the window, as a share of it: 1 / SLACK


@dataclass(frozen=True)
class Setting:
    """What all streams of a store share."""

    agent: str  # its spec, without the model
    model: Model
    context_dim: int
    seed: int
    window: int  # rows of decisions that agents fit policies to
    reward_fn: RewardFn


class Present:
    """A model in the middle of a task: an agent that begins with it finds the belief as it is."""

    def __init__(self, model: Model, belief: LiveBelief) -> None:
        self.belief = belief
        self.likelihood = model.likelihood
        self.context_features, self.action_context_features = model.context_features, model.action_context_features

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> LiveBelief:
        """Return the belief, which draws from these generators from now on."""
        self.belief.reseed(rngs)
        return self.belief


class OneGenerator(Sequence[np.random.Generator]):
    """The generator of one decision in a sequence, made when something is drawn: many decisions draw nothing."""

    def __init__(self, *key: int) -> None:
        """Take the seed, and what its stream depends on beside it."""
        self._key = key
        self._made: list[np.random.Generator] = []

    def __len__(self) -> int:
        """Return 1."""
        return 1

    def __getitem__(self, place: Any) -> Any:
        """Return the generator; it is the same one each time."""
        if not self._made:
            seed, *key = self._key
            self._made.append(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))
        return self._made[place]


class Stream:
    """The actions and the belief of one stream; its state follows from its events alone.

    An agent keeps nothing from one decision to the next: it is reset for each, with random numbers that depend on the
    seed, the stream and the number of the decision, and finds the belief as the events have left it. So a restart
    has only to show the belief what happened; nothing is decided again.
    """

    def __init__(self, name: str, setting: Setting | None) -> None:
        """Begin without actions; the setting must be known when something is decided."""
        self.name, self.setting = name, setting
        self.actions: dict[str, int] = {}  # by name, their numbers
        self.live = np.zeros(0, np.bool_)  # (A,): those that are not retired
        self.number = 0  # decisions so far
        self.seq = 0  # of the latest event
        self._first = 0  # number of the first decision that the belief has a row of
        self.features: list[np.ndarray] = []  # (F,) each
        self._present: Present | None = None  # None: nothing was decided yet
        self._agent: Agent
        self._act: Callable[..., np.ndarray]
        self._odds: Callable[..., np.ndarray] | None  # the agent's probabilities; None: it has none
        self._votes: bool  # whether these are votes
        self._key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        self._known: TaskInfo | None = None  # what agents may know of the actions; None: make it again
        self._unread: list[Event] = []  # decisions whose rows are opened when the belief is used next
        self._open: dict[int, int] = {}  # by id, the numbers of decisions without an outcome

    @property
    def shared(self) -> Setting:
        """What it shares with other streams."""
        assert self.setting is not None
        return self.setting

    def apply(self, event: Event) -> None:
        """Take what happened into account."""
        if event.kind == "add":
            self._add(str(event.action), unpack(event.vector or b"", np.float32))
        elif event.kind == "retire":
            self.live[self.actions[str(event.action)]] = False
        elif event.kind == "decide":
            self._decide(event)
        else:
            self._observe(event)
        self.seq = event.seq

    def _add(self, action: str, features: np.ndarray) -> None:
        self.actions[action] = len(self.actions)
        self.live = np.append(self.live, True)
        self.features.append(features)
        self._known = None
        if self._present is not None:
            self._begun().belief.add(features[None, None])

    def _decide(self, event: Event) -> None:
        if self._present is None:
            self._begun()  # before actions are added: a belief that begins with more of them may round differently
        self._unread.append(event)
        self._open[event.seq] = self.number
        self.number += 1
        if self.number - self._first >= self.shared.window + max(self.shared.window // SLACK, 1):
            self._forget(self.number - self.shared.window)

    def _forget(self, first: int) -> None:
        """Drop the rows before the decision of this number; their late outcomes stay in the store alone."""
        self._begun().belief.forget(first - self._first)
        self._first = first
        self._open = {id_: number for id_, number in self._open.items() if number >= first}

    def _observe(self, event: Event) -> None:
        number = self._open.pop(int(event.decision or 0), None)
        if number is not None:  # else its row was forgotten
            one = np.array([number - self._first])
            self._begun().belief.observe(Feedback(np.zeros(1, np.int64), one, np.array([event.value], np.float32)))

    def _begun(self) -> Present:
        """Return the model with its belief, which begins with the actions that there are now; rows are up to date."""
        if self._present is None:
            model, belief = begin_belief(self.shared.model, self._info(), [np.random.default_rng(0)])
            if not isinstance(belief, LiveBelief):
                rule = "model must be one of single actions, or have a belief with reseed and forget, for live use"
                raise InputError(f"{rule}, got {type(model).__name__}")
            self._present = self._make_agent(Present(model, belief))
        for event in self._unread:
            context, action = unpack(event.vector or b"", np.float32), self.actions[str(event.action)]
            self._present.belief.decide(context[None], np.array([action]))
        self._unread.clear()
        return self._present

    def _make_agent(self, present: Present) -> Present:
        """Make the agent that plays with it. Raises if its ``act`` does not take the available actions."""
        agent = make_agent(self.shared.agent, model=present)
        if not _takes_available(agent.act):
            raise InputError(f"agent must have act(context, available) for live use, got {self.shared.agent!r}")
        odds = agent.probabilities if isinstance(agent, RandomisedAgent) else None
        self._odds = odds if odds is not None and _takes_available(odds) else None
        self._agent, self._act, self._votes = agent, agent.act, isinstance(agent, VotingAgent)
        return present

    def _info(self) -> TaskInfo:
        if self._known is None:
            features = np.array(self.features)[None]  # (1, A, F)
            self._known = TaskInfo(
                features,
                features.shape[1],
                self.shared.context_dim,
                reward_fn=self.shared.reward_fn,
                likelihood=self.shared.model.likelihood,
                late=True,
                masked=True,
            )
        return self._known

    def choose(self, context: np.ndarray, available: np.ndarray, votes: bool) -> tuple[int, float | None]:
        """Return the number of the action to play in a context (D,), and its probability, or None.

        Args:
            context: (D,).
            available: (A,), which actions can be played.
            votes: Whether a probability is worth votes, if there is no formula for it.
        """
        if np.count_nonzero(available) == 1:
            return int(available.argmax()), 1.0  # there is nothing to decide
        self._begun()
        self._agent.reset(self._info(), OneGenerator(self.shared.seed, ROLES["live"], self._key, self.number))
        given, odds = (context[None], available[None]), None
        if self._odds is not None and (votes or not self._votes):
            odds = self._odds(*given)
        action = int(self._act(*given)[0])
        return action, None if odds is None else float(odds[0, action])

    def state(self) -> bytes:
        """Return the belief, and what the stream knows beyond its events, as safetensors."""
        counters = np.array([self.number, self._first])
        pending = np.array(list(self._open.items()), np.int64).reshape(-1, 2)
        belief = {} if self._present is None else self._begun().belief.state()
        own = {"stream.counters": counters, "stream.open": pending, "stream.live": self.live.astype(np.uint8)}
        return save({**own, **{name: np.ascontiguousarray(part) for name, part in belief.items()}})

    def restore(self, seq: int, state: bytes, actions: Iterable[Event]) -> None:
        """Take a state that :meth:`state` returned after the event ``seq``; ``actions`` were added until then."""
        try:
            parts = load(state)
            counters, pending = parts.pop("stream.counters"), parts.pop("stream.open")
            live = parts.pop("stream.live")
        except (SafetensorError, KeyError) as error:
            raise InputError(f"the snapshot of stream {self.name!r} must be whole, got {error}") from error
        for event in actions:
            self._add(str(event.action), unpack(event.vector or b"", np.float32))
        self.live = check_array("stream.live", live, "(A,)", (len(self.actions),)).astype(np.bool_)
        self.number, self._first = (int(number) for number in counters)
        self._open = {int(id_): int(number) for id_, number in pending}
        self.seq = seq
        if parts:
            self._begun().belief.restore(parts)


def _takes_available(call: Callable[..., Any]) -> bool:
    return "available" in inspect.signature(call).parameters
