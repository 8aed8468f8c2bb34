"""A small network that maps the belief's summary of each action to the action probabilities of another agent."""

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor, nn

from gents_gym.checks import InputError
from gents_gym.files import as_path, read_file, write_whole
from gents_gym.models import sequence
from gents_gym.models.load import model_folders
from gents_gym.schema import check_schema, positive, whole
from gents_gym.seals import check_described, check_seal, is_sha256, read_tensors, write_described

CONFIG, TENSORS = "config.json", "network.safetensors"
FORMAT = "gents_gym.distilled.1"
WIDEST = 4096  # a file with larger sizes is not ours
SCHEMA = {
    "format": str,
    "config": {"teacher": str, "model": str, "width": positive, "variance": bool, "context_dim": whole},
    "sha256": {CONFIG: is_sha256, TENSORS: is_sha256},
}


@dataclass(frozen=True)
class DistilledConfig:
    """What a network was trained for, and its sizes."""

    teacher: str  # the agent that it imitates
    model: str  # the model whose belief it reads
    width: int = 32  # width of the hidden layers
    variance: bool = True  # whether the belief has variances
    context_dim: int = 0  # entries of the context that it also reads; 0: none

    @property
    def n_inputs(self) -> int:
        """How many numbers it reads per action."""
        return (5 if self.variance else 3) + self.context_dim


def summarise(mean: np.ndarray, variance: np.ndarray | None, left: int, context: np.ndarray | None) -> np.ndarray:
    """Return the network's inputs for each action, (B, A, K); nothing depends on the order of the actions.

    These are the prediction, its gap to the best prediction and the logarithm of the decisions left. If the belief has
    variances, they include the standard deviation, and the gap divided by the standard deviation of the difference from
    the best. They include the context if it is given.

    Args:
        mean: The belief's mean rewards, (B, A).
        variance: Their variances, (B, A), or None.
        left: Decisions left, the current one included.
        context: (B, D), or None.
    """
    best = mean.argmax(axis=1)[:, None]
    gap = np.take_along_axis(mean, best, axis=1) - mean
    parts = [mean, gap, np.full_like(mean, math.log(left))]
    if variance is not None:
        both = variance + np.take_along_axis(variance, best, axis=1)
        parts += [np.sqrt(variance), gap / np.sqrt(np.maximum(both, 1e-12))]
    found = np.stack(parts, axis=2)  # (B, A, K)
    if context is not None:
        each = np.broadcast_to(context[:, None], (*mean.shape, context.shape[1]))
        found = np.concatenate([found, each], axis=2)
    return found


def _linear(inputs: int, outputs: int) -> nn.Linear:
    """Return a layer without drawing its weights, so that torch's global generator is not used."""
    return nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")


class ActionNetwork(nn.Module):
    """Scores each action by its own summary and a pooled summary of all; it is equivariant and works for any A."""

    scaling: Tensor

    def __init__(self, config: DistilledConfig) -> None:
        """Make a network whose weights are not set yet: :meth:`start` or a file sets them."""
        super().__init__()
        self.config, width = config, config.width
        self.first, self.second = (_linear(n, width) for n in (config.n_inputs, width))
        self.third, self.last = _linear(3 * width, width), _linear(width, 1)
        self.register_buffer("scaling", torch.ones(2, config.n_inputs))  # mean and standard deviation of the inputs

    def start(self, generator: torch.Generator, inputs: Tensor) -> None:
        """Draw the weights, and set the scaling from inputs (N, A, K)."""
        with torch.no_grad():
            for layer in (self.first, self.second, self.third, self.last):
                layer.weight.normal_(0, layer.in_features**-0.5, generator=generator)
                layer.bias.zero_()
            rows = inputs.flatten(0, 1)
            self.scaling = torch.stack([rows.mean(dim=0), rows.std(dim=0).clamp_min(1e-6)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logarithms of the probabilities, (B, A, K) to (B, A)."""
        scaled = (inputs - self.scaling[0]) / self.scaling[1]
        own = torch.relu(self.second(torch.relu(self.first(scaled))))  # (B, A, H)
        pooled = torch.cat([own.mean(dim=1), own.amax(dim=1)], dim=1)  # (B, 2H)
        both = torch.cat([own, pooled[:, None].expand(-1, own.shape[1], -1)], dim=2)  # (B, A, 3H)
        return torch.log_softmax(self.last(torch.relu(self.third(both)))[..., 0], dim=1)

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """Return the probabilities, (B, A, K) to (B, A)."""
        with torch.inference_mode():
            found = self(torch.from_numpy(np.asarray(inputs, np.float32))).double().exp()
            return np.asarray((found / found.sum(dim=1, keepdim=True)).numpy())


def save_network(network: ActionNetwork, folder: Path, files: dict[str, bytes] | None = None) -> None:
    """Write a network, its other files and, last, the ``config.json`` that seals all of them."""
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    value = {"format": FORMAT, "config": asdict(network.config)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (files or {}).items():
        write_whole(folder / name, data)
    write_described(folder, CONFIG, value, {TENSORS: save(tensors)})


def load_network(path: str | Path) -> ActionNetwork:
    """Return the network in a folder of ``gents-gym distill``. Raises if the folder is damaged."""
    folder = as_path("path", path)
    value = _read_config(folder / CONFIG)
    network = ActionNetwork(DistilledConfig(**value["config"]))
    try:
        check_described(folder / TENSORS, value["sha256"][TENSORS])
        tensors, _ = read_tensors(folder / TENSORS, "pt")
        network.load_state_dict(tensors)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise InputError(f"'{folder / TENSORS}' must hold the network's tensors ({error})") from error
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise InputError(f"'{folder / TENSORS}' must hold finite numbers")
    return network.eval()


def network_files(path: str | Path, model: str | Path) -> list[Path]:
    """Return the files that determine what is played: the network's, and the model's if it is a trained one."""
    own, folders = [Path(path) / name for name in (CONFIG, TENSORS)], list[Path]()
    with suppress(InputError):  # "exact", or a model of the user's own
        folders = model_folders(model)
    return own + [folder / name for folder in folders for name in (sequence.CONFIG, sequence.TENSORS)]


def _read_config(path: Path) -> dict[str, Any]:
    try:
        data = read_file(path)
        value: dict[str, Any] = json.loads(data)
        check_schema(value, SCHEMA)
        if value["format"] != FORMAT:
            raise ValueError(f"its format is {value['format'][:60]!r}, not {FORMAT!r}")
        if max(value["config"]["width"], value["config"]["context_dim"]) > WIDEST:
            raise ValueError(f"its sizes are above {WIDEST}")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path.parent}' must be a folder of gents-gym distill ({error})") from error
    check_seal(path, data, value["sha256"][CONFIG])
    return value
