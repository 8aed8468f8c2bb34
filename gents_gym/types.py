"""Defines the records and protocols that cross folders: batches of tasks, what agents may know, and interfaces.

Sizes: B tasks, T horizon, A actions, D context size, F action-feature size, N single actions, R rows of each.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from gents_gym.checks import InputError, check_array, check_available, check_integer, check_reward_fn
from gents_gym.files import digest
from gents_gym.likelihoods import BERNOULLI, Likelihood, infer_likelihood, make_likelihood
from gents_gym.likelihoods import RewardFn as RewardFn
from gents_gym.taskfile import ARRAYS, read_tasks, write_tasks


def identity(outcome: np.ndarray) -> np.ndarray:
    """The reward R(y) = y."""
    return outcome


def half(outcome: np.ndarray) -> np.ndarray:
    """The reward R(y) = y/2."""
    return outcome / 2


def signed(outcome: np.ndarray) -> np.ndarray:
    """The reward R(y) = 2y - 1: a failure costs as much as a success brings."""
    return 2 * outcome - 1


def _name(reward_fn: RewardFn) -> str:
    """Return the name of a reward function for files."""
    name = getattr(reward_fn, "__qualname__", None)
    if name is None:
        raise InputError(f"reward_fn must be a function with a name to be saved, got {reward_fn!r}")
    return f"{reward_fn.__module__}:{name}"


def _frozen(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_texts(value: Any, shape: tuple[int, int]) -> np.ndarray:
    """Check that ``value`` has ``shape`` and holds only texts; return it as an array of str objects."""
    try:
        texts = np.array(value, object)
    except (ValueError, MemoryError):  # a ragged list, or an endless range
        texts = np.empty(0, object)
    if texts.shape != shape or not all(isinstance(text, str) for text in texts.flat):
        raise InputError(f"texts must be texts of shape (B, A)={shape}, got shape {texts.shape}")
    return texts


@dataclass(frozen=True, eq=False)
class Truth:
    """p* as the setting publishes it: the exact model is made from it.

    Attributes:
        prior: φ_Z, (..., H), to mean and variance of the coefficients, intercept first, (..., K) each; for C categories
            to (..., C-1, K) each, one row for each category except the first.
        likelihood: What an outcome is.
        context_map: φ_X, (..., D) to (..., K-1), or None if it is the identity.
        context_spread: s; contexts are √(1 - s²) X̄ + s X, where X̄ is fixed for each task, both N(0, I).
        noise: The variance of Gaussian outcomes.
        drift: How coefficients move: "walk", a stationary autoregression with the prior as its distribution at every
            decision, or "jump", to new coefficients of all actions, once.
        rate: With a walk, coefficients n decisions apart have the correlation (1 - rate)ⁿ; a jump comes before a
            decision with this probability, but at most once. 0: coefficients stay.
        correlation: Correlation of the same standardised coefficient of two actions of a task.
        row_effect: The share of the outcomes' noise that all actions of a row have in common.
    """

    prior: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    likelihood: Likelihood = BERNOULLI
    context_map: Callable[[np.ndarray], np.ndarray] | None = None
    context_spread: float = 1.0
    noise: float = 1.0
    drift: str = "walk"
    rate: float = 0.0
    correlation: float = 0.0
    row_effect: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether coefficients stay constant and actions are independent."""
        return not (self.rate or self.correlation or self.row_effect)

    @property
    def jumps(self) -> bool:
        """Whether coefficients jump."""
        return self.drift == "jump" and self.rate > 0


@dataclass(frozen=True, eq=False)
class Tasks:
    """A batch of B tasks, each with its whole potential-outcomes table; the arrays are read-only.

    Attributes:
        action_features: Z, (B, A, F) float32.
        contexts: X, (B, T, D) float32.
        outcomes: Y, the potential-outcomes table, (B, T, A) float32.
        means: True E[R(Y)], (B, T, A) float32, or None if not known.
        oracle: Id of the policy class that the setting's regret is measured against; None: "logistic" for outcomes 0
            and 1, "least-squares" for others.
        reward_fn: R, from outcomes to finite rewards, elementwise.
        hidden_features: True features of the actions that agents do not see, (B, A, H) float32, or None.
        texts: The actions' texts, (B, A) of str, or None.
        space: The name of the embedding space of the action features, or None if they are not embeddings.
        likelihood: What an outcome is; None: Bernoulli if all outcomes are 0 or 1, else Gaussian.
        truth: p*, or None if not known. Files do not keep it.
        available: Which actions can be played at each decision, (B, T, A) bool; None: all of them.
        known_columns: Entries of contexts that agents know ahead for all decisions, usually the time.
    """

    action_features: np.ndarray
    contexts: np.ndarray
    outcomes: np.ndarray
    means: np.ndarray | None = None
    oracle: str = None  # type: ignore[assignment]  # set in __post_init__
    reward_fn: RewardFn = identity
    hidden_features: np.ndarray | None = None
    texts: np.ndarray | None = None
    space: str | None = None
    likelihood: Likelihood = None  # type: ignore[assignment]  # set in __post_init__
    truth: Truth | None = None
    available: np.ndarray | None = None
    known_columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the shapes against each other and the outcomes, and make the arrays read-only."""
        features = check_array("action_features", self.action_features, "(B, A, F)", (-1, -1, -1))
        n_tasks, n_actions, _ = features.shape
        contexts = check_array("contexts", self.contexts, "(B, T, D)", (n_tasks, -1, -1))
        table = (n_tasks, contexts.shape[1], n_actions)
        arrays = {"action_features": features, "contexts": contexts}
        for name in ("outcomes", "means"):
            if (value := getattr(self, name)) is not None or name == "outcomes":
                arrays[name] = check_array(name, value, "(B, T, A)", table)
        if self.hidden_features is not None:
            hidden = check_array("hidden_features", self.hidden_features, "(B, A, H)", (n_tasks, n_actions, -1))
            arrays["hidden_features"] = hidden
        if self.texts is not None:
            arrays["texts"] = _check_texts(self.texts, (n_tasks, n_actions))
        if self.available is not None:
            arrays["available"] = check_available(self.available, "(B, T, A)", table)
        check_integer("the number of actions", n_actions, 2)
        check_integer("the horizon T", contexts.shape[1], 1)
        check_integer("the context size D", contexts.shape[2], 1)
        for name, array in arrays.items():
            object.__setattr__(self, name, _frozen(array))
        _check_labels(self)
        if not isinstance(self.truth, Truth | None):
            raise InputError(f"truth must be a Truth or None, got {self.truth!r}")
        set_likelihood(self)
        object.__setattr__(self, "known_columns", _check_columns(self.known_columns, contexts.shape[2]))
        if not isinstance(self.oracle, str | None):
            raise InputError(f"oracle must be the id of a policy class or None, got {self.oracle!r}")
        if self.oracle is None:
            object.__setattr__(self, "oracle", "logistic" if self.likelihood == BERNOULLI else "least-squares")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again, which pickling does not keep."""
        self.__dict__.update({k: _frozen(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})

    def __len__(self) -> int:
        """Return B."""
        return len(self.contexts)

    def __getitem__(self, index: Any) -> "Tasks":
        """Return the tasks at ``index`` as a batch; an int gives a batch of one."""
        if isinstance(index, int | np.integer):
            index = [index]
        return replace(self, **{name: array[index] for name, array in self._parts().items()})

    def with_available(self, available: np.ndarray) -> "Tasks":
        """Return the same tasks with ``available``, (B, T, A) of bool, which must be valid: it is not checked."""
        other = copy.copy(self)
        object.__setattr__(other, "available", _frozen(available))
        return other

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that hashes are made from."""
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}

    def _parts(self) -> dict[str, np.ndarray]:
        """Return everything that has an entry per task."""
        return self._arrays() if self.texts is None else {**self._arrays(), "texts": self.texts}

    def put(self, slots: np.ndarray, tasks: "Tasks") -> "Tasks":
        """Return a copy with the tasks at ``slots`` replaced by ``tasks``, in order.

        The result has means, hidden features, texts, space, truth or columns only if both batches have them. If their
        likelihoods differ, the likelihood is chosen again from the outcomes.
        """
        theirs, merged = tasks._parts(), {}
        for name, array in self._parts().items():
            if name in theirs:
                merged[name] = array.copy()
                merged[name][slots] = theirs[name]
        space = self.space if self.space == tasks.space else None
        return Tasks(
            **merged,
            oracle=self.oracle,
            reward_fn=self.reward_fn,
            space=space,
            likelihood=self.likelihood if self.likelihood == tasks.likelihood else None,  # type: ignore[arg-type]
            truth=self.truth if self.truth is tasks.truth else None,
            known_columns=self.known_columns if self.known_columns == tasks.known_columns else (),
        )

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.outcomes.shape[2])

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.outcomes.shape[1])

    @property
    def context_dim(self) -> int:
        """D."""
        return int(self.contexts.shape[2])

    @cached_property
    def rewards(self) -> np.ndarray:
        """R of the potential-outcomes table, (B, T, A)."""
        rewards = self.reward_fn(self.outcomes)
        return _frozen(check_array("R of the outcomes", rewards, "(B, T, A)", self.outcomes.shape))

    @property
    def known_truth(self) -> Truth | None:
        """p* as agents may know it: None if it depends on features that they do not see."""
        return self.truth if self.hidden_features is None else None

    @property
    def known_contexts(self) -> np.ndarray | None:
        """What agents know of contexts ahead, (B, T, D), NaN for unknown entries; None if nothing is known."""
        if not self.known_columns:
            return None
        known = np.full_like(self.contexts, np.nan)
        known[..., list(self.known_columns)] = self.contexts[..., list(self.known_columns)]
        return known

    @property
    def hashes(self) -> tuple[str, ...]:
        """The sha256 of each task's content, in order."""
        return tuple(digest(*task) for task in zip(*self._arrays().values(), strict=True))

    @property
    def content_hash(self) -> str:
        """The sha256 of the batch's content."""
        return digest(*self._arrays().values())

    def save(self, path: str | Path) -> Path:
        """Write the batch to one safetensors file, whole or not at all."""
        labels: dict[str, Any] = {"oracle": self.oracle, "reward_fn": _name(self.reward_fn)}
        if self.texts is not None:
            labels["texts"] = self.texts.tolist()
        if self.space is not None:
            labels["space"] = self.space
        if self.known_columns:
            labels["known_columns"] = list(self.known_columns)
        if self.likelihood != infer_likelihood(self.outcomes):  # otherwise the outcomes imply it
            labels["likelihood"] = str(self.likelihood)
        return write_tasks(path, self._arrays(), labels)

    @classmethod
    def load(cls, path: str | Path, reward_fn: RewardFn = identity, oracle: str | None = None) -> "Tasks":
        """Read a batch that :meth:`save` wrote; a file cannot name code.

        Args:
            path: The file.
            reward_fn: R, which must have the name that the file holds.
            oracle: The file's policy class, needed if that is a ``package.module:Class``; None: any registered id.
        """
        arrays, labels = read_tasks(path, oracle)
        parts: dict[str, Any] = {**arrays, **labels}
        wanted, got = parts.pop("reward_fn"), _name(reward_fn)
        if got != wanted:
            raise InputError(f"reward_fn must be the one in the file, {wanted}, got {got}")
        if "likelihood" in parts:
            parts["likelihood"] = make_likelihood(parts["likelihood"])
        return cls(**parts, reward_fn=reward_fn)


def _check_columns(value: Any, size: int) -> tuple[int, ...]:
    """Check that indices of columns are below ``size`` and named once; return them."""
    if not isinstance(value, tuple | list) or len({*value}) < len(value):
        raise InputError(f"known_columns must be a list of different columns, got {value!r}")
    columns = tuple(check_integer("known_columns", column, 0) for column in value)
    if max(columns, default=-1) >= size:
        raise InputError(f"known_columns must lie below {size}, the context size, got {max(columns)}")
    return columns


@dataclass(frozen=True, eq=False)
class ActionRows:
    """Row sets of independent single actions: the historical data that models and priors are fitted to.

    Attributes:
        action_features: (N, F) float32.
        contexts: (N, R, D) float32.
        outcomes: (N, R) float32.
        reward_fn: R, from outcomes to finite rewards, elementwise.
        hidden_features: True features that agents do not see, (N, H) float32, or None: privileged.
        space: The name of the embedding space of the action features, or None if they are not embeddings.
        likelihood: What an outcome is; None: Bernoulli if all outcomes are 0 or 1, else Gaussian.
    """

    action_features: np.ndarray
    contexts: np.ndarray
    outcomes: np.ndarray
    reward_fn: RewardFn = identity
    hidden_features: np.ndarray | None = None
    space: str | None = None
    likelihood: Likelihood = None  # type: ignore[assignment]  # set in __post_init__

    def __post_init__(self) -> None:
        """Check the shapes against each other and the outcomes, and make the arrays read-only."""
        features = check_array("action_features", self.action_features, "(N, F)", (-1, -1))
        contexts = check_array("contexts", self.contexts, "(N, R, D)", (len(features), -1, -1))
        outcomes = check_array("outcomes", self.outcomes, "(N, R)", contexts.shape[:2])
        arrays = {"action_features": features, "contexts": contexts, "outcomes": outcomes}
        if self.hidden_features is not None:
            hidden = check_array("hidden_features", self.hidden_features, "(N, H)", (len(features), -1))
            arrays["hidden_features"] = hidden
        for name, array in arrays.items():
            object.__setattr__(self, name, _frozen(array))
        _check_labels(self)
        set_likelihood(self)

    def __len__(self) -> int:
        """Return N."""
        return len(self.contexts)

    @property
    def content_hash(self) -> str:
        """The sha256 of the rows' content."""
        return digest(self.action_features, self.contexts, self.outcomes)


def _check_labels(data: Tasks | ActionRows) -> None:
    check_reward_fn(data.reward_fn)
    if not isinstance(data.space, str | None):
        raise InputError(f"space must be a text or None, got {data.space!r}")


def set_likelihood(data: Any) -> None:
    """Set the likelihood of frozen data if it is not given; raise if it does not allow the outcomes."""
    if data.likelihood is None:
        object.__setattr__(data, "likelihood", infer_likelihood(data.outcomes))
    elif not isinstance(data.likelihood, Likelihood):
        rule = "likelihood must be a Bernoulli, Gaussian or Categorical of gents_gym.likelihoods"
        raise InputError(f"{rule}, got {data.likelihood!r}")
    else:
        data.likelihood.check("outcomes", data.outcomes)


@runtime_checkable
class TaskDistribution(Protocol):
    """Draws tasks; task i depends only on (seed, split, i)."""

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        ...

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        ...


@runtime_checkable
class PublishesTruth(Protocol):
    """A task distribution that knows its p*."""

    @property
    def truth(self) -> Truth:
        """p* as the setting publishes it."""
        ...


@dataclass(frozen=True, eq=False)
class TaskInfo:
    """Everything that an agent may know of the B tasks it is about to play."""

    action_features: np.ndarray  # (B, A, F)
    n_actions: int
    context_dim: int
    horizon: int | None = None  # None: the end is not known
    reward_fn: RewardFn = identity
    texts: Sequence[Sequence[str]] | None = None  # B × A texts, if actions have one
    space: str | None = None  # the name of the embedding space, if action features are embeddings
    likelihood: Likelihood = BERNOULLI  # what an outcome is
    truth: Truth | None = None  # p*, if it is published and depends only on the features above
    known_contexts: np.ndarray | None = None  # (B, T, D): what is known of future contexts; NaN: not known
    late: bool = False  # whether outcomes may arrive after later decisions, or never
    masked: bool = False  # whether only some of the actions can be played at a decision

    def __post_init__(self) -> None:
        """Check R."""
        check_reward_fn(self.reward_fn)

    def __len__(self) -> int:
        """Return B."""
        return len(self.action_features)

    def __getitem__(self, index: int | Sequence[int] | np.ndarray) -> "TaskInfo":
        """Return the info of the tasks at ``index``; an int gives a batch of one."""
        index = np.atleast_1d(index)
        texts = None if self.texts is None else [self.texts[i] for i in index]
        known = None if self.known_contexts is None else self.known_contexts[index]
        return replace(self, action_features=self.action_features[index], texts=texts, known_contexts=known)


@runtime_checkable
class Agent(Protocol):
    """Plays B independent tasks at once; it may read and copy the arrays it receives, but not keep or change them."""

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Forget everything and start B new tasks; all randomness of task i comes from ``rngs[i]``."""
        ...

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) for the contexts (B, D)."""
        ...

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn from the outcomes (B,) of the actions (B,) in the contexts (B, D)."""
        ...


@runtime_checkable
class LateAgent(Protocol):
    """An agent that takes outcomes when they arrive, each with the number of its decision."""

    def observe_late(self, feedback: "Feedback") -> None:
        """Learn what arrived since the last decision, possibly nothing; it is called once after every ``act``.

        It replaces ``observe``: the agent remembers the contexts and actions of its own decisions.
        """
        ...


class MaskedAgent(Protocol):
    """An agent that plays only available actions: its ``act`` has a parameter ``available``."""

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return actions (B,) for the contexts (B, D), each available in its task; ``available`` is (B, A) of bool."""
        ...


@runtime_checkable
class RandomisedAgent(Protocol):
    """An agent that can report its action probabilities."""

    def probabilities(self, context: np.ndarray) -> np.ndarray:
        """Return the probability of each action, (B, D) to (B, A), before ``act`` is called in the same contexts.

        It draws from its own stream, so calling it never changes what is played. If only some actions can be played, it
        is called with contexts and ``available`` (B, A) of bool, as ``act`` is.
        """
        ...


@runtime_checkable
class VotingAgent(RandomisedAgent, Protocol):
    """A randomised agent without a formula: its probabilities are shares of votes, and each vote costs a decision."""

    votes: int


@runtime_checkable
class Fittable(Protocol):
    """An agent that is fitted to historical rows before it plays."""

    def fit(self, rows: ActionRows) -> Self:
        """Fit to the rows offline, and return the agent itself."""
        ...


@runtime_checkable
class Privileged(Protocol):
    """An agent that needs information hidden from agents; results mark it."""

    def for_tasks(self, tasks: Tasks) -> Agent:
        """Return the agent that knows ``tasks``."""
        ...


@runtime_checkable
class Resolves(Protocol):
    """An agent whose policy class depends on the tasks if its options name none; results record it."""

    def resolve(self, info: TaskInfo) -> str:
        """Return the name of the policy class that is fitted in these tasks."""
        ...


@runtime_checkable
class ChoosesModel(Protocol):
    """An agent whose model depends on the tasks, and is not its attribute ``model``."""

    def model_for(self, info: TaskInfo) -> Any:
        """Return the model that plays these tasks, or what names it."""
        ...


@runtime_checkable
class Selective(Protocol):
    """An agent that cannot play all tasks, and refuses before anything is played."""

    def check(self, info: TaskInfo) -> None:
        """Raise an :class:`gents_gym.InputError` unless the agent can play these tasks; only the first is tried."""
        ...


class Policy(Protocol):
    """A fitted policy for each of B tasks; it plays the action with the highest score."""

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        ...


class PolicyClass(Protocol):
    """A class of policies with its fitting rule."""

    def fit(self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None) -> Policy:
        """Fit one policy per task to complete tables, (B, T, D) and (B, T, A).

        A class that also accepts ``weights`` (B, T, A) can be fitted to tables with cells that do not count, which a
        truncated imputation horizon needs. An optional attribute ``likelihoods``, a tuple of classes, says which
        outcomes it accepts.
        """
        ...


@runtime_checkable
class FeaturePolicyClass(Protocol):
    """A policy class that is fitted to a model's features of contexts, (B, T, K), instead of contexts."""

    reads_features: bool


@dataclass(frozen=True, eq=False)
class Feedback:
    """The n outcomes that arrived; each names its task and the number of its decision there."""

    task: np.ndarray  # (n,) whole numbers in [0, B)
    decision: np.ndarray  # (n,) whole numbers; 0 is a task's first decision
    outcome: np.ndarray  # (n,)


@dataclass(frozen=True, eq=False)
class Completion:
    """M completed tables of each of B tasks."""

    contexts: np.ndarray  # (B, M, T', D)
    outcomes: np.ndarray  # (B, M, T', A)
    weights: np.ndarray | None  # (B, M, T', A), 0 for cells that do not count; None: all count
    features: np.ndarray | None  # the model's context features, (B, M, T', K); None: it has none
    current: int  # the row of the current context


@runtime_checkable
class Belief(Protocol):
    """What a model believes about B tasks' tables, given the observations so far.

    A decision opens a row of the table. The played cell stays missing until its outcome arrives, at once or later.
    """

    def expected(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A).

        With ``actions`` (B, n), only those of these actions, in this order: (B, n) or (B, C, n).
        """
        ...

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray | None:
        """Return the variance of those means under the belief, in the same shapes; None if the model has none."""
        ...

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task, since the actions (B,) are played in the contexts (B, D)."""
        ...

    def observe(self, feedback: Feedback) -> None:
        """Learn outcomes of open rows; a task may have several or none."""
        ...

    def complete(
        self,
        context: np.ndarray,
        rows: int | None = None,
        draws: int = 1,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Completion:
        """Return completed tables, drawn given all observations.

        Args:
            context: The current contexts, (B, D).
            rows: The number of rows to impute, the current one first. They follow the rows of earlier decisions, of
                which only observed cells count. None: the whole table up to the horizon, with every missing cell
                imputed.
            draws: M, the number of tables per task.
            contexts: Where future contexts are drawn from: bank, seen, own or given; None: the model's default.
            actions: The actions whose columns are completed, (B, n); None: all A.
        """
        ...

    def fork(self, tasks: np.ndarray) -> "Belief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with its own random numbers."""
        ...

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), without observations."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that was observed and inferred as plain arrays."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Replace the state with one that :meth:`state` returned."""
        ...


@dataclass(frozen=True, eq=False)
class Outlook:
    """The value of further observations of each action in the current context, estimated with C imagined contexts.

    Attributes:
        gains: How much k observations would raise the mean best prediction, for n values of k, (B, A, n).
        shares: How often the action has the best prediction, (B, A). Each imagined context is weighted by what an
            observation there reveals about the current one: the squared correlation of the action's mean rewards in the
            two under the belief. So it is the rate at which greedy play learns the same.
    """

    gains: np.ndarray
    shares: np.ndarray


@runtime_checkable
class LooksAhead(Protocol):
    """A belief with a fast outlook; for others, forks observe imagined outcomes."""

    def look_ahead(
        self,
        context: np.ndarray,
        counts: np.ndarray,
        size: int,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Outlook:
        """Return the value of further observations.

        Args:
            context: The current contexts, (B, D).
            counts: Numbers of observations k, rising, (n,).
            size: C, the number of imagined contexts.
            contexts: Where imagined contexts come from, as in :meth:`Belief.complete`.
            actions: The actions that exist, (B, n); the outlook covers only these. None: all A.
        """
        ...


@runtime_checkable
class DrawsMeans(Protocol):
    """A belief that draws outcomes from expectations, and can return these."""

    def complete_with_means(self, context: np.ndarray, contexts: str | None = None) -> tuple[Completion, np.ndarray]:
        """Return one completed table of each task and the mean rewards that it was drawn from, (B, T, A).

        The arguments are as in :meth:`Belief.complete`.
        """
        ...


@runtime_checkable
class LiveBelief(Belief, Protocol):
    """A belief that can be used without end; live use needs this beyond :class:`Belief`."""

    def reseed(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw from these generators from now on, one per task."""
        ...

    def forget(self, rows: int) -> None:
        """Drop the first rows of every task; what was learned from them stays.

        The remaining rows are renumbered from 0. Missing outcomes of dropped rows can no longer arrive.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """p_θ, learned offline: everything that an agent may ask of it."""

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        ...

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> Belief:
        """Return the belief of B new tasks; all randomness of task i comes from ``rngs[i]``."""
        ...

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the features that predictions are linear in, (..., D) to (..., K); None if they are the contexts."""
        ...

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> np.ndarray | None:
        """Return the features that predict with an empty history, (..., F) and (..., D) to (..., K), or None.

        Leading axes are broadcast against each other.
        """
        ...


@runtime_checkable
class ActionModel(Protocol):
    """A per-action sequence model: the three methods that a belief can be made from.

    A state is an array with a row for each of N actions, or tuples, lists or dictionaries of such arrays. Methods take
    float32 NumPy arrays and return NumPy arrays; those of a ``torch.nn.Module`` take and return tensors.

    A model may also have a ``likelihood`` (without it, outcomes are 0 and 1), a ``bank`` of contexts (n, D) to imagine
    from (without it, a task's own), an ``action_bank`` (n, F) to imagine whole tasks with, ``ordered``, True if rows
    must be appended in the order of their decisions (then all rows of an action are appended again if one comes late),
    and ``context_features`` and ``action_context_features`` as in :class:`Model`, which take and return NumPy arrays.
    """

    def start(self, action_features: Any) -> Any:
        """Return the state of N actions with empty histories, (N, F)."""
        ...

    def predict(self, state: Any, context: Any) -> Any:
        """Return the likelihood's parameters in the contexts (N, D): (N,) P(Y=1) for binary outcomes."""
        ...

    def append(self, state: Any, context: Any, outcome: Any, where: Any = None) -> Any:
        """Return the state with (N, D) contexts and (N,) outcomes appended, in the rows that ``where`` (N,) picks.

        The given state must stay unchanged, because tables are generated from it again and again.
        """
        ...
