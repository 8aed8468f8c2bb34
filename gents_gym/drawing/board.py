"""Lays out figures of curves with names at their ends: panels that share axes and names, or panels with their own."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gents_gym.drawing.canvas import FONT, MUTED, Picture, dress, plain
from gents_gym.drawing.names import Name, draw_names, names_height, names_width, wrap

LARGE, SMALL = 5.6, 3.7  # width in inches of a single panel, and of each of several
LEAST = 3.7  # height of a panel in inches
LEFT, GAP, BOTTOM, EDGE, LINE = 0.75, 0.22, 0.55, 0.12, 0.19  # inches; the last is the height of a line of text


class Board:
    """A figure with panels that share both axes, and names next to the last panel."""

    def __init__(self, n_panels: int, names: Sequence[Name], title: str, notes: Sequence[str]) -> None:
        """Make the figure.

        Args:
            n_panels: The number of panels.
            names: The names that will be written, to reserve space.
            title: The title above the figure.
            notes: A line above each panel.
        """
        each = LARGE if n_panels == 1 else SMALL
        self.height = max(LEAST, names_height(names))
        width = LEFT + n_panels * each + (n_panels - 1) * GAP + names_width(names) + EDGE
        heading, notes = (
            wrap(title, int(12 * (width - LEFT - EDGE))),
            [plain("\n".join(wrap(n, int(13 * each)))) for n in notes],
        )
        above = LINE * (1.2 * len(heading) + max(note.count("\n") + 1 for note in notes)) + EDGE
        full = BOTTOM + self.height + above + EDGE
        self.figure = Picture(figsize=(width, full), dpi=130)
        FigureCanvasAgg(self.figure)
        self.panels: list[Axes] = []
        for i, note in enumerate(notes):
            place = ((LEFT + i * (each + GAP)) / width, BOTTOM / full, each / width, self.height / full)
            first = self.panels[0] if i else None
            panel = self.figure.add_axes(place, sharex=first, sharey=first)
            panel.set_title(note, fontsize=FONT, color=MUTED, loc="left")
            panel.tick_params(labelsize=FONT, labelleft=not i)
            dress(panel)
            self.panels.append(panel)
        self.figure.text(
            LEFT / width, 1 - EDGE / full, plain("\n".join(heading)), fontsize=FONT + 2, va="top", ha="left"
        )

    def finish(self, x: str, y: str, names: Sequence[Name]) -> Picture:
        """Label the axes, write the names, and return the figure."""
        self.panels[0].set_ylabel(y, fontsize=FONT)
        for panel in self.panels:
            panel.set_xlabel(x, fontsize=FONT)
            panel.margins(x=0)
        draw_names(self.panels[-1], names, self.height)
        return self.figure


class Sheet:
    """A figure with panels in rows of two, each with its own axes, a title, and names next to it."""

    def __init__(self, names: Sequence[Sequence[Name]], titles: Sequence[str], note: str) -> None:
        """Make the figure.

        Args:
            names: The names next to each panel, each at the end of its curve.
            titles: The title of each panel.
            note: A line below all panels.
        """
        self.names = names
        self.height = max(LEAST, *(names_height(own) for own in names))
        columns = min(2, len(names))
        parts = [LEFT + SMALL + max(map(names_width, names[i::columns])) + EDGE for i in range(columns)]
        row = EDGE + 1.5 * LINE + self.height + BOTTOM
        width, full = sum(parts), -(-len(names) // columns) * row + 2 * LINE
        self.figure = Picture(figsize=(width, full), dpi=130)
        FigureCanvasAgg(self.figure)
        self.panels: list[Axes] = []
        for i, title in enumerate(titles):
            left, bottom = LEFT + sum(parts[: i % columns]), full - (i // columns + 1) * row + BOTTOM
            panel = self.figure.add_axes((left / width, bottom / full, SMALL / width, self.height / full))
            panel.set_title(plain(title), fontsize=FONT + 1, loc="left")
            panel.tick_params(labelsize=FONT)
            dress(panel)
            self.panels.append(panel)
        self.figure.text(LEFT / width, LINE / 2 / full, plain(note), fontsize=FONT, color=MUTED)

    def finish(self) -> Picture:
        """Write the names next to panels that are drawn, and return the figure."""
        for panel, own in zip(self.panels, self.names, strict=True):
            draw_names(panel, own, self.height)
        return self.figure
