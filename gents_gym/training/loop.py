"""The training loop: row sets and a configuration in, a trained sequence model out, resumable after a kill."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gents_gym import registry
from gents_gym.checks import InputError, check_choice, check_flag, check_integer, check_number
from gents_gym.construct import find
from gents_gym.files import write_whole
from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.load import model_class, model_kinds
from gents_gym.models.sequence import LATER, SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.data import RowSets

BANK = 1000  # contexts in a model's bank
WARM_UP = 0.3  # share of the steps in which the learning rate rises


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained; :func:`preset_config` fills in a preset's defaults."""

    preset: str = "filter"  # "filter", "paper", or package.module:Class, a SequenceModel of one's own
    model: dict[str, int] = field(default_factory=dict)  # the model's own sizes, where not the default ones
    horizon: int = 500  # T, rows of a sequence
    epochs: int = 3
    batch: int = 500  # actions
    learning_rates: tuple[float, ...] = (0.02,)  # each is tried; the lowest validation loss wins
    weight_decay: float = 0.01
    steps: int | None = None  # entries of each sequence whose loss counts, drawn anew for every batch; None: all
    replacement: bool = False  # whether sequences are bootstrapped with replacement, as in the paper
    validation_actions: int = 2000  # at the most
    blind: bool = False  # whether action features are hidden: what they are worth shows in the difference
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        config_class = preset_class(self.preset).config_class
        for name in ("horizon", "epochs", "batch", "validation_actions"):
            check_integer(name, getattr(self, name), 1)
        if self.steps is not None:
            check_integer("steps", self.steps, 1)
        if not self.learning_rates:
            raise InputError("learning_rates must name at least one, got none")
        for rate in self.learning_rates:
            check_number("learning_rates", rate, 0, above=True)
        check_number("weight_decay", self.weight_decay, 0)
        check_flag("blind", self.blind)
        check_integer("seed", self.seed, 0)
        given = ("action_dim", "context_dim", "likelihood")  # by the rows
        own = [entry.name for entry in fields(config_class) if entry.name not in given]
        for name in self.model:
            check_choice(f"size of a {self.preset} model:", name, own)
        config_class(action_dim=1, context_dim=1, **self.model)  # checks the sizes


def preset_class(preset: str) -> type[SequenceModel]:
    """Return the class of models that a preset trains; any kind of model is a preset by its own name."""
    if ":" in str(preset):
        return model_class(preset)
    kinds = {**{kind: kind for kind in model_kinds()}, **{name: row["kind"] for name, row in registry.PRESETS.items()}}
    return model_class(kinds[check_choice("preset", preset, kinds)])


def preset_config(preset: str, setting: str | None = None, **changes: Any) -> TrainConfig:
    """Return a preset's configuration with ``changes``.

    Args:
        preset: "filter", "paper", another kind of model, or ``package.module:Class``, a subclass of
            ``SequenceModel``.
        setting: The id of the task distribution that the rows are of, where that is known: "news" has sizes of its own.
        **changes: Fields of :class:`TrainConfig`; sizes in ``model`` are added to the preset's.
    """
    preset_class(preset)
    chosen = {**registry.PRESETS.get(preset, {}), **registry.PRESET_CHANGES.get(setting or "", {}).get(preset, {})}
    chosen.pop("kind", None)
    sizes = {**chosen.get("model", {}), **changes.pop("model", {})}
    return TrainConfig(preset, **{**chosen, **changes, "model": sizes})


def plain_config(config: TrainConfig) -> dict[str, Any]:
    """Return the fields as JSON holds them, which is how plans are kept and compared."""
    return dict(json.loads(json.dumps(asdict(config))))


@dataclass
class Progress:
    """Where a training stands: all that a resumed one needs beside its tensors."""

    run: int = 0  # which learning rate is being tried
    epoch: int = 0  # epochs done in this run
    best: float = math.inf  # lowest validation loss so far
    best_at: tuple[int, int] = (0, 0)  # its run and epoch
    history: list[dict[str, float]] = field(default_factory=list)  # a row per epoch


def train(
    rows: RowSets,
    validation: RowSets,
    config: TrainConfig,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Progress], None] | None = None,
    on_batch: Callable[[float], None] | None = None,
) -> tuple[SequenceModel, Progress]:
    """Train a model.

    Randomness comes from (seed, run, epoch) alone, so a training that goes on from its checkpoint ends with the
    same weights as one that was never stopped. The untrained model is a candidate too: nothing worse is returned.

    Args:
        rows: The training rows.
        validation: Rows of other actions, which choose the epoch and the learning rate.
        config: How to train.
        checkpoint: A file to keep the state in after every epoch, and to go on from where it exists.
        on_epoch: Told after every epoch, and once at the start where a checkpoint is resumed.
        on_batch: Told each batch's loss.
    """
    check_rows(rows, validation, config)
    plan = [plain_config(config), rows.content_hash, validation.content_hash]
    progress, kept = (Progress(), None) if checkpoint is None or not checkpoint.exists() else _read(checkpoint, plan)
    held_out = validation.choose(np.arange(min(len(validation), config.validation_actions)))
    model = new_model(rows, config, progress.run)
    optimizer = _optimizer(model, config, progress.run)
    if kept is not None:
        best = _restore(kept, model, optimizer, checkpoint)
        if on_epoch is not None and progress.history:
            on_epoch(progress)
    else:
        best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        progress.best = _judge(model, held_out, config)
    while progress.run < len(config.learning_rates):
        if progress.epoch == config.epochs:
            progress = replace(progress, run=progress.run + 1, epoch=0)
            if progress.run < len(config.learning_rates):
                model = new_model(rows, config, progress.run)
                optimizer = _optimizer(model, config, progress.run)
            continue
        loss = _epoch(model, optimizer, rows, config, progress, on_batch)
        progress.epoch += 1
        judged = _judge(model, held_out, config)
        row = {"run": progress.run, "epoch": progress.epoch, "training": loss, "validation": judged}
        progress.history.append(row)
        if judged < progress.best:
            progress.best, progress.best_at = judged, (progress.run, progress.epoch)
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        if checkpoint is not None:
            _keep(checkpoint, model, optimizer, best, progress, plan)
        if on_epoch is not None:
            on_epoch(progress)
    model.load_state_dict(best)
    return model, progress


def check_rows(rows: RowSets, validation: RowSets, config: TrainConfig) -> None:
    """Raise unless both row sets are of one kind, and a model can be made for them."""
    if validation.contexts.shape[1] != rows.contexts.shape[1]:
        wanted, got = rows.contexts.shape[1], validation.contexts.shape[1]
        raise InputError(f"validation must have contexts of {wanted} entries, as the training rows, got {got}")
    if validation.likelihood != rows.likelihood:
        rule = f"validation must have {rows.likelihood} outcomes, as the training rows"
        raise InputError(f"{rule}, got {validation.likelihood}: name the likelihood of both")
    kind = preset_class(config.preset)
    kind.config_class(**{**_data_sizes(kind, rows), **config.model})


def new_model(rows: RowSets, config: TrainConfig, run: int) -> SequenceModel:
    """Return an untrained model for ``rows``: fresh weights, a bank, and a filter's first prior."""
    kind = preset_class(config.preset)
    rng = stream(config.seed, "training", run * (1 + config.epochs))
    with torch.random.fork_rng(devices=[]):  # layers draw from torch's global generator: it is lent, and given back
        torch.random.manual_seed(int(rng.integers(2**63)))
        model = kind(kind.config_class(**{**_data_sizes(kind, rows), **config.model}))
    picked = rng.choice(len(rows.contexts), min(BANK, len(rows.contexts)), replace=False)
    model.bank = torch.from_numpy(rows.contexts[np.sort(picked)].copy())
    model.context_scaling, model.action_scaling = _scaling(rows.contexts), _scaling(rows.action_features)
    model.space = rows.space
    if config.blind:
        model.action_scaling[1] = 0
    if model.kind in registry.STARTS:
        find("start of a model", model.kind, registry.STARTS)(model, rows, rng)
    return model


def _data_sizes(kind: type[SequenceModel], rows: RowSets) -> dict[str, Any]:
    """Return the part of a model's configuration that the rows decide, or raise if it cannot have their outcomes."""
    sizes: dict[str, Any] = {"action_dim": rows.action_features.shape[1], "context_dim": rows.contexts.shape[1]}
    if "likelihood" in {entry.name for entry in fields(kind.config_class)}:
        sizes["likelihood"] = str(rows.likelihood)
    elif rows.likelihood != BERNOULLI:
        raise InputError(f"outcomes must be bernoulli for a {kind.kind} model, got {rows.likelihood}: train a filter")
    return sizes


def _scaling(values: np.ndarray) -> Tensor:
    """Return the mean of each column and the inverse of its standard deviation, (2, columns); 1 for a constant one."""
    mean, spread = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    return torch.from_numpy(np.stack([mean, 1 / np.where(spread > 0, spread, 1)]).astype(np.float32))


def _judge(model: SequenceModel, rows: RowSets, config: TrainConfig) -> float:
    """Return the mean validation loss per row; infinity where it is no number."""
    sums, counts = sequence_loss(model, rows, config.horizon, config.steps)
    mean = float(sums.sum() / counts.sum())
    return mean if math.isfinite(mean) else math.inf


def sequence_loss(
    model: SequenceModel, rows: RowSets, horizon: int, steps: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return each action's loss over its first ``horizon`` rows, in nats, and how many they are, (N,) each.

    With ``steps``, only so many entries count, spread evenly.
    """
    losses, counts = [], []
    for block in np.array_split(np.arange(len(rows)), -(-len(rows) // 500)):
        batch = rows.sequences(block, horizon)
        length = batch.outcomes.shape[1]
        at = None if steps is None or steps >= length else torch.linspace(0, length - 1, steps).long()
        with torch.no_grad():
            each, weights = _losses(model, batch, at)
        losses.append((each * weights).double().sum(1).numpy())
        counts.append(weights.double().sum(1).numpy())
    return np.concatenate(losses), np.concatenate(counts)


def _losses(model: SequenceModel, batch: Any, at: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the losses and weights at the entries ``at``, (n, len(at)) each."""
    losses = -model.log_prob(batch.action_features, batch.contexts, batch.outcomes, at)
    return losses, batch.weights if at is None else batch.weights[:, at]


def _epoch(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    rows: RowSets,
    config: TrainConfig,
    progress: Progress,
    on_batch: Callable[[float], None] | None,
) -> float:
    """Run one epoch and return its mean training loss."""
    rng = stream(config.seed, "training", progress.run * (1 + config.epochs) + 1 + progress.epoch)
    order = rng.permutation(len(rows))
    blocks = np.array_split(order, -(-len(rows) // config.batch))
    total = 0.0
    for i, block in enumerate(blocks):
        share = (progress.epoch * len(blocks) + i) / (config.epochs * len(blocks))
        for group in optimizer.param_groups:
            group["lr"] = group["top"] * _one_cycle(share)
        batch = rows.resample(block, config.horizon, config.replacement, rng)
        length = batch.outcomes.shape[1]
        at = None
        if config.steps is not None and config.steps < length:
            at = torch.from_numpy(np.sort(rng.choice(length, config.steps, replace=False)))
        each, weights = _losses(model, batch, at)
        loss = (each * weights).sum() / weights.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.item() * len(block)
        if on_batch is not None:
            on_batch(loss.item())
    return total / len(rows)


def _one_cycle(share: float) -> float:
    """Return the learning rate, as a part of its top, when ``share`` of the steps are done."""
    if share < WARM_UP:
        return 0.5 * (1 - math.cos(math.pi * (0.04 + 0.96 * share / WARM_UP)))
    return 0.5 * (1 + math.cos(math.pi * (share - WARM_UP) / (1 - WARM_UP)))


def _optimizer(model: SequenceModel, config: TrainConfig, run: int) -> torch.optim.AdamW:
    groups = model.parameter_groups(config.learning_rates[run], config.weight_decay)
    return torch.optim.AdamW([{**group, "top": group["lr"]} for group in groups])


def _keep(
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


def _read(path: Path, plan: list[Any]) -> tuple[Progress, dict[str, Tensor]]:
    """Return the progress and the tensors of a state file, which must be of the same plan."""
    try:
        with safe_open(path, framework="pt") as file:
            labels = {name: json.loads(text) for name, text in file.metadata().items()}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        progress, (kept_config, *hashes) = Progress(**labels["progress"]), labels["plan"]
        kept_plan = [{**plain_config(TrainConfig()), **kept_config}, *hashes]  # an earlier version's has fewer fields
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"'{path}' must be a whole training state ({error})") from error
    if kept_plan != plan:
        raise InputError(f"'{path}' must be the state of a training of this configuration on these rows")
    return replace(progress, best_at=(progress.best_at[0], progress.best_at[1])), tensors


def _restore(
    tensors: dict[str, Tensor], model: SequenceModel, optimizer: torch.optim.Optimizer, path: Path | None
) -> dict[str, Tensor]:
    """Fill model and optimiser from a state file's tensors; return the best weights."""
    later = {f"{part}.{name}": model.state_dict()[name].clone() for part in ("model", "best") for name in LATER}
    tensors = {**later, **tensors}
    n_parameters = sum(len(group["params"]) for group in optimizer.param_groups)
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
