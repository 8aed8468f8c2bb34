"""Writes names next to curves: wraps them, moves them apart, and draws each with its dash at the end of its curve."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox

from gents_gym.drawing.canvas import FONT, plain
from gents_gym.drawing.style import Look

WIDTH = 36  # most characters in a line of a name
LONGEST = 100  # most characters of a name
SPACING = 1.25  # line spacing, in font sizes
GAP = 5.0  # points between two names
LEADER, SWATCH, PAD = 16.0, 20.0, 5.0  # points from the panel to the swatch, its length, and from it to the name
# Where the name of a point may be, from the point, in points: right or left of it, at several heights.
AROUND = [(side * 6, height) for height in (-3, 4, -10, 11, -17, 18, -24) for side in (1, -1)]


@dataclass(frozen=True)
class Name:
    """A name next to a panel."""

    text: str
    look: Look
    end: float | None = None  # the y value where its curve ends; None: it has no fixed place

    @property
    def lines(self) -> list[str]:
        """The name in lines that fit."""
        return wrap(self.text)

    @property
    def height(self) -> float:
        """The height of the lines in points, with the gap to the next name."""
        return FONT * SPACING * len(self.lines) + GAP


def wrap(name: str, width: int = WIDTH) -> list[str]:
    """Return a name in lines of at most ``width`` characters, broken after commas and brackets if possible.

    A very long one loses its middle.
    """
    name = " ".join(name.split())
    if len(name) > LONGEST:
        name = f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"
    lines = [""]
    for piece in re.findall(r"[^,(\s]*[,(\s]?", name):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            at = 1 + max(lines[-1].rfind(mark, width // 3, width) for mark in "=/:-") or width
            lines[-1:] = [lines[-1][:at], lines[-1][at:]]
    return [line.strip() for line in lines if line.strip()] or [name]


def spread(places: Sequence[float], heights: Sequence[float], room: float) -> np.ndarray:
    """Return positions of boxes that do not overlap, each as near to its place as possible, from low to high.

    It minimises the sum of squared moves: places minus the heights of the boxes below must be ascending, which is an
    isotonic regression, solved by pooling neighbours.

    Args:
        places: The preferred centres of the boxes, ascending, (N,).
        heights: Heights of the boxes, (N,).
        room: Boxes lie in [0, room] if they fit into it.
    """
    sizes = np.asarray(heights, float)
    below = np.cumsum(sizes) - sizes / 2  # centres of a stack that starts at 0
    pools: list[tuple[float, int]] = []  # mean and size
    for value in np.asarray(places, float) - below:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    shifts = np.concatenate([np.full(size, mean) for mean, size in pools])
    return below + np.clip(shifts, 0, max(0.0, room - sizes.sum()))


def names_width(names: Sequence[Name]) -> float:
    """Return the width of names next to a panel, in inches."""
    widths = [TextPath((0, 0), plain(line), size=FONT).get_extents().width for name in names for line in name.lines]
    return (LEADER + SWATCH + PAD + max(widths, default=0.0) + 4) / 72


def names_height(names: Sequence[Name]) -> float:
    """Return the height of names stacked on top of each other, in inches."""
    return sum(name.height for name in names) / 72


def draw_names(panel: Axes, names: Sequence[Name], height: float) -> None:
    """Write names to the right of a panel, each at the end of its curve; those without an end from top to bottom.

    Args:
        panel: A panel with final limits.
        names: The names, in any order if they have ends, else from top to bottom.
        height: Height of the panel, in inches.
    """
    points = 72 * height
    low, high = panel.get_ylim()
    if any(name.end is None for name in names):
        ordered, ends = list(names)[::-1], [points] * len(names)
    else:
        ordered = sorted(names, key=lambda name: name.end or 0.0)
        ends = [points * ((name.end or 0.0) - low) / (high - low) for name in ordered]
    width = 72 * panel.get_window_extent().width / panel.figure.dpi
    middles = spread(ends, [name.height for name in ordered], points)
    for name, end, middle in zip(ordered, ends, middles, strict=True):
        start, stop = 1 + LEADER / width, 1 + (LEADER + SWATCH) / width
        if name.end is not None:
            _line(panel, [1 + 2 / width, start - 2 / width], [end / points, middle / points], name.look.color, 0.6)
        _line(panel, [start, stop], [middle / points] * 2, name.look.color, 1.8, linestyle=name.look.linestyle)
        panel.text(
            stop + PAD / width, middle / points, plain("\n".join(name.lines)), transform=panel.transAxes, fontsize=FONT,
            va="center", ha="left", linespacing=SPACING,
        )  # fmt: skip


def name_points(panel: Axes, names: Sequence[tuple[str, float, float, float, float, str]]) -> None:
    """Write a name next to each point of a panel with final limits, where it covers least of what is drawn.

    Args:
        panel: The panel.
        names: Name, x, y, the lower and upper end of the point's interval, and the color.
    """
    panel.figure.draw_without_rendering()  # type: ignore[union-attr]  # fixes the layout
    taken = []
    for _, x, y, low, high, _ in names:
        (left, bottom), (right, top), point = panel.transData.transform([(x, low), (x, high), (x, y)])
        taken += [Bbox([[left - 2, bottom], [right + 2, top]]), Bbox([point - 7, point + 7])]
    for text, x, y, _, _, color in names:
        best, fewest = AROUND[0], len(taken) + 1
        for place in AROUND:
            label = _label(panel, text, x, y, place, color)
            n_covered = label.get_window_extent().count_overlaps(taken)
            label.remove()
            if n_covered < fewest:
                best, fewest = place, n_covered
        taken.append(_label(panel, text, x, y, best, color).get_window_extent())


def _label(panel: Axes, text: str, x: float, y: float, place: tuple[float, float], color: str) -> Annotation:
    side = "left" if place[0] > 0 else "right"
    return panel.annotate(
        plain(text), (x, y), place, textcoords="offset points", ha=side, fontsize=FONT - 2, color=color
    )


def _line(panel: Axes, x: list[float], y: list[float], color: str, width: float, **given: object) -> None:
    panel.add_line(
        Line2D(x, y, transform=panel.transAxes, color=color, linewidth=width, clip_on=False, **given)  # type: ignore[arg-type]
    )
