"""Saves the state of a training in one file, so that a killed training can continue."""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from gents_gym.checks import InputError
from gents_gym.files import write_whole
from gents_gym.models.sequence import LATER, SequenceModel
from gents_gym.schema import check_schema, whole
from gents_gym.seals import BLANK, read_sealed_tensors, seal
from gents_gym.training.config import earlier_config

PROGRESS = {  # schema of a state's progress; older files lack the fields with a question mark
    "run": whole,
    "epoch": whole,
    "best": float,
    "best_at": [whole],
    "history": [{"run": whole, "epoch": whole, "training": float, "validation": float}],
    "candidates?": [{"model": {str: whole}, "validation": float}],
    "batch?": whole,
    "batches?": whole,
    "loss?": float,
}


@dataclass
class Progress:
    """The progress of a training: all that resuming it needs besides its tensors."""

    run: int = 0  # which learning rate is being tried
    epoch: int = 0  # finished epochs of this run
    best: float = math.inf  # lowest validation loss so far
    best_at: tuple[int, int] = (0, 0)  # its run and epoch
    history: list[dict[str, float]] = field(default_factory=list)  # a row per epoch
    # Sizes and first validation loss of each compared candidate.
    candidates: list[dict[str, Any]] = field(default_factory=list)
    batch: int = 0  # actions in a batch; 0: not yet known
    batches: int = 0  # batches done in the current epoch
    loss: float = 0.0  # sum of their losses, over actions


def keep_state(
    path: Path,
    model: SequenceModel,
    optimizers: Sequence[torch.optim.Optimizer],
    best: dict[str, Tensor],
    average: dict[str, Tensor],
    progress: Progress,
    plan: list[Any],
) -> None:
    """Write the whole state to one file; ``average`` is that of the weights so far, empty if there is none."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {f"average.{name}": tensor for name, tensor in average.items()}
    for start, optimizer in _numbered(optimizers):
        for i, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{start + i}.{name}": tensor for name, tensor in state.items()}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    labels = {"progress": json.dumps(asdict(progress)), "plan": json.dumps(plan), "sha256": BLANK}
    write_whole(path, seal(save(tensors, metadata=labels)))


def read_state(path: Path, plan: list[Any], options: list[dict[str, int]]) -> tuple[Progress, dict[str, Tensor]]:
    """Return the progress and the tensors of a state file. Raises if it belongs to another plan.

    Args:
        path: The file.
        plan: The configuration as JSON values, and the hashes of the rows.
        options: The sizes of each candidate.
    """
    try:
        tensors, texts = read_sealed_tensors(path, "pt")
        labels = {name: json.loads(text) for name, text in texts.items()}
        check_schema(labels, {"progress": PROGRESS, "plan": list})
        (kept_config, *hashes), progress = labels["plan"], Progress(**labels["progress"])
        kept_plan = [{**earlier_config(), **kept_config}, *hashes]
    except InputError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"'{path}' must be a whole training state ({error})") from error
    if kept_plan != plan:
        raise InputError(f"'{path}' must be the state of a training of this configuration on these rows")
    if odd := _impossible(progress, plan[0], options):
        raise InputError(f"'{path}' must be a whole training state, got one with {odd}")
    return replace(progress, best_at=(progress.best_at[0], progress.best_at[1])), tensors


def _impossible(progress: Progress, config: dict[str, Any], options: list[dict[str, int]]) -> str | None:
    """Return what no training of this configuration could have written; None if all is valid."""
    n_epochs, n_runs = config["epochs"], len(config["learning_rates"])
    done = [(run, epoch) for run in range(n_runs) for epoch in range(1, n_epochs + 1)][: len(progress.history)]
    if not (progress.run < n_runs and progress.epoch <= n_epochs):
        return f"run {progress.run} and epoch {progress.epoch}, but there are {n_runs} and {n_epochs}"
    if [(row["run"], row["epoch"]) for row in progress.history] != done:
        return "a history of other epochs"
    if progress.run * n_epochs + progress.epoch != len(done):
        return f"epoch {progress.epoch} of run {progress.run} after a history of {len(done)}"
    if progress.batches and progress.epoch == n_epochs:
        return f"{progress.batches} batches of an epoch after the last"
    if tuple(progress.best_at) not in [(0, 0), *done]:
        return f"its best at {progress.best_at}"
    compared = [row["model"] for row in progress.candidates]
    if compared != (options if len(options) > 1 else []):
        return f"other candidates, {compared}"
    if config["batch"] not in (None, progress.batch) and progress.batch:
        return f"batches of {progress.batch}, not {config['batch']}"
    return None


def restore_state(
    tensors: dict[str, Tensor],
    model: SequenceModel,
    optimizers: Sequence[torch.optim.Optimizer],
    average: dict[str, Tensor],
    path: Path | None,
    stepped: bool,
) -> dict[str, Tensor]:
    """Fill model, optimisers and average from a state file's tensors; return the best weights.

    Args:
        tensors: The file's tensors.
        model: A model of the same sizes.
        optimizers: Its optimisers.
        average: Average weights, or nothing if none are kept.
        path: The file, for errors.
        stepped: Whether the optimisers have taken steps.
    """
    later = {f"{part}.{name}": model.state_dict()[name].clone() for part in ("model", "best") for name in LATER}
    tensors, wanted = {**later, **tensors}, _forms(model, optimizers, average, stepped)
    if tensors.keys() != wanted.keys():
        odd = ", ".join(sorted(tensors.keys() ^ wanted.keys())[:3])
        raise InputError(f"'{path}' must be a whole training state; missing or unexpected: {odd}")
    for name, form in wanted.items():
        got = tensors[name]
        if (got.shape, got.dtype) != (form.shape, form.dtype):
            rule = f"must hold {name} of shape {tuple(form.shape)} in {form.dtype}"
            raise InputError(f"'{path}' {rule}, got {tuple(got.shape)} in {got.dtype}")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "average": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    model.load_state_dict(parts["model"])
    average.update(parts["average"])
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimizer"].items():
        index, _, key = name.partition(".")
        states.setdefault(int(index), {})[key] = tensor
    for start, optimizer in _numbered(optimizers):
        own = {i - start: state for i, state in states.items() if 0 <= i - start < _count(optimizer)}
        optimizer.load_state_dict({**optimizer.state_dict(), "state": own})
    return parts["best"]


def _forms(
    model: SequenceModel, optimizers: Sequence[torch.optim.Optimizer], average: dict[str, Tensor], stepped: bool
) -> dict[str, Tensor]:
    """Return tensors with the names, shapes and types of those in a state file."""
    forms = {f"{part}.{name}": tensor for part in ("model", "best") for name, tensor in model.state_dict().items()}
    forms |= {f"average.{name}": tensor for name, tensor in average.items()}
    for start, optimizer in _numbered(optimizers) if stepped else ():
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for i, parameter in enumerate(parameters, start):
            if isinstance(optimizer, torch.optim.AdamW):
                moments = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}
            else:
                moments = {"momentum_buffer": parameter}
            forms |= {f"optimizer.{i}.{key}": tensor for key, tensor in moments.items()}
    return forms


def _numbered(optimizers: Sequence[torch.optim.Optimizer]) -> list[tuple[int, torch.optim.Optimizer]]:
    """Return each optimiser with the number of its first parameter; numbers go on from one to the next."""
    starts = itertools.accumulate((_count(optimizer) for optimizer in optimizers), initial=0)
    return list(zip(starts, optimizers, strict=False))


def _count(optimizer: torch.optim.Optimizer) -> int:
    """Return the number of an optimiser's parameters."""
    return sum(len(group["params"]) for group in optimizer.param_groups)
