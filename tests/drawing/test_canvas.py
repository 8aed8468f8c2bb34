import io
import runpy
from pathlib import Path

import pytest
from matplotlib.image import imread

from gents_gym.checks import InputError
from gents_gym.drawing.canvas import METADATA, canvas, filled_canvas, finish, plain, to_bytes


def test_a_figure_in_every_form():
    figure, panels = canvas(2, (4, 3), rows=2)
    assert len(panels) == 4
    panels[0].plot([1, 2], label="a")
    for panel in panels:
        finish(panel, "x", "y", "title")
    assert [panel.get_legend() is not None for panel in panels] == [True, False, False, False]
    assert imread(io.BytesIO(figure._repr_png_())).shape == (360, 480, 4)
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for form in METADATA:
        assert to_bytes(figure, form).startswith(heads[form])
        assert b"gents_gym" in to_bytes(figure, form)
    with pytest.raises(InputError, match="unknown form 'pgn'; did you mean 'png'"):
        to_bytes(figure, "pgn")


@pytest.mark.parametrize(("n_panels", "rows"), [(1, [1]), (4, [2, 2]), (7, [3, 2, 2]), (11, [3, 3, 3, 2])])
def test_all_rows_are_filled(n_panels, rows):
    figure, panels = filled_canvas(n_panels, 3, (2, 1), 0.5)
    assert figure.get_size_inches().tolist() == [2 * rows[0], len(rows) + 0.5]
    assert [len(strip.axes) for strip in figure.subfigs] == rows
    assert panels == [panel for strip in figure.subfigs for panel in strip.axes]
    assert len(panels) == n_panels


def test_text_is_shown_as_it_is():
    assert plain("a$b$") == r"a\$b\$"
    assert plain("_a").endswith("_a")
    assert not plain("_a").startswith("_")


def test_the_picture_of_the_idea_is_drawn_by_its_script():
    top = Path(__file__).parent.parent.parent
    figure = runpy.run_path(str(top / "docs" / "draw_idea.py"))["draw"]()
    texts = {text.get_text() for panel in figure.axes for text in panel.texts}
    assert {"?", "0", "1", "now"} <= texts
    assert any(text.startswith("play action") for text in texts)
    assert (top / "docs" / "idea.png").stat().st_size < 100_000
