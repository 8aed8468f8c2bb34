"""Makes figures and turns them into bytes: sizes, axes and file formats."""

import io
from typing import Any

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
