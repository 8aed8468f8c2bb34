"""Writes calibrations as tables, pictures and a section of a model's card."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from gents_gym.calibration.positions import LEVELS
from gents_gym.calibration.record import Calibration
from gents_gym.checks import InputError
from gents_gym.drawing.canvas import canvas, finish, plain, to_bytes
from gents_gym.drawing.style import PALETTE
from gents_gym.files import write_whole

TITLE = "## Calibration\n"
PICTURE = "calibration.png"
HEADER = ("rows seen", "reliability error (by chance)", "loss, marginal", "loss, joint")


def header(found: Calibration) -> list[str]:
    """Return the column titles of :func:`table_rows`."""
    levels = " / ".join(f"{level:.0%}" for level in LEVELS).replace("%", "")
    covers = [f"{name}: {levels} % covers" for name in found.positions]
    return [*HEADER, *covers, *([f"p, {name}" for name in found.positions] if found.tested else [])]


def table_rows(found: Calibration) -> list[list[str]]:
    """Return the numbers as text, with a row for each number of observed rows."""
    return [_row(found, at) for at in range(len(found.steps))]


def _row(found: Calibration, at: int) -> list[str]:
    reliability = found.reliability[at]
    losses = ["{:.4f} ± {:.4f}".format(*found.loss(name, at)) for name in ("marginal", "joint")]
    covers = [
        " / ".join(f"{100 * share[0]:.0f}" for share in found.coverage(name, at).values()) for name in found.positions
    ]
    tests = [f"{found.p_values(name)[at]:.2g}" for name in found.positions] if found.tested else []
    return [str(found.steps[at]), f"{reliability.error:.4f} ({reliability.chance:.4f})", *losses, *covers, *tests]


def draw_calibrations(found: Mapping[str, Calibration]) -> bytes:
    """Return a PNG with a row of panels for each model: reliability, coverage of both quantities, losses."""
    figure, panels = canvas(4, (17, 0.6 + 4 * len(found)), rows=len(found), dpi=100)
    for i, (name, one) in enumerate(found.items()):
        row = panels[4 * i : 4 * i + 4]
        _draw_reliability(row[0], one)
        for panel, quantity in zip(row[1:3], one.positions, strict=True):
            _draw_coverage(panel, one, quantity)
        _draw_losses(row[3], one)
        row[0].set_ylabel(plain(f"{name}\n\n{row[0].get_ylabel()}"))
    return to_bytes(figure)


def _color(at: int) -> str:
    return PALETTE[at % len(PALETTE)]


def _draw_reliability(panel: Axes, found: Calibration) -> None:
    panel.plot([0, 1], [0, 1], color="grey", linewidth=1)
    for at, (step, one) in enumerate(zip(found.steps, found.reliability, strict=True)):
        spans = np.stack([one.observed - one.low, one.high - one.observed])
        label = f"rows {step + 1} to {step + found.config.group}"
        panel.errorbar(
            one.predicted, one.observed, np.maximum(spans, 0), color=_color(at), label=label, marker=".", linewidth=1
        )
    finish(panel, "predicted share", "observed share", "reliability, with 95 % intervals")


def _draw_coverage(panel: Axes, found: Calibration, quantity: str) -> None:
    """Draw the share that a central interval covers against its level, with the band expected by chance."""
    levels = np.linspace(0, 1, 101)
    spread = 1.96 * np.sqrt(levels * (1 - levels) / len(found.positions[quantity]))
    panel.fill_between(levels, levels - spread, levels + spread, color="grey", alpha=0.25, linewidth=0)
    for at, (step, positions) in enumerate(zip(found.steps, found.positions[quantity].T, strict=True)):
        distances = 2 * np.abs(positions - 0.5)
        shares = (distances[:, None] <= levels).mean(axis=0)
        panel.plot(levels, shares, color=_color(at), label=f"after {step} rows", linewidth=1.5)
    finish(panel, "level of the interval", "share covered", f"{quantity}: coverage")


def _draw_losses(panel: Axes, found: Calibration) -> None:
    places = np.arange(len(found.steps))
    for shift, name, color in ((-0.1, "marginal", _color(0)), (0.1, "joint", _color(1))):
        means, errors = np.array([found.loss(name, at) for at in range(len(places))]).T
        panel.errorbar(places + shift, means, errors, color=color, label=name, fmt="o", capsize=3)
    panel.set_xticks(places, [str(step) for step in found.steps])
    finish(panel, "rows seen", "nats per row", f"loss of {found.config.group} rows, ± 1 s.e.")


def check_card(folder: Path) -> None:
    """Raise unless ``folder`` holds a trained model with a card."""
    if not (folder / "config.json").is_file() or not (folder / "README.md").is_file():
        raise InputError(f"card needs models that are folders with config.json and README.md, got '{folder}'")


def write_card(folder: Path, found: Calibration, source: str) -> None:
    """Write the picture into a model's folder and the section into its card, replacing an earlier one.

    Args:
        folder: The trained model's folder.
        found: The calibration.
        source: The data that it was measured on.
    """
    check_card(folder)
    card = folder / "README.md"
    before, _, after = card.read_text().partition(TITLE)
    _, mark, others = after.partition("\n## ")
    write_whole(folder / PICTURE, draw_calibrations({folder.name: found}))
    write_whole(card, f"{before.rstrip()}\n\n{_section(found, source)}{mark}{others}".encode())


def _section(found: Calibration, source: str) -> str:
    """Return the section of a card."""
    config, lines = found.config, [header(found), ["---"] * len(header(found)), *table_rows(found)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""{TITLE}
{source}, test split, seed {config.seed}: {config.actions} actions, {config.tasks} tasks, {config.draws} tables each.
Losses are in nats per row of groups of {config.group}.

{table}

{found.verdict[0].upper()}{found.verdict[1:]}. `{PICTURE}` shows the same.
"""
