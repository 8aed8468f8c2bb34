"""A training run with a folder: data and a configuration in; weights, a model card and a figure of the losses out."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch.utils.tensorboard import SummaryWriter

import gents_gym
from gents_gym.checks import InputError
from gents_gym.files import PLAN, kept_plan, open_run, remove_parts, write_whole
from gents_gym.models.load import load_model
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.data import RowSets
from gents_gym.training.loop import Progress, TrainConfig, check_rows, plain_config, preset_class, sequence_loss, train


def split_actions(rows: RowSets, share: float, seed: int) -> tuple[RowSets, RowSets]:
    """Return the rows of a random ``1 - share`` of the actions, and of the others, which validate."""
    if len(rows) < 2:
        raise InputError(f"data must have at least 2 actions, one to validate with, got {len(rows)}")
    order = stream(seed, "training", 0, "test").permutation(len(rows))
    n_held_out = min(max(1, round(share * len(rows))), len(rows) - 1)
    return rows.choose(np.sort(order[n_held_out:])), rows.choose(np.sort(order[:n_held_out]))


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

    A folder that holds an unfinished run of the same configuration and data goes on where it was; any other that
    has files in it is refused.

    Args:
        rows: The training rows.
        validation: Rows of other actions.
        config: How to train.
        out: A new or empty folder, or that of the run to go on with.
        source: Where the rows are from, for the model card.
        on_epoch: Told after every epoch.
        on_batch: Told each batch's loss.
    """
    check_rows(rows, validation, config)
    out = Path(out)
    hashes = {"training": rows.content_hash, "validation": validation.content_hash}
    plan = {"config": plain_config(config), "sha256": hashes, "source": source}
    if _finished(out, plan):
        return load_model(out, preset_class(config.preset))
    open_run(out, plan, plain_config(TrainConfig()))
    shutil.rmtree(out / "tensorboard", ignore_errors=True)  # written anew from the history
    seen = 0

    def note(progress: Progress) -> None:
        nonlocal seen
        for step, row in list(enumerate(progress.history, start=1))[seen:]:
            for name in ("training", "validation"):
                writer.add_scalar(f"loss/{name}", row[name], step)
        seen = len(progress.history)
        if on_epoch is not None:
            on_epoch(progress)

    with SummaryWriter(str(out / "tensorboard")) as writer:
        model, progress = train(rows, validation, config, out / "state.safetensors", note, on_batch)
    sums, counts = sequence_loss(model, validation, config.horizon)
    losses = sums / counts
    notes = {
        **plan,
        "gents_gym": gents_gym.__version__,
        "columns": {"contexts": list(rows.context_names), "action_features": list(rows.feature_names)},
        "chosen": {"learning_rate": config.learning_rates[progress.best_at[0]], "epoch": progress.best_at[1]},
        "validation_loss": {
            "mean": float(sums.sum() / counts.sum()),
            "se": float(losses.std(ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else None,
        },
        "actions": {"training": len(rows), "validation": len(validation)},
        "rows": {"training": len(rows.contexts), "validation": len(validation.contexts)},
    }
    write_whole(out / "training.png", draw_losses(progress, config))
    write_whole(out / "history.json", (json.dumps(progress.history, indent=1) + "\n").encode())
    write_whole(out / "README.md", model_card(model, notes).encode())
    model.save_pretrained(out, notes)  # config.json is written last: with it, the run is finished
    _finished(out, plan)
    return model


def _finished(out: Path, plan: dict[str, Any]) -> bool:
    """Return whether the folder holds this run, done; its working files go."""
    if not (out / "config.json").exists() or kept_plan(out, plain_config(TrainConfig())) != plan:
        return False
    for name in ("state.safetensors", PLAN):
        (out / name).unlink(missing_ok=True)
    remove_parts(out)
    return True


def draw_losses(progress: Progress, config: TrainConfig) -> bytes:
    """Return a PNG of training and validation loss by epoch, a panel per learning rate."""
    figure = Figure(figsize=(1 + 4.2 * len(config.learning_rates), 4.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(config.learning_rates), squeeze=False)[0]
    for run, panel in enumerate(panels):
        rows = [row for row in progress.history if row["run"] == run]
        for name in ("training", "validation"):
            panel.plot([row["epoch"] for row in rows], [row[name] for row in rows], marker=".", label=name)
        if progress.best_at[0] == run:
            panel.axvline(progress.best_at[1], color="grey", linestyle=":", label="chosen")
        panel.set_title(f"learning rate {config.learning_rates[run]:g}")
        panel.set_xlabel("epoch")
        panel.set_ylabel("loss, nats per step")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(alpha=0.25)
        panel.legend(frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def model_card(model: SequenceModel, notes: dict[str, Any]) -> str:
    """Return the model card: what it is, what it was trained on, and how well it predicts."""
    loss, chosen, config = notes["validation_loss"], notes["chosen"], notes["config"]
    error = "" if loss["se"] is None else f" ± {loss['se']:.4f}"
    blind = ", blind to action features" if config["blind"] else ""
    kind = f", kind='{config['preset']}'" if ":" in config["preset"] else ""  # a class that is not registered
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"""# A `{model.kind}` sequence model

Predicts an action's next outcome from the action's features, its history and the current context.
Load it with `gents_gym.load_model(folder{kind})`.

| | |
|---|---|
| made by | gents_gym {notes["gents_gym"]}, preset `{config["preset"]}`{blind} |
| sizes | action features {model.config.action_dim}, contexts {model.config.context_dim}, parameters {n_parameters} |
| data | {notes["source"]} |
| training | {notes["actions"]["training"]} actions, {notes["rows"]["training"]} rows |
| validation | {notes["actions"]["validation"]} actions, {notes["rows"]["validation"]} rows |
| seed | {config["seed"]} |
| chosen by validation | learning rate {chosen["learning_rate"]:g}, epoch {chosen["epoch"]} of {config["epochs"]} |
| validation loss | {loss["mean"]:.4f}{error} nats per step over {config["horizon"]} steps |
| bank | {len(model.bank)} training contexts |

Trained for {config["horizon"]} steps of {model.likelihood} outcomes. `training.png` shows the losses by epoch.
"""
