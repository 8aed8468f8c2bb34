"""Figures with panels of their own names; those with shared names are tested in test_names.py."""

import pytest
from matplotlib.text import Text

from gents_gym.drawing.board import Sheet
from gents_gym.drawing.names import Name
from gents_gym.drawing.style import Look


def inside(box, whole):
    return whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1


@pytest.mark.parametrize("n_panels", [1, 3])
def test_every_panel_has_its_names_and_nothing_overlaps(n_panels):
    names = [[Name(f"agent-{p}-{i}", Look("#0072B2", ()), 1.0) for i in range(11)] for p in range(n_panels)]
    sheet = Sheet(names, [f"title {p}" for p in range(n_panels)], "a note")
    for panel in sheet.panels:
        panel.plot([0, 1], [0, 2])
        panel.set_xlabel("x")
        panel.set_ylabel("y")
    figure = sheet.finish()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if text.get_text().startswith(("agent", "title", "a note"))]
    boxes = [text.get_window_extent(renderer) for text in texts]
    boxes += [part.get_window_extent(renderer) for panel in sheet.panels for part in (panel, panel.xaxis.label)]
    assert len(boxes) == n_panels * (11 + 1 + 2) + 1
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    assert all(inside(box, figure.get_window_extent(renderer)) for box in boxes)
