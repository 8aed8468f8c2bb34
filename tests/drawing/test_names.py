import numpy as np
import pytest
from matplotlib.text import Text
from scipy.optimize import LinearConstraint, minimize

from gents_gym.drawing.board import Board
from gents_gym.drawing.canvas import canvas
from gents_gym.drawing.names import Name, name_points, spread, wrap
from gents_gym.drawing.style import Look

LOOK = Look("#0072B2", ())


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("linucb", ["linucb"]),
        ("ts-gen(model=synthetic-filter, policy=least-squares, samples=2)",
         ["ts-gen(model=synthetic-filter,", "policy=least-squares, samples=2)"]),
        ("x" * 40, ["x" * 36, "x" * 4]),
        ("a\nb  c", ["a b c"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_names_are_wrapped(name, lines):
    assert wrap(name) == lines


def test_very_long_names_lose_their_middle():
    lines = wrap("a" * 300 + "b" * 300)
    assert "".join(lines) == "a" * 50 + "…" + "b" * 49


def test_boxes_are_as_near_to_their_places_as_can_be():
    """Against a general solver."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        places, heights = np.sort(rng.uniform(0, 100, 6)), rng.uniform(5, 15, 6)
        found = spread(places, heights, 100)
        apart = (heights[1:] + heights[:-1]) / 2
        rules = [LinearConstraint(np.diff(np.eye(6), axis=0), apart)]
        bounds = [(h / 2 if i == 0 else None, 100 - h / 2 if i == 5 else None) for i, h in enumerate(heights)]
        best = minimize(
            lambda p, at=places: ((p - at) ** 2).sum(), np.cumsum(heights), constraints=rules, bounds=bounds
        )
        assert ((found - places) ** 2).sum() == pytest.approx(best.fun, abs=0.05)
        assert (np.diff(found) >= apart - 1e-9).all()


def test_boxes_that_do_not_fit_still_do_not_overlap():
    assert spread([5, 5, 5], [10, 10, 10], 12).tolist() == [5, 15, 25]


def overlap(one, other):
    return one.y0 < other.y1 and other.y0 < one.y1 and one.x0 < other.x1 and other.x0 < one.x1


@pytest.mark.parametrize("ends", [[1.0] * 12, [None] * 12, list(range(12))])
def test_names_do_not_overlap_and_lie_inside_the_figure(ends):
    long = "ts-gen(model=synthetic-filter-{}, policy=logistic, m=1)"
    names = [Name(long.format(i), LOOK, end) for i, end in enumerate(ends)]
    board = Board(1, names, "a title " * 30, ["a note"])
    board.panels[0].plot([1, 2], [0, 11])
    figure = board.finish("x", "y", names)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if "ts-gen" in text.get_text()]
    boxes = [text.get_window_extent(renderer) for text in texts]
    assert len(boxes) == 12
    assert not any(overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])
    whole = figure.get_window_extent(renderer)
    panel = board.panels[0]
    labels = (panel.xaxis.label, panel.yaxis.label, *panel.get_xticklabels()[1:-1], *panel.get_yticklabels()[1:-1])
    every = [text.get_window_extent(renderer) for text in (*texts, *figure.texts, *labels)]
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in every)


def test_names_of_points_cover_neither_each_other_nor_points():
    figure, (panel,) = canvas(1, (6, 4))
    points = [(f"name {i}", x, y, y - 1, y + 1, "k") for i, (x, y) in enumerate([(1, 1), (1.05, 1.1), (1, 5), (3, 5)])]
    panel.set_xlim(0, 4)
    panel.set_ylim(0, 6)
    name_points(panel, points)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.texts]
    assert [text.get_text() for text in panel.texts] == [name for name, *_ in points]
    assert not any(box.count_overlaps(boxes[:i]) for i, box in enumerate(boxes))
    assert not any(box.contains(*panel.transData.transform((x, y))) for box in boxes for _, x, y, *_ in points)
