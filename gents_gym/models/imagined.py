"""Draws whole tasks from a model p_θ, as a task distribution for users who only have logs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_count, check_integer, check_memory
from gents_gym.construct import make_object, make_policy, make_tasks
from gents_gym.files import digest
from gents_gym.likelihoods import Categorical, check_reward
from gents_gym.models.banks import Banks, Setting, Source, read_banks
from gents_gym.models.exact import ExactModel
from gents_gym.models.imagination import imagine_tables
from gents_gym.models.load import as_model, is_trained, load_model
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.types import ActionRows, Model, PublishesTruth, RewardFn, TaskDistribution, Tasks, half, identity

N_ACTIONS, HORIZON = 10, 500  # sizes of tasks if none are given
FURTHER = 1000  # generated rows beyond the table that means are learned from
MOST_BYTES = 1 << 28  # memory for the tasks that are kept
_KEPT: dict[tuple[Any, ...], Tasks] = {}  # the latest batches, because many agents play the same tasks in one process


@dataclass(frozen=True)
class Imagined:
    """Tasks drawn from p_θ: actions and contexts from the model's banks, outcomes by completing an empty table.

    Their ``means`` are approximate: the model's predictions after the completed table and ``further`` more generated
    rows of each action. The exact model knows the coefficients that it drew, so its means are exact; it has no
    banks, so it needs a setting.
    """

    model: Any = "synthetic-filter"  # a trained model's id or folder, package.module:Class, a model, or "exact"
    n_actions: int = None  # type: ignore[assignment]  # A; None: the setting's, or 10
    horizon: int = None  # type: ignore[assignment]  # T; None: the setting's, or 500
    contexts: str | float | None = None  # "bank", "seen" or a number in [0, 1]; None: "seen", the model's urn
    setting: str | None = None  # task distribution that actions and contexts come from instead of the banks
    reward_fn: RewardFn = None  # type: ignore[assignment]  # R; None: R(y) = y, or y/2 of categories
    # Policy class that regret is measured against; None: mlp if the model learned features, else linear.
    oracle: str | None = None
    further: int = FURTHER  # generated rows beyond the table that means are learned from
    loaded: Model = field(init=False, repr=False, compare=False)  # the model itself
    source: Source = field(init=False, repr=False, compare=False)  # source of actions and contexts

    def __post_init__(self) -> None:
        """Check the options, load the model and find the source of actions and contexts."""
        distribution = None if self.setting is None else make_tasks(self.setting)
        model = _load(self.model, distribution)
        object.__setattr__(self, "loaded", as_model(model))
        object.__setattr__(self, "source", self._source(model, distribution))
        reward_fn = half if isinstance(self.loaded.likelihood, Categorical) else identity
        for name, default in (("n_actions", N_ACTIONS), ("horizon", HORIZON), ("reward_fn", reward_fn)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(distribution, name, default))
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_integer("further", self.further, 0)
        check_reward(self.reward_fn, self.loaded.likelihood)
        if isinstance(self.source, Banks) and self.n_actions > len(self.source.actions):
            rule = f"n_actions must be at most {len(self.source.actions)}, the training actions that the model keeps"
            raise InputError(f"{rule}, got {self.n_actions}")
        if self.oracle is not None:
            make_policy(self.oracle)
        elif self.loaded.context_features(np.zeros((1, self.source.sizes[1]), np.float32)) is not None:
            object.__setattr__(self, "oracle", "mlp")

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        self._check_memory(indices, self.n_actions, self.horizon, self.further)
        options = [getattr(self, one.name) for one in fields(self) if one.name not in ("model", "loaded", "source")]
        key = (_weights_digest(self.loaded), *options, seed, split, *indices)
        if key[0] is None:
            return self._sample(seed, indices, split)
        if key not in _KEPT:
            _keep(key, self._sample(seed, indices, split))
        return _KEPT[key]

    def _sample(self, seed: int, indices: Sequence[int], split: str) -> Tasks:
        rngs, places = [stream(seed, "imagined", i, split) for i in indices], [(seed, i, split) for i in indices]
        features, contexts, outcomes, means = self._draw(places, rngs, self.n_actions, self.horizon, self.further)
        return Tasks(
            features,
            contexts,
            outcomes,
            means,
            oracle=self.oracle,  # type: ignore[arg-type]
            reward_fn=self.reward_fn,
            space=self.source.space,
            likelihood=self.loaded.likelihood,
            truth=self.loaded.truth if isinstance(self.loaded, ExactModel) else None,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream."""
        self._check_memory(indices, 1, check_integer("n_rows", n_rows, 1), 0)
        # A stream that tasks do not use.
        rngs = [stream(seed, "imagined", index, split).spawn(2)[1] for index in indices]
        features, contexts, outcomes, _ = self._draw([(seed, i, split) for i in indices], rngs, 1, n_rows, None)
        return ActionRows(
            features[:, 0],
            contexts,
            outcomes[:, :, 0],
            self.reward_fn,
            space=self.source.space,
            likelihood=self.loaded.likelihood,
        )

    def _draw(
        self,
        places: Sequence[tuple[int, int, str]],
        rngs: Sequence[np.random.Generator],
        n_actions: int,
        n_rows: int,
        further: int | None,
    ) -> tuple[Any, ...]:
        """Return Z (B, A, F), X (B, T, D), Y (B, T, A) and E[R(Y)] (B, T, A), which is None without ``further``."""
        drawn = [self.source.draw(at, rng, n_actions, n_rows) for at, rng in zip(places, rngs, strict=True)]
        size, dim = self.source.sizes
        features = np.array([one for one, _ in drawn], np.float32).reshape(-1, n_actions, size)
        contexts = np.array([one for _, one in drawn], np.float32).reshape(-1, n_rows, dim)
        found = imagine_tables(
            self.loaded, features, contexts, rngs, reward_fn=self.reward_fn, space=self.source.space, further=further
        )
        return features, contexts, *found

    def _source(self, model: Any, distribution: TaskDistribution | None) -> Source:
        """Return the source of actions and contexts."""
        if distribution is None:
            return read_banks(model, self.model, self.contexts)
        if self.contexts is not None:
            raise InputError(f"contexts must be None with a setting, which has its own, got {self.contexts!r}")
        rows = distribution.sample_actions(0, [0], 1, "train")
        if isinstance(model, ExactModel) and rows.hidden_features is not None:
            raise InputError(f"setting must show what its p* is about for model 'exact', got {self.setting!r}")
        return Setting(distribution, (rows.action_features.shape[1], rows.contexts.shape[2]), rows.space)

    def _check_memory(self, indices: Sequence[int], n_actions: int, n_rows: int, further: int) -> None:
        """Raise if the tasks, or the rows that the means of one are learned from, do not fit into memory."""
        n_tasks, (size, dim) = check_count("indices", indices), self.source.sizes
        numbers = n_tasks * (n_actions * size + n_rows * (dim + 2 * n_actions)) + further * (dim + n_actions)
        check_memory(4 * numbers, tasks=n_tasks, n_actions=n_actions, rows=n_rows, further=further)


def _load(model: Any, setting: TaskDistribution | None) -> Any:
    """Return the model that ``model`` is or names, not adapted yet, because adapters hide its banks."""
    if not isinstance(model, str | Path):
        return model
    if model == "exact":
        if not isinstance(setting, PublishesTruth):
            rule = "setting must name a task distribution with a known p* for model 'exact', such as 'synthetic'"
            raise InputError(f"{rule}, got {setting!r}")
        return ExactModel(setting.truth)
    if ":" in str(model) and not is_trained(str(model)):
        return make_object("model", str(model), {}, {})
    return load_model(model)


def _weights_digest(model: Model) -> str | None:
    """Return the sha256 of a trained model's tensors; None for others, whose tasks are not kept."""
    return digest(*(part.numpy() for part in model.state_dict().values())) if isinstance(model, SequenceModel) else None


def _keep(key: tuple[Any, ...], tasks: Tasks) -> None:
    """Keep a batch, and drop the oldest ones beyond ``MOST_BYTES``."""
    _KEPT[key] = tasks
    sizes = {one: batch.contexts.nbytes + 2 * batch.outcomes.nbytes for one, batch in _KEPT.items()}
    for one in [*_KEPT][:-1]:
        if sum(sizes[kept] for kept in _KEPT) > MOST_BYTES:
            del _KEPT[one]
