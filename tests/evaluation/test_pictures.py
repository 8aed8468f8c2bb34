"""Records as pictures in notebooks; what the figures show is tested in tests/report/test_figures.py."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gents_gym import InputError, Rollout
from gents_gym.evaluation.store import Evaluation


def record(slope, **given):
    steps = np.full((4, 10), float(slope)) + np.arange(4)[:, None] * 0.1
    return Rollout(np.zeros((4, 10), int), steps, dict.fromkeys(("oracle", "expected", "best"), steps), **given)


def results(records, agents=("a", "b")):
    return Evaluation({"agents": list(agents), "env": list(records), "tasks": 4, "privileged": []}, records, {})


def test_records_are_drawn_into_the_same_axes():
    axes = Figure().subplots()
    assert record(1).plot(ax=axes, label="one") is axes
    assert record(2).plot(axes, "reward", "_$two") is axes
    assert np.allclose(axes.lines[0].get_ydata(), record(1).curve("expected")[0])
    assert axes.lines[0].get_color() != axes.lines[1].get_color()
    assert len(axes.get_legend().get_texts()) == 2
    assert axes.get_ylabel() == "cumulative reward, mean ± 1 s.e."


def test_a_record_makes_a_figure_of_its_own(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot

    axes = record(1).plot()
    assert isinstance(axes, Axes)
    pyplot.close(axes.figure)


def test_results_are_drawn_with_a_name_at_each_curve():
    found = results({"env": {"a": record(1), "b": record(2)}})
    figure = found.plot()
    assert {text.get_text() for text in figure.axes[0].texts} == {"a", "b"}
    assert len(found.plot(("all",)).axes) == 3
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_colors_stay_if_some_agents_are_left_out():
    both = results({"env": {"x:A": record(1), "lints(prior=fitted)": record(2), "lints": record(3)}},
                   ["x:A", "lints(prior=fitted)", "lints"])  # fmt: skip
    whole, part = both.plot(), both.only(["lints(prior=fitted)"]).plot()
    assert part.axes[0].lines[0].get_color() == whole.axes[0].lines[1].get_color()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: results({}).plot(),
            "results must hold an agent that has played all its tasks to be plotted, got none",
        ),
        (
            lambda: results({"a": {"a": record(1)}, "b": {"a": record(1)}}).plot(),
            "env must name one of the environments",
        ),
        (lambda: results({"abc": {"a": record(1)}}).plot(env="abd"), "unknown env 'abd'; did you mean 'abc'"),
        (lambda: results({"a": {"a": record(1)}}).plot(("bst",)), "unknown regret 'bst'; did you mean 'best'"),
        (lambda: record(1).plot(measure="bst"), "unknown regret 'bst'; did you mean 'best'"),
        (lambda: record(1).plot(ax=3), "ax must be a Axes, got 3"),
    ],
)
def test_what_cannot_be_drawn(call, message):
    with pytest.raises(InputError, match=message):
        call()
