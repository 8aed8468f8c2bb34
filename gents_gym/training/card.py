"""Writes the model card and the picture of the losses into a model's folder."""

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.ticker import MaxNLocator

from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.style import PALETTE
from gents_gym.models.sequence import SequenceModel
from gents_gym.training.checkpoint import Progress
from gents_gym.training.config import TrainConfig, candidates_label, sizes_label
from gents_gym.words import count

STEP = "A sequence has rows of one action in order; a step is one row."
YARDSTICKS = {  # how the card and the picture name them
    "constant": "a constant",
    "base rate": "each action's base rate so far",
    "regression": "one regression on (Z, X)",
}


def draw_losses(progress: Progress, config: TrainConfig, losses: Mapping[str, float]) -> bytes:
    """Return a PNG: loss by epoch, one panel per learning rate, and the held-out ``losses`` of model and yardsticks."""
    n_runs = len(config.learning_rates)
    figure, (*panels, last) = canvas(n_runs + 1, (1 + 4.2 * (n_runs + 1), 4.2))
    for run, panel in enumerate(panels):
        rows = [row for row in progress.history if row["run"] == run]
        for name, color in zip(("training", "validation"), PALETTE, strict=False):
            panel.plot([row["epoch"] for row in rows], [row[name] for row in rows], marker=".", label=name, color=color)
        if progress.best_at[0] == run:
            panel.axvline(progress.best_at[1], color="grey", linestyle=":", label="chosen")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        finish(panel, "epoch", "loss, nats per step", f"learning rate {config.learning_rates[run]:g}")
    names = [YARDSTICKS.get(name, name).replace(" so far", "\nso far") for name in losses]
    bars = last.barh(names, list(losses.values()), color=[PALETTE[name not in YARDSTICKS] for name in losses])
    last.bar_label(bars, fmt="%.4f", padding=3)
    last.margins(x=0.2)
    last.invert_yaxis()
    finish(last, "nats per step", "", "held-out loss")
    return to_bytes(figure)


def model_card(model: SequenceModel, notes: Mapping[str, Any]) -> str:
    """Return the model card: what it is, what it was trained on, and how well it predicts."""
    chosen, config = notes["chosen"], notes["config"]
    blind = ", blind to action features" if config["blind"] else ""
    kind = f", kind='{config['preset']}'" if ":" in config["preset"] else ""  # a class that is not registered
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    warning = f"\n**{notes['verdict']}**\n" if notes["verdict"] else ""
    return f"""# A `{model.kind}` sequence model

Predicts an action's next outcome from the action's features, its history and the current context.
Load it with `gents_gym.load_model(folder{kind})`.
{warning}
| | |
|---|---|
| made by | gents_gym {notes["gents_gym"]}, preset `{config["preset"]}`{blind} |
| sizes | action features {model.config.action_dim}, contexts {model.config.context_dim}, parameters {n_parameters} |
| data | {notes["source"]} |
| training | {notes["actions"]["training"]} actions, {notes["rows"]["training"]} rows |
| validation | {notes["actions"]["validation"]} actions, {notes["rows"]["validation"]} rows |
| seed | {config["seed"]} |
| batch | {chosen["batch"]} actions{"" if config["batch"] else f", by {config['memory']:g} GB of memory"} |
| gradient steps | {chosen["gradient_steps"]} for each learning rate |
| chosen by validation | {_choices(notes)} |
| bank | {len(model.bank)} training contexts, {len(model.action_bank)} actions |
| urn | {_urn(float(model.urn), notes["task_contexts"]) if model.banked else "none: only a task's own contexts"} |

{_losses(notes)}
Trained on sequences of {config["horizon"]} rows with {model.likelihood} outcomes. {STEP}
`training.png` shows the losses by epoch.
"""


def _choices(notes: Mapping[str, Any]) -> str:
    chosen, epochs = notes["chosen"], notes["config"]["epochs"]
    rate = f"learning rate {chosen['learning_rate']:g}, epoch {chosen['epoch']} of {epochs}"
    if not notes["candidates"]:
        return rate
    return f"{sizes_label(chosen['model'])} (before training: {candidates_label(notes['candidates'])}); {rate}"


def _urn(urn: float, n_tasks: int) -> str:
    alpha = 1 / urn - 1 if urn > 0 else math.inf
    where = f"fitted to the contexts of {count(n_tasks, 'task')}" if n_tasks else "no contexts of whole tasks are known"
    return f"α = {'∞' if math.isinf(alpha) else f'{alpha:.3g}'}, {where}"


def _losses(notes: Mapping[str, Any]) -> str:
    """Return the table of held-out losses."""
    loss = notes["validation_loss"]
    error = "" if loss["se"] is None else f" ± {loss['se']:.4f}"
    rows = [(f"**this model, sequences of {notes['config']['horizon']} rows**", f"**{loss['mean']:.4f}{error}**")]
    rows += [(YARDSTICKS[name], f"{value:.4f}") for name, value in notes["yardsticks"].items()]
    lines = ["| held-out loss | nats per step |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines) + "\n"
