"""Trains a sequence model on row sets; a killed training can be resumed."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gents_gym import registry
from gents_gym.checks import check_type
from gents_gym.files import check_target
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.checkpoint import Progress, keep_state, read_state, restore_state
from gents_gym.training.config import TrainConfig, plain_config
from gents_gym.training.data import Batch, RowSets
from gents_gym.training.memory import MOST, fitting_batch
from gents_gym.training.threads import with_threads
from gents_gym.training.untrained import check_rows, complete_model, new_model

KEEP_EVERY = 30.0  # seconds between two checkpoints within an epoch


def candidates(config: TrainConfig) -> list[TrainConfig]:
    """Return the configurations to compare: the preset's candidates, or only the given one if there is no choice."""
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
    starts from a fit to the training rows, so its first loss is close to its last. Randomness depends only on (seed,
    run, epoch), so a training resumed from its checkpoint, even within an epoch, ends with the same weights as one that
    was never stopped. The untrained model competes too, so nothing worse is returned.

    Args:
        rows: The training rows.
        validation: Rows of other actions, which choose the candidate, the epoch and the learning rate.
        config: How to train.
        checkpoint: A file for the state, written before the first batch, every 30 seconds and after every epoch. If it
            exists, the training continues from it.
        on_epoch: Called after the start of each of several candidates, once before the first batch, and after every
            epoch.
        on_batch: Called with each batch's loss.
    """
    check_rows(rows, validation, config)
    checkpoint = None if checkpoint is None else check_target("checkpoint", checkpoint)
    for name, given in (("on_epoch", on_epoch), ("on_batch", on_batch)):
        check_type(name, given, Callable | None)
    tell = on_epoch or (lambda _: None)
    plan = [plain_config(config), rows.content_hash, validation.content_hash]
    held_out = validation.choose(np.arange(min(len(validation), config.validation_actions)))
    kept_at = -math.inf

    def keep(pause: float = 0.0) -> None:
        """Write the state, unless the last one was written less than ``pause`` seconds ago."""
        nonlocal kept_at
        if checkpoint is not None and time.monotonic() - kept_at >= pause:
            keep_state(checkpoint, model, optimizers, best, average, progress, plan)
            kept_at = time.monotonic()

    def after_batch(loss: float) -> None:
        keep(KEEP_EVERY)
        if on_batch is not None:
            on_batch(loss)

    if checkpoint is None or not checkpoint.exists():
        model, config, progress = _choose(rows, held_out, config, tell)
        optimizers = _optimizers(model, config, 0)
        best, average = _copy(model), _average(model, config)
        keep()
    else:
        progress, tensors = read_state(checkpoint, plan, [option.model for option in candidates(config)])
        config = chosen_config(config, progress)
        model = new_model(rows, config, progress.run, started=False)
        optimizers = _optimizers(model, config, progress.run)
        average = _average(model, config)
        stepped = progress.epoch + progress.batches > 0
        best = restore_state(tensors, model, optimizers, average, checkpoint, stepped)
        kept_at = time.monotonic()
    fitting = fitting_batch(model, rows, config)
    progress.batch = progress.batch or config.batch or fitting
    block = fitting_batch(model, held_out, config)
    tell(progress)
    while progress.run < len(config.learning_rates):
        if progress.epoch == config.epochs:
            progress = replace(progress, run=progress.run + 1, epoch=0)
            if progress.run < len(config.learning_rates):
                model = new_model(rows, config, progress.run)
                optimizers, average = _optimizers(model, config, progress.run), _average(model, config)
            continue
        loss = _epoch(model, optimizers, average, rows, config, progress, fitting, after_batch)
        progress.epoch, progress.batches, progress.loss = progress.epoch + 1, 0, 0.0
        chosen, judged = _better(model, average, held_out, config, progress, block)
        row = {"run": progress.run, "epoch": progress.epoch, "training": loss, "validation": judged}
        progress.history.append(row)
        if judged < progress.best:
            progress.best, progress.best_at = judged, (progress.run, progress.epoch)
            best = _copy(chosen)
        keep()
        tell(progress)
    model.load_state_dict(best)
    complete_model(model, rows, config)
    return model, progress


def _choose(
    rows: RowSets, held_out: RowSets, config: TrainConfig, tell: Callable[[Progress], None]
) -> tuple[SequenceModel, TrainConfig, Progress]:
    """Return the untrained candidate with the lowest validation loss, its configuration, and the progress so far."""
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
    """Return the configuration of the best candidate, or the given one if there was no choice."""
    if not progress.candidates:
        return config
    return replace(config, model=min(progress.candidates, key=lambda row: row["validation"])["model"])


def _copy(model: SequenceModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _average(model: SequenceModel, config: TrainConfig) -> dict[str, Tensor]:
    """Return the average of the weights before the first step, or nothing if none is kept."""
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()} if config.averaging else {}


def _better(
    model: SequenceModel,
    average: dict[str, Tensor],
    held_out: RowSets,
    config: TrainConfig,
    progress: Progress,
    block: int,
) -> tuple[SequenceModel, float]:
    """Return the model or, if it is better, that with average weights, and its validation loss."""
    judged = _judge(model, held_out, config, block)
    if not config.averaging or progress.epoch <= (1 - config.averaging) * config.epochs:
        return model, judged
    other = copy.deepcopy(model)
    other.load_state_dict(average, strict=False)
    found = _judge(other, held_out, config, block)
    return (other, found) if found < judged else (model, judged)


def _judge(model: SequenceModel, rows: RowSets, config: TrainConfig, block: int = MOST) -> float:
    """Return the mean validation loss per row; infinity if it is not a number."""
    sums, counts = sequence_loss(model, rows, config.horizon, config.steps, block)
    mean = float(sums.sum() / counts.sum())
    return mean if math.isfinite(mean) else math.inf


def sequence_loss(
    model: SequenceModel, rows: RowSets, horizon: int, steps: int | None = None, block: int = MOST
) -> tuple[np.ndarray, np.ndarray]:
    """Return each action's loss over its first ``horizon`` rows, in nats, and the number of rows, (N,) each.

    With ``steps``, only that many entries count, spread evenly. ``block`` actions are predicted at once.
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
    optimizers: list[torch.optim.Optimizer],
    average: dict[str, Tensor],
    rows: RowSets,
    config: TrainConfig,
    progress: Progress,
    piece: int,
    after_batch: Callable[[float], None],
) -> float:
    """Run one epoch, or the rest of it, with ``piece`` sequences at a time; return its mean training loss."""
    rng = stream(config.seed, "training", progress.run * (1 + config.epochs) + 1 + progress.epoch)
    done, stop, all_steps = (
        config.batches(epochs, len(rows), progress.batch)
        for epochs in (progress.epoch, progress.epoch + 1, config.epochs)
    )
    order = _order(len(rows), config, (stop - done) * progress.batch, rng)
    for i, block in enumerate(np.array_split(order, stop - done)):
        batch, at = _draw(rows, block, config, rng)
        if i < progress.batches:
            continue  # done before the checkpoint; drawn again only to advance the generator
        share = (done + i) / all_steps
        factor = _one_cycle(share, config.warm_up) if config.schedule == "one-cycle" else 1
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["top"] * factor
            optimizer.zero_grad()
        loss = _add_gradients(model, batch, at, piece)
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for optimizer in optimizers:
            optimizer.step()
        _add_to_average(average, model, done + i - int((1 - config.averaging) * all_steps))
        progress.batches, progress.loss = i + 1, progress.loss + loss * len(block)
        after_batch(loss)
    return progress.loss / len(order)


def _order(n_actions: int, config: TrainConfig, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Return the actions of an epoch in order: each once, or in repeated passes until there are ``wanted``."""
    if config.gradient_steps is None:
        return rng.permutation(n_actions)
    passes = -(-wanted // n_actions)
    return np.concatenate([rng.permutation(n_actions) for _ in range(passes)])[:wanted]


def _draw(
    rows: RowSets, actions: np.ndarray, config: TrainConfig, rng: np.random.Generator
) -> tuple[Batch, Tensor | None]:
    """Return fresh sequences of the actions, and the entries whose loss counts; None: all."""
    length = config.horizon
    if config.lengths:
        length = config.lengths[rng.integers(len(config.lengths))]
        actions = actions[: max(1, len(actions) * min(config.lengths) // length)]
    batch = rows.resample(actions, length, config.replacement, rng, config.ordered)
    length = batch.outcomes.shape[1]
    if config.steps is None or config.steps >= length:
        return batch, None
    return batch, torch.from_numpy(np.sort(rng.choice(length, config.steps, replace=False)))


def _add_gradients(model: SequenceModel, batch: Batch, at: Tensor | None, piece: int) -> float:
    """Add the gradient of a batch's mean loss to the parameters, one piece at a time, and return the loss."""
    counted = batch.weights if at is None else batch.weights[:, at]
    weight, total = counted.sum().clamp(min=1), 0.0
    for parts in zip(*(torch.tensor_split(part, -(-len(counted) // piece)) for part in batch), strict=True):
        each, weights = _losses(model, Batch(*parts), at)
        loss = (each * weights).sum() / weight
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


def _add_to_average(average: dict[str, Tensor], model: SequenceModel, n_before: int) -> None:
    """Add the weights to an average of so many; below 0, it has not begun."""
    if n_before >= 0:
        for name, tensor in average.items():
            tensor.lerp_(model.get_parameter(name).detach(), 1 / (n_before + 1))


def _one_cycle(share: float, warm_up: float = 0.3) -> float:
    """Return the learning rate as a fraction of its maximum, when ``share`` of the steps are done."""
    if share < warm_up:
        return 0.5 * (1 - math.cos(math.pi * (0.04 + 0.96 * share / warm_up)))
    return 0.5 * (1 + math.cos(math.pi * (share - warm_up) / (1 - warm_up)))


def _optimizers(model: SequenceModel, config: TrainConfig, run: int) -> list[torch.optim.Optimizer]:
    """Return AdamW, and Muon for the groups that ask for it: its steps are as long as AdamW's, in all directions."""
    groups = model.parameter_groups(config.learning_rates[run], config.weight_decay)
    groups = [{**group, "top": group["lr"]} for group in groups]
    plain, hidden = ([group for group in groups if ("muon" in group) == wanted] for wanted in (False, True))
    found: list[torch.optim.Optimizer] = [torch.optim.AdamW(plain)]
    return [*found, torch.optim.Muon(hidden, adjust_lr_fn="match_rms_adamw")] if hidden else found
