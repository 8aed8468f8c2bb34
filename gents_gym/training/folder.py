"""Trains a model into a folder: weights, a model card and a figure of the losses."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.tensorboard import SummaryWriter

import gents_gym
from gents_gym.checks import InputError
from gents_gym.files import PLAN, check_plan, check_target, fill_plan, kept_plan, open_run, remove_parts, write_whole
from gents_gym.logs.record import Logs
from gents_gym.models.load import load_model, read_config
from gents_gym.models.sequence import CONFIG, SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.card import draw_losses, model_card
from gents_gym.training.checkpoint import Progress
from gents_gym.training.config import TrainConfig, earlier_config, plain_config, preset_class, sizes_label
from gents_gym.training.data import RowSets
from gents_gym.training.loop import chosen_config, sequence_loss, train
from gents_gym.training.memory import fitting_batch
from gents_gym.training.threads import with_threads
from gents_gym.training.untrained import check_rows
from gents_gym.training.yardsticks import judge, measure_yardsticks


def split_actions(rows: RowSets, share: float, seed: int, whole_tasks: bool = False) -> tuple[RowSets, RowSets]:
    """Split the actions at random into ``1 - share`` for training and the rest for validation; return both row sets.

    With ``whole_tasks``, all actions of a task go to one side.
    """
    if whole_tasks and rows.tasks is None:
        raise InputError("data must have the column 'task' for a training on whole tasks, got none")
    owners = np.arange(len(rows)) if rows.tasks is None or not whole_tasks else _number(rows.tasks)
    n_parts, what = int(owners.max()) + 1, "tasks" if whole_tasks else "actions"
    if n_parts < 2:
        raise InputError(f"data must have at least 2 {what}, one to validate with, got {n_parts}")
    order = stream(seed, "training", 0, "test").permutation(n_parts)
    n_held_out = min(max(1, round(share * n_parts)), n_parts - 1)
    held_out = np.isin(owners, order[:n_held_out])
    return rows.choose(np.flatnonzero(~held_out)), rows.choose(np.flatnonzero(held_out))


def _number(labels: np.ndarray) -> np.ndarray:
    """Return whole numbers from 0 on instead of labels (N,)."""
    return np.unique(labels, return_inverse=True)[1]


def split_time(logs: Logs, share: float) -> tuple[RowSets, RowSets]:
    """Return the row sets of the first ``1 - share`` of a log's rows, and of the latest, for validation."""
    if logs.times is None:
        raise InputError("a split by time needs the role time, got none")
    if len(logs) < 2:
        raise InputError(f"data must have at least 2 rows, one to validate with, got {len(logs)}")
    last = len(logs) - min(max(1, round(share * len(logs))), len(logs) - 1)
    parts = (logs.choose(np.arange(last)), logs.choose(np.arange(last, len(logs))))
    rows, validation = (RowSets.from_logs(part) for part in parts)
    return replace(rows, columns={**(rows.columns or {}), "sha256": logs.content_hash, "until": last}), validation


@with_threads
def train_to_folder(
    rows: RowSets,
    validation: RowSets,
    config: TrainConfig,
    out: str | Path,
    source: str = "arrays",
    on_epoch: Callable[[Progress], None] | None = None,
    on_batch: Callable[[float], None] | None = None,
) -> SequenceModel:
    """Train a model and write it to the folder ``out``.

    If the folder holds an unfinished run of the same configuration and data, the run continues; a finished run is left
    unchanged. Any other folder with files in it is refused, and so is one that another process is writing to.

    Args:
        rows: The training rows.
        validation: Rows of other actions.
        config: How to train.
        out: A new or empty folder, or that of the same run.
        source: The source of the rows, for the model card.
        on_epoch: Called as in :func:`gents_gym.train`.
        on_batch: Called with each batch's loss.
    """
    check_rows(rows, validation, config)
    out = check_target("out", out)
    config = _as_begun(config, out)
    hashes = {"training": rows.content_hash, "validation": validation.content_hash}
    plan = {"config": plain_config(config), "sha256": hashes, "source": source}
    if not _finished(out, plan):
        with open_run(out, plan, earlier_config()):
            _fill(out, plan, rows, validation, config, on_epoch, on_batch)
            _finished(out, plan)
    return load_model(out, preset_class(config.preset))


def _fill(
    out: Path,
    plan: dict[str, Any],
    rows: RowSets,
    validation: RowSets,
    config: TrainConfig,
    on_epoch: Callable[[Progress], None] | None,
    on_batch: Callable[[float], None] | None,
) -> None:
    """Train, and write all files; config.json is last and marks the run as finished."""
    shutil.rmtree(out / "tensorboard", ignore_errors=True)  # rewritten from the history
    with SummaryWriter(str(out / "tensorboard")) as writer:
        scalars = _Scalars(writer, on_epoch)
        model, progress = train(rows, validation, config, out / "state.safetensors", scalars, on_batch)
    notes = {**plan, **_notes(model, progress, config, rows, validation)}
    losses = {"this model": notes["validation_loss"]["mean"], **notes["yardsticks"]}
    write_whole(out / "training.png", draw_losses(progress, config, losses))
    write_whole(out / "history.json", (json.dumps(progress.history, indent=1) + "\n").encode())
    write_whole(out / "README.md", model_card(model, notes).encode())
    model.save_pretrained(out, notes)


class _Scalars:
    """Writes each new loss for TensorBoard once, and passes the progress on."""

    def __init__(self, writer: SummaryWriter, on_epoch: Callable[[Progress], None] | None) -> None:
        self._writer, self._on_epoch = writer, on_epoch
        self._n_epochs = self._n_candidates = 0

    def __call__(self, progress: Progress) -> None:
        for row in progress.candidates[self._n_candidates :]:
            self._writer.add_scalar(f"candidate/{sizes_label(row['model'])}", row["validation"], 0)
        for step, row in list(enumerate(progress.history, start=1))[self._n_epochs :]:
            for name in ("training", "validation"):
                self._writer.add_scalar(f"loss/{name}", row[name], step)
        self._n_candidates, self._n_epochs = len(progress.candidates), len(progress.history)
        if self._on_epoch is not None:
            self._on_epoch(progress)


def _notes(
    model: SequenceModel, progress: Progress, config: TrainConfig, rows: RowSets, validation: RowSets
) -> dict[str, Any]:
    """Return the notes on a trained model, as JSON values."""
    block = fitting_batch(model, validation, replace(config, steps=None))
    sums, counts = sequence_loss(model, validation, config.horizon, block=block)
    losses, mean = sums / counts, float(sums.sum() / counts.sum())
    yardsticks = measure_yardsticks(model, rows, validation, config.horizon, config.seed)
    run, epoch = progress.best_at
    sizes = chosen_config(config, progress).model
    return {
        "gents_gym": gents_gym.__version__,
        "columns": {"contexts": [], "action_features": []} if rows.columns is None else dict(rows.columns),
        "candidates": progress.candidates,
        "chosen": {
            "model": sizes,
            "batch": progress.batch,
            "gradient_steps": config.batches(config.epochs, len(rows), progress.batch),
            "learning_rate": config.learning_rates[run],
            "epoch": epoch,
        },
        "validation_loss": {
            "mean": mean,
            "se": float(losses.std(ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else None,
        },
        "yardsticks": yardsticks,
        "verdict": judge(rows.likelihood, mean, yardsticks),
        "actions": {"training": len(rows), "validation": len(validation)},
        "rows": {"training": len(rows.contexts), "validation": len(validation.contexts)},
        "task_contexts": len(rows.task_contexts),
    }


def _as_begun(config: TrainConfig, out: Path) -> TrainConfig:
    """Return the configuration as an earlier version without candidates and memory began it, if one did."""
    kept = _kept(out)
    begun = kept.get("config") if isinstance(kept, dict) else None
    if not isinstance(begun, dict) or "choose" in begun:
        return config
    return replace(config, choose=False, batch=config.batch or begun.get("batch"))


def _kept(out: Path, defaults: Mapping[str, Any] | None = None) -> Any:
    """Return the plan of the run in the folder, unfinished or finished; None if there is none."""
    kept = kept_plan(out, defaults)
    if kept is None and (out / CONFIG).exists():
        notes = read_config(out / CONFIG).get("notes") or {}
        return fill_plan({name: notes[name] for name in ("config", "sha256", "source") if name in notes}, defaults)
    return kept


def _finished(out: Path, plan: dict[str, Any]) -> bool:
    """Return whether the folder holds this run, finished; raise if it holds another. Working files are removed."""
    if not (out / CONFIG).exists():
        return False
    check_plan(out, _kept(out, earlier_config()), plan)
    for name in ("state.safetensors", PLAN):
        (out / name).unlink(missing_ok=True)
    remove_parts(out)
    return True
