"""One agent in use: decisions as they are asked for, outcomes as they arrive, everything on disk."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from gents_gym.checks import InputError, check_array, check_choice, check_flag, check_integer, check_number, check_type
from gents_gym.construct import agent_options, make_agent
from gents_gym.files import digest
from gents_gym.likelihoods import make_likelihood
from gents_gym.live.store import Event, Store, pack
from gents_gym.live.streams import Setting, Stream
from gents_gym.logs.encoding import Encoding, encode_one
from gents_gym.models.load import UNTRAINED, check_model_name, resolve_model
from gents_gym.models.notes import read_columns, read_notes
from gents_gym.models.remarks import model_remarks
from gents_gym.specs import parse_spec
from gents_gym.types import Model, RewardFn, TaskInfo, identity

LOGGER = logging.getLogger("gents_gym")
MAIN = "main"  # the stream that is meant if none is named


@dataclass(frozen=True)
class Decision:
    """What to play now."""

    id: int  # to name when its outcome arrives
    action: str
    probability: float | None  # with which it was played; None: the agent has no formula, and votes were not asked for


class Live:
    """An agent that decides and learns, kept in one file; a restart goes on as if nothing had happened.

    Every call that changes something is on disk before it returns. One process writes a store at a time;
    its threads may share a ``Live``.
    """

    def __init__(
        self,
        store: str | Path,
        agent: str = "ts-gen(m=64)",
        model: Any = "filter",
        *,
        seed: int = 0,
        window: int = 10_000,
        snapshot_every: int | None = 1000,
        encode: Callable[[str], Any] | None = None,
        reward_fn: RewardFn = identity,
        likelihood: str | None = None,
    ) -> None:
        """Open a store, or go on with it.

        Args:
            store: The SQLite file; it is made if it does not exist.
            agent: An agent on a model, with its options: "ts-gen(m=64)", "greedy", "bayes-ucb(discount=0.999)".
            model: The model, its id, its preset or its folder. A preset chooses a bundled model by its sizes alone,
                and a line in the log of the logger "gents_gym" says which.
            seed: Where the agent's random numbers come from, with the stream and the number of a decision.
            window: Rows of decisions that policies are fitted to, the latest; what a model has learned stays.
            snapshot_every: Decisions of a stream after which its state is kept; None: only by :meth:`snapshot`.
            encode: From an action's text to its features, for :meth:`add` with ``text``.
            reward_fn: R, from outcomes to rewards; hand in the same one after a restart.
            likelihood: What an outcome is: "bernoulli", "gaussian" or "categorical(C)". None: the model's, or
                Bernoulli for a preset and "untrained".
        """
        self._lock = threading.RLock()
        self._given: dict[str, Any] = {
            "agent": _check_agent(agent),
            "seed": check_integer("seed", seed, 0),
            "window": check_integer("window", window, 1),
        }
        self._model, self._encode, self._reward_fn = _check_model(model), encode, reward_fn
        known, columns = read_notes(model).get("config", {}), read_columns(model)
        self._likelihood = make_likelihood(known.get("likelihood", "bernoulli") if likelihood is None else likelihood)
        fixed = {} if known.get("padded") else known  # a model that pads contexts has no sizes of its own
        self._sizes = {name: fixed.get(name, -1) for name in ("action_dim", "context_dim")}  # -1: not known
        self._encoding = Encoding.from_json(columns) if columns else None
        self._every = None if snapshot_every is None else check_integer("snapshot_every", snapshot_every, 1)
        self._setting: Setting | None = None
        self._remarks: tuple[str, ...] = ()  # on the model, once it is known
        self._streams: dict[str, Stream] = {}
        self._store = Store(store)
        try:
            self._check_facts()
        except BaseException:
            self._store.close()
            raise

    def _check_facts(self) -> None:
        """Raise unless the store is of this agent; a new one is marked as such."""
        facts = self._store.facts()
        if "agent" not in facts:
            self._store.set_facts(self._given)
        for name, value in self._given.items():
            if facts.get(name, value) != value:
                raise InputError(f"store must have {name} {value!r}, got '{self._store.path}' with {facts[name]!r}")
        if "model" in facts:
            self._setting = self._make_setting(facts["action_dim"], facts["context_dim"])

    def _make_setting(self, action_dim: int, context_dim: int) -> Setting:
        """Return what streams share, with the model for these sizes. Raises if the store has another model."""
        model = self._find_model(action_dim, context_dim)
        if self._store.facts().get("model", own := fingerprint(model)) != own:
            rule = "model must be the one that the store was begun with"
            raise InputError(f"{rule}, got {self._model!r} for '{self._store.path}', which has other weights")
        given = self._given
        return Setting(given["agent"], model, context_dim, given["seed"], given["window"], self._reward_fn)

    def _find_model(self, action_dim: int, context_dim: int) -> Model:
        features = np.zeros((1, 1, action_dim), np.float32)
        info = TaskInfo(features, 1, context_dim, likelihood=self._likelihood)
        found = resolve_model(self._model, info)
        self._remarks = model_remarks(self._model, info)
        for remark in self._remarks:
            LOGGER.warning("Live('%s'): %s", self._store.path, remark)
        return found

    def add(self, action: str, features: Any = None, *, text: str | None = None, stream: str = MAIN) -> None:
        """Let an action be played from now on, with the model's prior for its features.

        Args:
            action: Its name, new in the stream.
            features: Z, (F,), or values by the names of the columns that the model was trained on.
            text: In the place of features, for ``encode``.
            stream: The stream it belongs to.
        """
        with self._lock:
            one = self._stream(stream)
            if check_type("action", action, str) in one.actions:
                state = "is there already" if one.live[one.actions[action]] else "was retired"
                raise InputError(f"action must be a new name in stream {stream!r}, got {action!r}, which {state}")
            if (features is None) == (text is None):
                raise InputError("features or text must be given, one of them")
            if text is not None:
                if self._encode is None:
                    raise InputError("encode must be given to Live for actions with a text, got None")
                features = self._encode(check_type("text", text, str))
            size = self._store.facts().get("action_dim", -1)
            vector = self._vector("features", features, "F", size if size >= 0 else self._sizes["action_dim"])
            if size < 0:
                self._store.set_facts({"action_dim": len(vector)})
            self._happen(one, "add", action=action, vector=pack(vector, np.float32), text=text)

    def retire(self, action: str, *, stream: str = MAIN) -> None:
        """Never play an action again; late outcomes of its decisions still count."""
        with self._lock:
            one = self._stream(stream)
            if not one.live[self._number(one, action)]:
                raise InputError(f"action must not be retired already, got {action!r}")
            self._happen(one, "retire", action=action)

    def decide(self, context: Any, available: Any = None, *, votes: bool = False, stream: str = MAIN) -> Decision:
        """Return what to play in a context.

        Args:
            context: X, (D,), or values by the names of the columns that the model was trained on.
            available: Names of the actions to choose from; None: all that are not retired.
            votes: Whether an agent without a formula finds the action's probability by votes, which takes
                many times as long.
            stream: The stream.
        """
        with self._lock:
            one = self._stream(stream)
            votes = check_flag("votes", votes)
            size = self._sizes["context_dim"] if self._setting is None else self._setting.context_dim
            vector = self._vector("context", context, "D", size)
            mask = self._mask(one, available)
            setting = self._setting or self._make_setting(len(one.features[0]), len(vector))
            with self._changing(one):
                one.setting = setting
                number, probability = one.choose(vector, mask, votes)
            if self._setting is None:  # the first decision of the store: from now on it has a model
                columns = {} if self._encoding is None else {"columns": self._encoding.to_json()}
                self._store.set_facts({"context_dim": len(vector), "model": fingerprint(setting.model), **columns})
                self._setting = setting
            action = list(one.actions)[number]
            event = self._happen(
                one,
                "decide",
                action=action,
                vector=pack(vector, np.float32),
                mask=pack(mask, np.uint8),
                probability=probability,
            )
            if self._every is not None and one.number % self._every == 0:
                with suppress(InputError):  # the decision is made; what is wrong with the disk, the next call will say
                    self.snapshot(stream)
            return Decision(event.seq, action, probability)

    def outcome(self, decision: int, value: float) -> None:
        """Learn the outcome of a decision; it may arrive late, and in any order, once."""
        with self._lock:
            made = self._store.find(check_integer("decision", decision, 1))
            if made is None:
                raise InputError(f"decision must be the id of one that was made, got {decision}")
            if self._store.has_outcome(decision):
                raise InputError(f"an outcome must arrive once for each decision, got a second one of {decision}")
            one = self._stream(made.stream)
            value = check_number("value", float(value) if isinstance(value, bool) else value)
            number = check_array("value", value, "()", ())  # float32 may not hold it
            one.shared.model.likelihood.check("value", number)
            self._happen(one, "outcome", action=made.action, decision=decision, value=float(number))

    def snapshot(self, stream: str | None = None) -> None:
        """Keep the state of a stream, or of all, so that a restart has less to go through."""
        with self._lock:
            known = self._store.streams()
            for name in known if stream is None else [check_choice("stream", stream, known)]:
                one = self._stream(name)
                self._store.set_snapshot(name, one.seq, one.state())

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._store.close()

    def __repr__(self) -> str:
        notes = "".join(f"; {remark}" for remark in self._remarks)
        return f"Live('{self._store.path}', {self._given['agent']}, model {self._model!r}{notes})"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    @contextmanager
    def _changing(self, stream: Stream) -> Iterator[None]:
        """If changing the stream fails, drop it: its next use reads it from the store again."""
        try:
            yield
        except BaseException:
            self._streams.pop(stream.name, None)
            raise

    def _happen(self, stream: Stream, kind: str, **fields: Any) -> Event:
        """Write an event and apply it to the stream, or do neither if one of them raises."""
        with self._changing(stream), self._store.transaction():
            event = self._store.write(stream.name, kind, **fields)
            stream.apply(event)
        return event

    def _stream(self, name: str) -> Stream:
        """Return a stream in its present state."""
        check_type("stream", name, str)
        if name in self._streams:
            return self._streams[name]
        stream = self._replay(name)
        if stream.seq:  # else it is just a name
            self._streams[name] = stream
        return stream

    def _replay(self, name: str) -> Stream:
        """Return a stream, from its latest snapshot and the events since."""
        stream = Stream(name, self._setting)
        kept = self._store.snapshot(name)
        if kept is not None:
            added = self._store.events(name, kind="add")
            stream.restore(*kept, (event for event in added if event.seq <= kept[0]))
        for event in self._store.events(name, stream.seq):
            stream.apply(event)
        return stream

    def _vector(self, role: str, values: Any, axis: str, size: int) -> np.ndarray:
        """Return a context or features as an array of this size; values by names are encoded as the model's log."""
        if isinstance(values, Mapping):
            if self._encoding is None:
                rule = f"{role} must be an array of numbers for a model without columns of a log"
                raise InputError(f"{rule}, got names for {self._model!r}")
            columns = self._encoding.contexts if role == "context" else self._encoding.action_features
            values = encode_one(role, values, columns)
        return check_array(role, values, f"({axis},)", (size,))

    def _number(self, stream: Stream, action: Any) -> int:
        if not isinstance(action, str) or action not in stream.actions:
            raise InputError(f"action must be one of stream {stream.name!r}, got {action!r}")
        return stream.actions[action]

    def _mask(self, stream: Stream, available: Any) -> np.ndarray:
        """Return which actions can be played, (A,). Raises if there are none."""
        mask = stream.live.copy()
        if available is not None:
            if isinstance(available, str) or not isinstance(available, Iterable):
                raise InputError(f"available must be a list of actions, got {available!r}")
            chosen = {action: self._number(stream, action) for action in available}
            if retired := [action for action, i in chosen.items() if not mask[i]]:
                raise InputError(f"available must be actions that are not retired, got {retired[0]!r}")
            mask = np.zeros_like(mask)
            mask[list(chosen.values())] = True
        if not mask.any():
            raise InputError(f"at least one action must be available in stream {stream.name!r}, got none: add some")
        return mask


def _check_agent(agent: Any) -> str:
    """Check that an agent acts on a model, and does not name it; return its spec."""
    name, options = parse_spec(check_type("agent", agent, str))
    if "model" not in agent_options(name):
        raise InputError(f"agent must act on a model for live use, as ts-gen does, got {agent!r}")
    if "model" in options:
        raise InputError(f"agent must be given without its model, which is an argument of its own, got {agent!r}")
    if name == "auto":
        raise InputError("agent must be the one that tuned.json names, which must not need the horizon, got 'auto'")
    try:  # on any model: what matters is that nothing is written for an agent that can never decide
        trial = make_agent(str(agent), model=UNTRAINED)
        trial.reset(TaskInfo(np.zeros((1, 2, 1), np.float32), 2, 1), [np.random.default_rng(0)])
    except InputError as error:
        if "horizon" in str(error):
            raise InputError(f"agent must not need the horizon for live use, got {agent!r}: {error}") from None
    return str(agent)


def _check_model(model: Any) -> Any:
    """Check that a model, or what names it, is known; return it. Weights are read at the first decision."""
    if model == "exact":
        raise InputError(
            "model must be a trained one for live use, got 'exact', which knows the truth of simulated tasks"
        )
    check_model_name(model)
    return model


def fingerprint(model: Model) -> str:
    """Return the text that identifies a model: its class, and the sha256 of its weights if it has some."""
    kind = f"{type(model).__module__}:{type(model).__qualname__}"
    if not isinstance(model, torch.nn.Module):
        return kind
    weights = model.state_dict()
    return f"{kind} {', '.join(weights)} {digest(*(tensor.cpu().numpy() for tensor in weights.values()))}"
