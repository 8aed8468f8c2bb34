"""Makes a fresh model for given rows, and adds to a trained one what it needs besides its weights."""

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gents_gym import registry
from gents_gym.checks import InputError, InputTypeError, check_type
from gents_gym.construct import find
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.config import TrainConfig, preset_class
from gents_gym.training.data import RowSets
from gents_gym.training.urn import fit_urn
from gents_gym.types import ActionRows

SPREADS = (1e-15, 1e15)  # of Gaussian outcomes: single precision holds their squares
BANK = 1000  # number of contexts and of actions in a model's banks


def check_rows(rows: RowSets, validation: RowSets, config: TrainConfig) -> None:
    """Raise unless both row sets are of one kind, and a model can be made for them."""
    for name, given in (("rows", rows), ("validation", validation)):
        if isinstance(given, ActionRows):
            raise InputTypeError(f"{name} must be a RowSets, got ActionRows: pass RowSets.from_rows({name})")
        check_type(name, given, RowSets)
    check_type("config", config, TrainConfig)
    if validation.contexts.shape[1] != rows.contexts.shape[1]:
        wanted, got = rows.contexts.shape[1], validation.contexts.shape[1]
        raise InputError(f"validation must have contexts of {wanted} entries, as the training rows, got {got}")
    if validation.likelihood != rows.likelihood:
        rule = f"validation must have {rows.likelihood} outcomes, as the training rows"
        raise InputError(f"{rule}, got {validation.likelihood}: name the likelihood of both")
    kind = preset_class(config.preset)
    sizes = kind.config_class(**{**_data_sizes(kind, rows), **config.model})
    most = config.longest
    if not config.replacement:
        most = min(most, int(max(np.diff(part.offsets).max() for part in (rows, validation))))
    if most > (longest := getattr(sizes, "longest", most)):
        rule = f"horizon and lengths must be at most {longest} for this model, its longest history (longest)"
        raise InputError(f"{rule}, got {most}")
    spread = float(rows.outcomes.std(dtype=np.float64))
    if rows.likelihood == GAUSSIAN and spread and not SPREADS[0] <= spread <= SPREADS[1]:
        rule = "outcomes must have a standard deviation of {:g} to {:g}".format(*SPREADS)
        raise InputError(f"{rule}, got {spread:g}: give them in another unit")


def new_model(rows: RowSets, config: TrainConfig, run: int, started: bool = True) -> SequenceModel:
    """Return an untrained model for ``rows``: fresh weights, a bank and, if ``started``, its kind's initial fit."""
    kind = preset_class(config.preset)
    rng = stream(config.seed, "training", run * (1 + config.epochs))
    # Layers draw from torch's global generator, whose state is restored afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(int(rng.integers(2**63)))
        model = kind(kind.config_class(**{**_data_sizes(kind, rows), **config.model}))
    picked = rng.choice(len(rows.contexts), min(BANK, len(rows.contexts)), replace=False)
    if model.banked:
        model.bank = torch.from_numpy(rows.contexts[np.sort(picked)].copy())
    if config.scaling:
        model.context_scaling, model.action_scaling = _scaling(rows.contexts), _scaling(rows.action_features)
    model.space = rows.space
    if config.blind:
        model.action_scaling[1] = 0
    if started and config.first_fit and model.kind in registry.STARTS:
        find("start of a model", model.kind, registry.STARTS)(model, rows, rng)
    return model


def _data_sizes(kind: type[SequenceModel], rows: RowSets) -> dict[str, Any]:
    """Return the part of a model's configuration that the rows determine; raise if it cannot have their outcomes."""
    sizes: dict[str, Any] = {"action_dim": rows.action_features.shape[1], "context_dim": rows.contexts.shape[1]}
    if "likelihood" in {entry.name for entry in fields(kind.config_class)}:
        sizes["likelihood"] = str(rows.likelihood)
    elif rows.likelihood != BERNOULLI:
        raise InputError(f"outcomes must be bernoulli for a {kind.kind} model, got {rows.likelihood}: train a filter")
    return sizes


def complete_model(model: SequenceModel, rows: RowSets, config: TrainConfig) -> None:
    """Add to a trained model what it needs in play besides its weights: a bank of action features, and the urn."""
    rng = stream(config.seed, "training", 0, "train")
    picked = rng.choice(len(rows), min(BANK, len(rows)), replace=False)
    model.action_bank = torch.from_numpy(rows.action_features[np.sort(picked)].copy())
    if model.banked:
        scaled = [model.scale_contexts(torch.tensor(part)).numpy() for part in rows.task_contexts]
        alpha = fit_urn(scaled, model.scale_contexts(model.bank).numpy())
        model.urn = torch.tensor(1 / (1 + alpha))
    if model.kind in registry.FINISHES:
        find("end of a training", model.kind, registry.FINISHES)(model, rows, rng)


def _scaling(values: np.ndarray) -> Tensor:
    """Return the mean and inverse standard deviation of each column, (2, columns); the latter is 1 if constant."""
    mean, spread = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    return torch.from_numpy(np.stack([mean, 1 / np.where(spread > 0, spread, 1)]).astype(np.float32))
