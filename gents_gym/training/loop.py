"""The training loop: row sets and a configuration in, a trained sequence model out, resumable after a kill."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gents_gym import registry
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.checkpoint import Progress, keep_state, read_state, restore_state
from gents_gym.training.config import TrainConfig, plain_config
from gents_gym.training.data import RowSets
from gents_gym.training.memory import MOST, fitting_batch
from gents_gym.training.threads import with_threads
from gents_gym.training.untrained import check_rows, complete_model, new_model

WARM_UP = 0.3  # share of the steps in which the learning rate rises


def candidates(config: TrainConfig) -> list[TrainConfig]:
    """Return the configurations to compare: those of the preset's candidates, or the given one if none is to choose."""
    options = registry.CANDIDATES.get(config.preset, ()) if config.choose else ()
    if any(name in config.model for sizes in options for name in sizes):
        options = ()
    return [replace(config, model={**config.model, **sizes}) for sizes in options or ({},)]


@with_threads
def train(
    rows: RowSets,
    validation: RowSets,
    config: TrainConfig,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Progress], None] | None = None,
    on_batch: Callable[[float], None] | None = None,
) -> tuple[SequenceModel, Progress]:
    """Train a model.

    If there are several candidates, the one with the lowest validation loss before training is trained. A filter
    starts at a fit of the training rows, so its first loss is close to its last. Randomness comes from
    (seed, run, epoch) alone, so a training that goes on from its checkpoint ends with the same weights as one that was
    never stopped. The untrained model may win too: nothing worse is returned.

    Args:
        rows: The training rows.
        validation: Rows of other actions, which choose the candidate, the epoch and the learning rate.
        config: How to train.
        checkpoint: A file to keep the state in after every epoch, and to go on from if it exists.
        on_epoch: Called after the start of each of several candidates, once before the first batch, and after every
            epoch.
        on_batch: Called with each batch's loss.
    """
    check_rows(rows, validation, config)
    tell = on_epoch or (lambda _: None)
    plan = [plain_config(config), rows.content_hash, validation.content_hash]
    held_out = validation.choose(np.arange(min(len(validation), config.validation_actions)))
    if checkpoint is None or not checkpoint.exists():
        model, config, progress = _choose(rows, held_out, config, tell)
        optimizer = _optimizer(model, config, 0)
        best = _copy(model)
        if checkpoint is not None and progress.candidates:
            keep_state(checkpoint, model, optimizer, best, progress, plan)
    else:
        progress, tensors = read_state(checkpoint, plan, [option.model for option in candidates(config)])
        config = chosen_config(config, progress)
        model = new_model(rows, config, progress.run, started=False)
        optimizer = _optimizer(model, config, progress.run)
        best = restore_state(tensors, model, optimizer, checkpoint, progress.epoch > 0)
    progress.batch = progress.batch or config.batch or fitting_batch(model, rows, config)
    block = fitting_batch(model, held_out, config)
    tell(progress)
    while progress.run < len(config.learning_rates):
        if progress.epoch == config.epochs:
            progress = replace(progress, run=progress.run + 1, epoch=0)
            if progress.run < len(config.learning_rates):
                model = new_model(rows, config, progress.run)
                optimizer = _optimizer(model, config, progress.run)
            continue
        loss = _epoch(model, optimizer, rows, config, progress, on_batch)
        progress.epoch += 1
        judged = _judge(model, held_out, config, block)
        row = {"run": progress.run, "epoch": progress.epoch, "training": loss, "validation": judged}
        progress.history.append(row)
        if judged < progress.best:
            progress.best, progress.best_at = judged, (progress.run, progress.epoch)
            best = _copy(model)
        if checkpoint is not None:
            keep_state(checkpoint, model, optimizer, best, progress, plan)
        tell(progress)
    model.load_state_dict(best)
    complete_model(model, rows, config)
    return model, progress


def _choose(
    rows: RowSets, held_out: RowSets, config: TrainConfig, tell: Callable[[Progress], None]
) -> tuple[SequenceModel, TrainConfig, Progress]:
    """Return the untrained candidate of the lowest validation loss, its configuration, and the progress so far."""
    options, progress = candidates(config), Progress()
    best: SequenceModel | None = None
    for option in options:
        model = new_model(rows, option, 0)
        judged = _judge(model, held_out, option, fitting_batch(model, held_out, option))
        if best is None or judged < progress.best:
            best, progress.best = model, judged
        if len(options) > 1:
            progress.candidates.append({"model": option.model, "validation": judged})
            tell(progress)
    assert best is not None
    return best, chosen_config(config, progress), progress


def chosen_config(config: TrainConfig, progress: Progress) -> TrainConfig:
    """Return the configuration of the best candidate; the given one if there was nothing to choose."""
    if not progress.candidates:
        return config
    return replace(config, model=min(progress.candidates, key=lambda row: row["validation"])["model"])


def _copy(model: SequenceModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _judge(model: SequenceModel, rows: RowSets, config: TrainConfig, block: int = MOST) -> float:
    """Return the mean validation loss per row; infinity if it is no number."""
    sums, counts = sequence_loss(model, rows, config.horizon, config.steps, block)
    mean = float(sums.sum() / counts.sum())
    return mean if math.isfinite(mean) else math.inf


def sequence_loss(
    model: SequenceModel, rows: RowSets, horizon: int, steps: int | None = None, block: int = MOST
) -> tuple[np.ndarray, np.ndarray]:
    """Return each action's loss over its first ``horizon`` rows, in nats, and how many they are, (N,) each.

    With ``steps``, only so many entries count, spread evenly. ``block`` actions are predicted at once.
    """
    losses, counts = [], []
    for actions in np.array_split(np.arange(len(rows)), -(-len(rows) // block)):
        batch = rows.sequences(actions, horizon)
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
    blocks = np.array_split(order, -(-len(rows) // progress.batch))
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
