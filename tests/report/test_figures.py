import io
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from gents_gym import EvaluationConfig, Rollout, evaluate
from gents_gym.checks import InputError
from gents_gym.evaluation.pictures import regret_figure
from gents_gym.report.figures import draw_distribution, draw_regret, write_regret


def record(slope, privileged=False, regrets=("oracle", "expected", "best")):
    steps = np.full((4, 10), float(slope)) + np.arange(4)[:, None] * 0.1
    return Rollout(np.zeros((4, 10), int), steps, dict.fromkeys(regrets, steps), (0, 1, 2, 3), privileged)


def shape(data):
    return imread(io.BytesIO(data)).shape


ALL = ("oracle", "expected", "best")


def test_one_panel_for_the_regret_that_matters_and_others_on_request(monkeypatch):
    drawn = []
    plot = Axes.plot
    monkeypatch.setattr(Axes, "plot", lambda *a, **k: drawn.append(a[2]) or plot(*a, **k))
    two = {"a": record(1), "b": record(2, privileged=True)}
    one = shape(draw_regret(two, "env"))
    assert len(drawn) == 2
    three = shape(draw_regret(two, "env", regrets=("all",)))
    assert len(drawn) == 2 + 6
    assert three[1] > 1.5 * one[1]
    assert shape(draw_regret({"a": record(1, regrets=())}, "env"))[0] == one[0]
    with pytest.raises(InputError, match="unknown regret 'bst'; did you mean 'best'"):
        draw_regret(two, "env", regrets=("bst",))
    assert shape(draw_regret(two, "env", regrets="best")) == one
    assert shape(draw_regret(two, "env", regrets="all")) == three


def test_panels_share_their_axes():
    figure = regret_figure({"a": record(1), "b": record(9)}, "env", ("oracle", "best"))
    assert len({panel.get_ylim() for panel in figure.axes}) == len({panel.get_xlim() for panel in figure.axes}) == 1


def test_the_picture_shows_the_numbers():
    assert draw_regret({"a": record(1)}, "env") == draw_regret({"a": record(1)}, "env")
    assert draw_regret({"a": record(1)}, "env") != draw_regret({"a": record(1, privileged=True)}, "env")


def test_curves_and_bands_are_the_mean_and_one_standard_error(monkeypatch):
    lines, bands = [], []
    plot, fill = Axes.plot, Axes.fill_between
    monkeypatch.setattr(Axes, "plot", lambda *a, **k: lines.append(a[2]) or plot(*a, **k))
    monkeypatch.setattr(Axes, "fill_between", lambda *a, **k: bands.append(a[2:4]) or fill(*a, **k))
    draw_regret({"a": record(1)}, "env", regrets=ALL)
    mean, error = record(1).curve("oracle")
    assert len(lines) == len(bands) == 3
    for line, (low, high) in zip(lines, bands, strict=True):
        assert np.allclose(line, mean)
        assert np.allclose(low, mean - error)
        assert np.allclose(high, mean + error)
    assert mean[-1] > 0
    assert error[-1] > 0


def test_a_single_task_has_a_curve_and_no_band():
    one = record(1)
    alone = Rollout(one.actions[:1], one.rewards[:1], {k: v[:1] for k, v in one.regret.items()})
    assert shape(draw_regret({"a": alone}, "env"))[2] == 4


def test_distributions_are_drawn_for_each_regret(monkeypatch):
    drawn = []
    ecdf = Axes.ecdf
    monkeypatch.setattr(Axes, "ecdf", lambda *a, **k: drawn.append(a[1]) or ecdf(*a, **k))
    assert shape(draw_distribution({"a": record(1), "b": record(2)}, "env", regrets=ALL))[2] == 4
    assert len(drawn) == 6
    assert np.allclose(drawn[0], record(1).regret["oracle"].sum(axis=1))


@pytest.mark.parametrize("draw", [draw_regret, draw_distribution])
def test_vector_forms_are_whole_and_the_same_every_time(draw):
    data = draw({"a$b$ <&>": record(1)}, "$env <b>", "svg")
    assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    assert data == draw({"a$b$ <&>": record(1)}, "$env <b>", "svg")
    page = draw({"a$b$ <&>": record(1)}, "$env", "pdf")
    assert page.startswith(b"%PDF")
    assert page == draw({"a$b$ <&>": record(1)}, "$env", "pdf")


def test_other_forms_are_refused():
    with pytest.raises(InputError, match="unknown form 'pngg'; did you mean 'png'"):
        draw_regret({"a": record(1)}, "env", "pngg")


def test_every_name_is_at_its_curve_and_long_ones_are_cut():
    picture = draw_regret({"_hidden": record(1), "x" * 400: record(2)}, "env", "svg").decode()
    assert "hidden" in picture
    assert "x…x" in picture
    assert "x" * 36 in picture
    assert "x" * 37 not in picture


def test_an_evaluation_has_a_picture_per_environment(tmp_path):
    one, other = (f"gents_gym/Synthetic-v0(horizon={horizon})" for horizon in (3, 4))
    found = evaluate(EvaluationConfig(("random",), (one,), tasks=2), tmp_path, workers=1)
    (path,) = write_regret(tmp_path)
    assert path == tmp_path / "regret.png"
    assert path.read_bytes() == draw_regret(found.records[one], one)
    assert write_regret(tmp_path, ("all",), ["random"]) == (path,)
    assert path.read_bytes() == draw_regret(found.records[one], one, regrets=ALL)
    evaluate(EvaluationConfig(("random",), (one, other), tasks=2), tmp_path, workers=1)
    paths = write_regret(tmp_path)
    assert {*paths} == {*tmp_path.glob("regret-*.png")}
    assert len(paths) == 2
    assert not path.exists()
    evaluate(EvaluationConfig(("random",), (one, other), tasks=2), tmp_path, workers=1)  # they are welcome there
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(InputError, match="out must be the folder of an evaluation"):
        write_regret(tmp_path)
