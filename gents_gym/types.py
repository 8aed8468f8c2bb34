"""The records and protocols that cross folders: batches of tasks, what an agent may know, who does what.

Sizes: B tasks, T horizon, A actions, D context size, F action-feature size, N single actions, R rows of each.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from gents_gym.checks import InputError, check_array, check_integer
from gents_gym.files import write_whole

FORMAT = "gents_gym.tasks.1"  # of the files that Tasks.save writes
RewardFn = Callable[[np.ndarray], np.ndarray]


def identity(outcome: np.ndarray) -> np.ndarray:
    """The reward R(y) = y."""
    return outcome


def expected_reward(reward_fn: RewardFn, chances: np.ndarray) -> np.ndarray:
    """Return E[R(Y)] of outcomes in {0, 1} where P(Y=1) is ``chances``, elementwise and in their type."""
    losing, winning = (float(reward) for reward in reward_fn(np.array([0.0, 1.0])))
    return chances if (losing, winning) == (0, 1) else losing + (winning - losing) * chances


def _frozen(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_texts(value: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return ``value`` as an array of str objects, or raise unless it has ``shape`` and holds nothing else."""
    try:
        texts = np.array(value, object)
    except ValueError:  # a ragged list
        texts = np.empty(0, object)
    if texts.shape != shape or not all(isinstance(text, str) for text in texts.flat):
        raise InputError(f"texts must be texts of shape (B, A)={shape}, got shape {texts.shape}")
    return texts


def digest(*arrays: np.ndarray) -> str:
    """Return the sha256 of the arrays, their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Tasks:
    """A batch of B tasks, each with its whole potential-outcomes table; the arrays are read-only.

    Attributes:
        action_features: Z, (B, A, F) float32.
        contexts: X, (B, T, D) float32.
        outcomes: Y, the potential-outcomes table, (B, T, A) float32.
        means: True E[R(Y)], (B, T, A) float32, or None where nature's expectations are not known.
        oracle: Id of the policy class that the setting's regret is measured against.
        reward_fn: R, from outcomes to rewards in [0, 1], elementwise.
        hidden_features: What nature knows of the actions beyond their features, (B, A, H) float32, or None.
        texts: The actions' texts, (B, A) of str, or None where they have none.
        context_map: Nature's features of the contexts, (..., D) to (..., D'), or None where they are the contexts
            themselves, or not known. Files do not keep it.
        space: The name of the space that action features are embeddings in, or None where they are none.
    """

    action_features: np.ndarray
    contexts: np.ndarray
    outcomes: np.ndarray
    means: np.ndarray | None = None
    oracle: str = "logistic"
    reward_fn: RewardFn = identity
    hidden_features: np.ndarray | None = None
    texts: np.ndarray | None = None
    context_map: Callable[[np.ndarray], np.ndarray] | None = None
    space: str | None = None

    def __post_init__(self) -> None:
        """Check the shapes against each other and freeze the arrays."""
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
        check_integer("the number of actions", n_actions, 2)
        check_integer("the horizon T", contexts.shape[1], 1)
        check_integer("the context size D", contexts.shape[2], 1)
        for name, array in arrays.items():
            object.__setattr__(self, name, _frozen(array))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Freeze the arrays again, which pickling does not."""
        self.__dict__.update({k: _frozen(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})

    def __len__(self) -> int:
        """Return B."""
        return len(self.contexts)

    def __getitem__(self, index: Any) -> "Tasks":
        """Return the tasks at ``index`` as a batch; an int gives a batch of one."""
        if isinstance(index, int | np.integer):
            index = [index]
        return replace(self, **{name: array[index] for name, array in self._parts().items()})

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers, which hashes are made of."""
        names = ("action_features", "contexts", "outcomes", "means", "hidden_features")
        return {name: array for name in names if (array := getattr(self, name)) is not None}

    def _parts(self) -> dict[str, np.ndarray]:
        """Return all that has an entry per task."""
        return self._arrays() if self.texts is None else {**self._arrays(), "texts": self.texts}

    def put(self, slots: np.ndarray, tasks: "Tasks") -> "Tasks":
        """Return a copy with the tasks at ``slots`` replaced by ``tasks``, in order.

        Where one of the two batches does not know its means, hidden features, texts or space, the result does not.
        """
        theirs, merged = tasks._parts(), {}
        for name, array in self._parts().items():
            if name in theirs:
                merged[name] = array.copy()
                merged[name][slots] = theirs[name]
        context_map = self.context_map if self.context_map is tasks.context_map else None
        space = self.space if self.space == tasks.space else None
        return Tasks(**merged, oracle=self.oracle, reward_fn=self.reward_fn, context_map=context_map, space=space)

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
        return _frozen(np.asarray(self.reward_fn(self.outcomes), np.float32))

    @property
    def hashes(self) -> tuple[str, ...]:
        """The sha256 of each task's content, in order."""
        return tuple(digest(*task) for task in zip(*self._arrays().values(), strict=True))

    @property
    def content_hash(self) -> str:
        """The sha256 of the batch's content."""
        return digest(*self._arrays().values())

    def _label(self) -> str:
        """Return what a file says of the batch beside its arrays."""
        name = getattr(self.reward_fn, "__qualname__", None)
        if name is None:
            raise InputError(f"reward_fn must be a function with a name to be saved, got {self.reward_fn!r}")
        labels: dict[str, Any] = {"oracle": self.oracle, "reward_fn": f"{self.reward_fn.__module__}:{name}"}
        if self.texts is not None:
            labels["texts"] = self.texts.tolist()
        if self.space is not None:
            labels["space"] = self.space
        seal = digest(np.frombuffer(json.dumps([labels, self.content_hash]).encode(), np.uint8))
        return json.dumps({"format": FORMAT, **labels, "sha256": seal})

    def save(self, path: str | Path) -> Path:
        """Write the batch to one safetensors file, whole or not at all."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self._arrays().items()}
        return write_whole(path, save(arrays, metadata={"tasks": self._label()}))

    @classmethod
    def load(cls, path: str | Path, reward_fn: RewardFn = identity) -> "Tasks":
        """Read a batch that :meth:`save` wrote.

        The file names its reward function but never brings code: hand in the same one here.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                labels = json.loads((file.metadata() or {})["tasks"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if labels["format"] != FORMAT:
                raise ValueError(f"its format is {labels['format']!r}")
            oracle, wanted = labels["oracle"], labels["reward_fn"]
            told = {name: labels.get(name) for name in ("texts", "space")}
            tasks = cls(**arrays, oracle=oracle, reward_fn=reward_fn, **told)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"path must be a whole file written by Tasks.save, got '{path}' ({error!r})") from error
        got = json.loads(tasks._label())
        if got["reward_fn"] != wanted:
            raise InputError(f"reward_fn must be the one in the file, {wanted}, got {got['reward_fn']}")
        if got != labels:
            raise InputError(f"'{path}' is damaged: its content does not match its sha256")
        return tasks


@dataclass(frozen=True, eq=False)
class ActionRows:
    """Independent single-action row sets: the historical data that models and priors are fitted to.

    Attributes:
        action_features: (N, F) float32.
        contexts: (N, R, D) float32.
        outcomes: (N, R) float32.
        reward_fn: R, from outcomes to rewards in [0, 1], elementwise.
        hidden_features: What nature knows of the actions beyond their features, (N, H) float32, or None: privileged.
        space: The name of the space that action features are embeddings in, or None where they are none.
    """

    action_features: np.ndarray
    contexts: np.ndarray
    outcomes: np.ndarray
    reward_fn: RewardFn = identity
    hidden_features: np.ndarray | None = None
    space: str | None = None

    def __post_init__(self) -> None:
        """Check the shapes against each other and freeze the arrays."""
        features = check_array("action_features", self.action_features, "(N, F)", (-1, -1))
        contexts = check_array("contexts", self.contexts, "(N, R, D)", (len(features), -1, -1))
        outcomes = check_array("outcomes", self.outcomes, "(N, R)", contexts.shape[:2])
        arrays = {"action_features": features, "contexts": contexts, "outcomes": outcomes}
        if self.hidden_features is not None:
            hidden = check_array("hidden_features", self.hidden_features, "(N, H)", (len(features), -1))
            arrays["hidden_features"] = hidden
        for name, array in arrays.items():
            object.__setattr__(self, name, _frozen(array))

    def __len__(self) -> int:
        """Return N."""
        return len(self.contexts)

    @property
    def content_hash(self) -> str:
        """The sha256 of the rows' content."""
        return digest(self.action_features, self.contexts, self.outcomes)


@runtime_checkable
class TaskDistribution(Protocol):
    """What nature draws; task i depends on (seed, split, i) alone."""

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        ...

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        ...


@dataclass(frozen=True, eq=False)
class TaskInfo:
    """All that an agent may know of the B tasks it is about to play."""

    action_features: np.ndarray  # (B, A, F)
    n_actions: int
    context_dim: int
    horizon: int | None = None  # None: the end is not known
    reward_fn: RewardFn = identity
    texts: Sequence[Sequence[str]] | None = None  # B × A texts, where actions have one
    space: str | None = None  # the name of the space that action features are embeddings in, where they are

    def __len__(self) -> int:
        """Return B."""
        return len(self.action_features)

    def __getitem__(self, index: int) -> "TaskInfo":
        """Return what is known of one task, as a batch of one."""
        texts = None if self.texts is None else [self.texts[index]]
        return replace(self, action_features=self.action_features[index][None], texts=texts)


@runtime_checkable
class Agent(Protocol):
    """Plays B independent tasks at once; arrays that it is given are the caller's, to be read and copied alone."""

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Forget everything and face B new tasks; all randomness of task i comes from ``rngs[i]``."""
        ...

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) for the contexts (B, D)."""
        ...

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn from the outcomes (B,) of the actions (B,) in the contexts (B, D)."""
        ...


@runtime_checkable
class Fittable(Protocol):
    """An agent with something to fit to historical rows before it plays."""

    def fit(self, rows: ActionRows) -> Self:
        """Fit what is fitted offline, and return the agent itself."""
        ...


@runtime_checkable
class Privileged(Protocol):
    """An agent that needs what no agent may know; results mark it."""

    def for_tasks(self, tasks: Tasks) -> Agent:
        """Return the agent that knows ``tasks``."""
        ...


class Policy(Protocol):
    """A fitted policy for each of B tasks: it plays the action of the highest score."""

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        ...


class PolicyClass(Protocol):
    """A class of policies with its fitting rule."""

    def fit(self, contexts: np.ndarray, outcomes: np.ndarray, warm_start: Any = None) -> Policy:
        """Fit one policy per task to complete tables, (B, T, D) and (B, T, A).

        A class that also takes ``weights`` (B, T, A) can be fitted to tables with cells that do not count, which
        a truncated imputation horizon needs.
        """
        ...


@dataclass(frozen=True, eq=False)
class History:
    """What was observed in B tasks so far: t rows each."""

    action_features: np.ndarray  # (B, A, F)
    contexts: np.ndarray  # (B, t, D)
    actions: np.ndarray  # (B, t)
    outcomes: np.ndarray  # (B, t)

    def __len__(self) -> int:
        """Return B."""
        return len(self.contexts)

    @property
    def context_dim(self) -> int:
        """D."""
        return int(self.contexts.shape[2])

    @property
    def length(self) -> int:
        """t, the number of rows."""
        return int(self.contexts.shape[1])

    def observed(self) -> np.ndarray:
        """Return which cells of the table were seen, (B, t, A) of 0 and 1."""
        n_actions = self.action_features.shape[1]
        return (self.actions[..., None] == np.arange(n_actions)).astype(np.float64)

    def table(self) -> np.ndarray:
        """Return the seen cells' outcomes, and 0 in the others, (B, t, A)."""
        return self.observed() * self.outcomes[..., None]

    def fill_in(self, table: np.ndarray) -> np.ndarray:
        """Put the seen outcomes into a table (B, T', A), in place, and return it."""
        np.put_along_axis(table[:, : self.actions.shape[1]], self.actions[..., None], self.outcomes[..., None], axis=2)
        return table


class Imputer(Protocol):
    """Completes a history to a whole table."""

    def impute(
        self, history: History, contexts: np.ndarray, rngs: Sequence[np.random.Generator], past: bool = True
    ) -> np.ndarray:
        """Return outcomes (B, T', A) for contexts (B, T', D).

        With ``past``, the first t contexts are the history's own, and the outcomes observed there stay unchanged;
        without, all are new.
        """
        ...


class SequenceModel(Protocol):
    """p_θ with a recurrent state, N actions at once; tensors in, tensors out."""

    def start(self, action_features: Any) -> Any:
        """Return the state of N actions with empty histories, (N, F)."""
        ...

    def probability(self, state: Any, context: Any) -> Any:
        """Return P(Y=1) in the contexts, (N, D) to (N,)."""
        ...

    def append(self, state: Any, context: Any, outcome: Any, where: Any = None) -> Any:
        """Return the state with (N, D) contexts and (N,) outcomes appended, in the rows that ``where`` (N,) picks.

        The state that is given stays as it is: imputation starts from it again and again.
        """
        ...
