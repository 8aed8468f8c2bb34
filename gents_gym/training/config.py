"""Holds the options of training, and the values that presets and settings fill in."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gents_gym import registry
from gents_gym.checks import (
    InputError,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_option,
    check_repeats,
    check_type,
)
from gents_gym.specs import parse_spec

if TYPE_CHECKING:
    from gents_gym.models.sequence import SequenceModel


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained; :func:`preset_config` fills in a preset's defaults."""

    preset: str = "filter"
    """filter, paper, transformer, literal (model and training as the paper prints them), or package.module:Class, a
    SequenceModel of yours; optionally with sizes: "paper(hidden_layers=1)"."""
    model: dict[str, int] = field(default_factory=dict)
    """The model's sizes, if they differ from the defaults."""
    choose: bool = True
    """Compare the preset's candidates by validation loss and train the best: the plain filter, and one with learned
    context features. Naming context_features among the sizes turns this off."""
    horizon: int = 500
    """T, rows of a training sequence."""
    lengths: tuple[int, ...] = ()
    """Rows of training sequences, one of these numbers drawn for each batch; a batch of longer ones has fewer actions,
    so that all have about as many rows. None: the horizon. Validation judges at the horizon."""
    epochs: int = 3
    """Passes over the training actions; validation judges the model after each."""
    gradient_steps: int | None = None
    """Total number of training batches, however many actions there are, in epochs of equal length. Models for
    different numbers of actions are then trained equally long. None: whole passes."""
    batch: int | None = None
    """Actions in a batch; none: as many as fit into memory, at most 500."""
    memory: float = 1.0
    """Gigabytes of memory for sequences. They determine the batch size, if it is not given; a larger batch goes
    through the model in pieces whose gradients are summed."""
    learning_rates: tuple[float, ...] = (0.02,)
    """Learning rates to try; the lowest validation loss wins."""
    schedule: str = "one-cycle"
    """one-cycle: the learning rate rises over the first steps, then falls to zero along a cosine; or constant."""
    warm_up: float = 0.3
    """Share of the steps in which the learning rate rises, if it is not constant."""
    clip: float | None = None
    """Largest norm of a gradient; a longer one is shortened to it. None: no limit."""
    averaging: float = 0.0
    """Share of the steps, the last ones, whose weights are averaged. Validation judges the last weights and the
    average, and the better ones win."""
    scaling: bool = True
    """Standardise contexts and action features by mean and standard deviation of the training rows."""
    first_fit: bool = True
    """Start from the model kind's own fit to the training rows. Otherwise start from random weights."""
    weight_decay: float = 0.01
    """Weight decay of AdamW and Muon."""
    steps: int | None = None
    """Number of entries per sequence whose loss counts, drawn again for every batch; none: all."""
    replacement: bool = False
    """Bootstrap sequences with replacement, as the paper does, instead of permuting an action's rows."""
    ordered: bool = False
    """Keep an action's rows in order, as drift requires: sequences are random subsets of them, not permutations."""
    whole_tasks: bool = False
    """Learn from all actions of whole tasks, as a joint model must; --rows is then the environment's horizon."""
    validation_actions: int = 2000
    """Largest number of validation actions, which choose model, epoch and learning rate."""
    blind: bool = False
    """Hide the action features from the model, to measure what they are worth."""
    seed: int = 0
    """Seed of the training."""
    threads: int = 1
    """Number of threads, whatever the environment variables say; results may differ slightly for another number."""

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("horizon", "validation_actions", "threads"):
            check_integer(name, getattr(self, name), 1)
        check_repeats("epochs", self.epochs)
        for name, least in (("batch", 1), ("steps", 1), ("gradient_steps", self.epochs)):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least)
        if not check_type("learning_rates", self.learning_rates, tuple | list):
            raise InputError("learning_rates must name at least one, got none")
        for rate in self.learning_rates:
            check_number("learning_rates", rate, 0, above=True)
        for length in check_type("lengths", self.lengths, tuple | list):
            check_integer("lengths", length, 1)
        for name in ("warm_up", "averaging"):
            if check_number(name, getattr(self, name), 0) >= 1:
                raise InputError(f"{name} must be below 1, got {getattr(self, name)}")
        if self.clip is not None:
            check_number("clip", self.clip, 0, above=True)
        check_number("weight_decay", self.weight_decay, 0)
        check_number("memory", self.memory, 0, above=True)
        for name in ("choose", "replacement", "ordered", "whole_tasks", "blind", "scaling", "first_fit"):
            check_flag(name, getattr(self, name))
        check_choice("schedule", self.schedule, ("one-cycle", "constant"))
        check_integer("seed", self.seed, 0)
        self._check_sizes()

    @property
    def longest(self) -> int:
        """Rows of the longest sequence, in training or validation."""
        return max((self.horizon, *self.lengths))

    def batches(self, epochs: int, n_actions: int, batch: int) -> int:
        """Return how many batches of size ``batch`` the first ``epochs`` epochs over ``n_actions`` have."""
        if self.gradient_steps is None:
            return epochs * -(-n_actions // batch)
        return epochs * self.gradient_steps // self.epochs

    def _check_sizes(self) -> None:
        config_class = preset_class(self.preset).config_class
        given = ("action_dim", "context_dim", "likelihood")  # the rows determine these
        own = [entry.name for entry in fields(config_class) if entry.name not in given]
        for name in check_type("model", self.model, Mapping):
            check_choice(f"size of a {self.preset} model:", name, own)
        config_class(action_dim=1, context_dim=1, **self.model)  # checks the sizes


def preset_class(preset: str) -> "type[SequenceModel]":
    """Return the class of models that a preset trains; any kind of model is a preset by its own name."""
    # Imported here because it needs torch, which reading options does not.
    from gents_gym.models.load import model_class, model_kinds

    if ":" in check_type("preset", preset, str):
        return model_class(preset)
    kinds = {**{kind: kind for kind in model_kinds()}, **{name: row["kind"] for name, row in registry.PRESETS.items()}}
    return model_class(kinds[check_choice("preset", preset, kinds)])


def preset_config(preset: str, setting: str | None = None, **changes: Any) -> TrainConfig:
    """Return a preset's configuration with ``changes``.

    Args:
        preset: "filter", "paper", "literal", another kind of model, or ``package.module:Class``, a subclass of
            ``SequenceModel``; optionally with sizes of the model, as in "filter(prior_width=8)".
        setting: The id of the task distribution of the rows, if known: "news" has its own sizes.
        **changes: Fields of :class:`TrainConfig`; sizes in ``model`` are added to the preset's.
    """
    preset, sizes = parse_spec(check_type("preset", preset, str))
    preset_class(preset)
    check_type("setting", setting, str | None)
    for name in changes:
        check_option(f"preset {preset!r}", name, [entry.name for entry in fields(TrainConfig)])
    changes["model"] = {**sizes, **check_type("model", changes.get("model", {}), Mapping)}
    parts = (registry.PRESETS.get(preset, {}), registry.PRESET_CHANGES.get(setting or "", {}).get(preset, {}), changes)
    chosen = {name: value for part in parts for name, value in part.items() if name != "kind"}
    sizes = {name: value for part in parts for name, value in part.get("model", {}).items()}
    return TrainConfig(preset, **{**chosen, "model": sizes})


def plain_config(config: TrainConfig) -> dict[str, Any]:
    """Return the fields as JSON values, which is how plans are stored and compared."""
    return dict(json.loads(json.dumps(asdict(config))))


def earlier_config() -> dict[str, Any]:
    """Return values for the fields that plans of earlier versions lack, as training worked then."""
    return {**plain_config(TrainConfig()), "choose": False}


def sizes_label(sizes: Mapping[str, int]) -> str:
    """Return a model's sizes as one line."""
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "default sizes"


def candidates_label(candidates: Iterable[Mapping[str, Any]]) -> str:
    """Return the first validation losses of the candidates as one line."""
    return ", ".join(f"{row['validation']:.4f} with {sizes_label(row['model'])}" for row in candidates)
