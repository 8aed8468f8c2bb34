import io
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from gents_gym import EvaluationConfig, Rollout, evaluate
from gents_gym.checks import InputError
from gents_gym.report.figures import draw_distribution, draw_regret, looks, write_regret


def record(slope, privileged=False, regrets=("oracle", "expected", "best")):
    steps = np.full((4, 10), float(slope)) + np.arange(4)[:, None] * 0.1
    return Rollout(np.zeros((4, 10), int), steps, dict.fromkeys(regrets, steps), (0, 1, 2, 3), privileged)


def shape(data):
    return imread(io.BytesIO(data)).shape


def test_a_panel_per_regret_and_one_of_rewards_without_tables():
    three = shape(draw_regret({"a": record(1), "b": record(2, privileged=True)}, "env"))
    one = shape(draw_regret({"a": record(1, regrets=())}, "env"))
    assert three[1] > 2 * one[1]


def test_the_picture_shows_the_numbers():
    assert draw_regret({"a": record(1)}, "env") == draw_regret({"a": record(1)}, "env")
    assert draw_regret({"a": record(1)}, "env") != draw_regret({"a": record(1, privileged=True)}, "env")


def test_curves_and_bands_are_the_mean_and_one_standard_error(monkeypatch):
    lines, bands = [], []
    plot, fill = Axes.plot, Axes.fill_between
    monkeypatch.setattr(Axes, "plot", lambda *a, **k: lines.append(a[2]) or plot(*a, **k))
    monkeypatch.setattr(Axes, "fill_between", lambda *a, **k: bands.append(a[2:4]) or fill(*a, **k))
    draw_regret({"a": record(1)}, "env")
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
    assert shape(draw_distribution({"a": record(1), "b": record(2)}, "env"))[2] == 4
    assert len(drawn) == 6
    assert np.allclose(drawn[0], record(1).regret["oracle"].sum(axis=1))


@pytest.mark.parametrize("draw", [draw_regret, draw_distribution])
def test_svg_is_xml_and_the_same_every_time(draw):
    data = draw({"a$b$ <&>": record(1)}, "$env", "svg")
    assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    assert data == draw({"a$b$ <&>": record(1)}, "$env", "svg")


def test_other_forms_are_refused():
    with pytest.raises(InputError, match="unknown form 'pngg'; did you mean 'png'"):
        draw_regret({"a": record(1)}, "env", "pngg")


def test_agents_look_different_from_each_other():
    privileged = {str(i): i % 6 == 0 for i in range(18)}
    found = looks(privileged)
    assert len(set(found.values())) == 18
    assert {agent for agent, look in found.items() if look.color == "#000000"} == {
        a for a, p in privileged.items() if p
    }


def test_every_name_is_in_the_legend_and_long_ones_are_cut():
    picture = draw_regret({"_hidden": record(1), "x" * 400: record(2)}, "env", "svg").decode()
    assert "hidden" in picture
    assert "x" * 30 + "…" + "x" * 30 in picture
    assert "x" * 100 not in picture


def test_an_evaluation_has_a_picture_per_environment(tmp_path):
    one, other = (f"gents_gym/Synthetic-v0(horizon={horizon})" for horizon in (3, 4))
    found = evaluate(EvaluationConfig(("random",), (one,), tasks=2), tmp_path, workers=1)
    (path,) = write_regret(tmp_path)
    assert path == tmp_path / "regret.png"
    assert path.read_bytes() == draw_regret(found.records[one], one)
    evaluate(EvaluationConfig(("random",), (one, other), tasks=2), tmp_path, workers=1)
    paths = write_regret(tmp_path)
    assert {*paths} == {*tmp_path.glob("regret-*.png")}
    assert len(paths) == 2
    assert not path.exists()
    evaluate(EvaluationConfig(("random",), (one, other), tasks=2), tmp_path, workers=1)  # they are welcome there
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(InputError, match="out must be the folder of an evaluation"):
        write_regret(tmp_path)
