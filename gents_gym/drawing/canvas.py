"""Makes figures and turns them into bytes: sizes, axes and file formats."""

import io
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gents_gym.checks import check_choice
from gents_gym.drawing.style import SOFTWARE

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": SOFTWARE},
    "svg": {"Creator": SOFTWARE, "Date": None},
    "pdf": {"Creator": SOFTWARE, "Producer": None, "CreationDate": None},
}
FONT = 9  # points
MUTED = "#5F6771"


class Picture(Figure):
    """A figure that a notebook displays by itself, also without pyplot."""

    def _repr_png_(self) -> bytes:
        return to_bytes(self)


def canvas(columns: int, size: tuple[float, float], rows: int = 1, dpi: int = 120) -> tuple[Picture, list[Axes]]:
    """Return a figure of ``size`` inches and its panels, row by row; the layout makes room for labels."""
    figure = Picture(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def filled_canvas(n_panels: int, most: int, size: tuple[float, float], below: float) -> tuple[Picture, list[Axes]]:
    """Return a figure of panels in rows that are all filled, row by row, and the panels.

    Args:
        n_panels: The number of panels.
        most: The most panels in a row; rows are as equal as possible, and one with fewer panels has wider ones.
        size: The size of a panel in a row with most panels, in inches.
        below: Inches left below all panels, for a note.
    """
    rows = np.array_split(np.arange(n_panels), -(-n_panels // most))
    figure = Picture(figsize=(size[0] * len(rows[0]), size[1] * len(rows) + below), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    strips = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    return figure, [
        panel
        for strip, row in zip(strips, rows, strict=True)
        for panel in strip.subplots(1, len(row), squeeze=False).flat
    ]


def finish(panel: Axes, x: str, y: str, title: str = "") -> None:
    """Label the axes, draw a faint grid, and add a legend if anything has a label."""
    dress(panel)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    if title:
        panel.set_title(title, fontsize=FONT + 1)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, fontsize=FONT - 1)


def dress(panel: Axes) -> None:
    """Give a panel the faint grid and the two spines that all figures have."""
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def to_bytes(figure: Figure, form: str = "png") -> bytes:
    """Return a figure as "png", "svg" or "pdf": the same bytes for the same numbers."""
    check_choice("form", form, METADATA)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": SOFTWARE, "pdf.fonttype": 42}):  # fixed ids; text that stays text
        figure.savefig(buffer, format=form, metadata=METADATA[form])
    return buffer.getvalue()


def plain(text: str) -> str:
    """Return ``text`` such that Matplotlib shows it unchanged: not as a formula, and not hidden because of "_"."""
    return ("\u2009" if text.startswith("_") else "") + text.replace("$", r"\$")
