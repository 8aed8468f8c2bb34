"""Training states: progress, model, best weights and optimiser in one file, so that a killed training can go on."""

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gents_gym.checks import InputError
from gents_gym.files import write_whole
from gents_gym.models.sequence import LATER, SequenceModel
from gents_gym.training.config import earlier_config


@dataclass
class Progress:
    """How far a training is: all that a resumed one needs beside its tensors."""

    run: int = 0  # which learning rate is being tried
    epoch: int = 0  # epochs done in this run
    best: float = math.inf  # lowest validation loss so far
    best_at: tuple[int, int] = (0, 0)  # its run and epoch
    history: list[dict[str, float]] = field(default_factory=list)  # a row per epoch
    candidates: list[dict[str, Any]] = field(default_factory=list)  # sizes and first validation loss of each compared
    batch: int = 0  # actions in a batch; 0: not yet known
    batches: int = 0  # done in the epoch that has begun
    loss: float = 0.0  # their losses' sum, over actions


def keep_state(
    path: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    best: dict[str, Tensor],
    progress: Progress,
    plan: list[Any],
) -> None:
    """Write the whole state to one file."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    for i, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": tensor for name, tensor in state.items()}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(tensors, metadata={"progress": json.dumps(asdict(progress)), "plan": json.dumps(plan)}))


def read_state(path: Path, plan: list[Any]) -> tuple[Progress, dict[str, Tensor]]:
    """Return the progress and the tensors of a state file, which must be of the same plan."""
    try:
        with safe_open(path, framework="pt") as file:
            labels = {name: json.loads(text) for name, text in file.metadata().items()}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        progress, (kept_config, *hashes) = Progress(**labels["progress"]), labels["plan"]
        kept_plan = [{**earlier_config(), **kept_config}, *hashes]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"'{path}' must be a whole training state ({error})") from error
    if kept_plan != plan:
        raise InputError(f"'{path}' must be the state of a training of this configuration on these rows")
    return replace(progress, best_at=(progress.best_at[0], progress.best_at[1])), tensors


def restore_state(
    tensors: dict[str, Tensor], model: SequenceModel, optimizer: torch.optim.Optimizer, path: Path | None, stepped: bool
) -> dict[str, Tensor]:
    """Fill model and optimiser from a state file's tensors; return the best weights.

    Args:
        tensors: The file's tensors.
        model: A model of the same sizes.
        optimizer: Its optimiser.
        path: The file, for errors.
        stepped: Whether the optimiser has made steps.
    """
    later = {f"{part}.{name}": model.state_dict()[name].clone() for part in ("model", "best") for name in LATER}
    tensors = {**later, **tensors}
    n_parameters = sum(len(group["params"]) for group in optimizer.param_groups) if stepped else 0
    wanted = {f"{part}.{name}" for part in ("model", "best") for name in model.state_dict()}
    wanted |= {f"optimizer.{i}.{key}" for i in range(n_parameters) for key in ("step", "exp_avg", "exp_avg_sq")}
    if tensors.keys() != wanted:
        odd = ", ".join(sorted(tensors.keys() ^ wanted)[:3])
        raise InputError(f"'{path}' must be a whole training state; missing or unexpected: {odd}")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    model.load_state_dict(parts["model"])
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimizer"].items():
        index, _, key = name.partition(".")
        states.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
    return parts["best"]
