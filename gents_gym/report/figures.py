"""Figures: rollouts in, PNG or SVG bytes out, and an evaluation's pictures in its folder."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gents_gym.checks import check_choice
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.sealed import SOFTWARE
from gents_gym.evaluation.store import figure_name, load_results, write_made
from gents_gym.report.analysis import measures

METADATA = {"png": {"Software": SOFTWARE}, "svg": {"Creator": SOFTWARE, "Date": None}}
TITLES = {
    "oracle": "oracle regret\n(realised, against the fitted policy; can be negative)",
    "expected": "expected regret\n(true means, against the fitted policy; can be negative)",
    "best": "best regret\n(true means, against the best action)",
    "reward": "reward",
}
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito's, for all eyes
LONGEST = 70  # characters of a name
DASHES = ((), (6, 1.5, 1.5, 1.5), (1.5, 1.5))  # another for each round through the palette
PRIVILEGED_DASHES = ((4, 2), (8, 2), (2, 2))


@dataclass(frozen=True)
class Look:
    """How an agent's lines are drawn, in figures and on the page."""

    color: str
    dash: tuple[float, ...]  # lengths on and off, in line widths; () is solid


def looks(privileged: Mapping[str, bool]) -> dict[str, Look]:
    """Return a look for each agent: black and dashed for privileged ones, the palette for the others."""
    plain, black = count(), count()

    def look(knows: bool) -> Look:
        if knows:
            return Look("#000000", PRIVILEGED_DASHES[next(black) % len(PRIVILEGED_DASHES)])
        turn, place = divmod(next(plain), len(PALETTE))
        return Look(PALETTE[place], DASHES[turn % len(DASHES)])

    return {agent: look(knows) for agent, knows in privileged.items()}


def write_regret(out: str | Path) -> tuple[Path, ...]:
    """Draw the regrets of an evaluation into its folder, a PNG per environment, and return their paths."""
    found = load_results(out)
    paths = {env: Path(out) / figure_name(env, found.manifest) for env in found.records}
    for env, path in paths.items():
        write_made(path, draw_regret(found.records[env], env))
    return tuple(paths.values())


def draw_regret(rollouts: Mapping[str, Rollout], title: str, form: str = "png") -> bytes:
    """Return a picture of the cumulative regrets' means over tasks with ±1 s.e.; of rewards where there are none.

    Args:
        rollouts: What happened, by agent.
        title: What stands above, with the number of tasks.
        form: "png" or "svg".
    """

    def paint(panel: Axes, name: str, record: Rollout, label: str, look: Look) -> None:
        mean, error = record.curve(name)
        steps = np.arange(1, len(mean) + 1)
        panel.plot(steps, mean, label=label, color=look.color, linewidth=1.6, linestyle=_linestyle(look))
        panel.fill_between(steps, mean - error, mean + error, color=look.color, alpha=0.2, linewidth=0)

    return _draw(rollouts, title, form, paint, "decision", "cumulative {}, mean ± 1 s.e.")


def draw_distribution(rollouts: Mapping[str, Rollout], title: str, form: str = "png") -> bytes:
    """Return a picture of the share of tasks whose regret is at most x; of rewards where there are no regrets."""

    def paint(panel: Axes, name: str, record: Rollout, label: str, look: Look) -> None:
        totals = record.cumulative(name)[:, -1]
        panel.ecdf(totals, label=label, color=look.color, linewidth=1.6, linestyle=_linestyle(look))

    return _draw(rollouts, title, form, paint, "cumulative regret of a task", "share of tasks")


def _linestyle(look: Look) -> str | tuple[float, tuple[float, ...]]:
    return (0, look.dash) if look.dash else "-"


def _draw(
    rollouts: Mapping[str, Rollout],
    title: str,
    form: str,
    paint: Callable[[Axes, str, Rollout, str, Look], None],
    x_label: str,
    y_label: str,
) -> bytes:
    """Return a picture with a panel per regret, in which ``paint`` draws each agent."""
    check_choice("form", form, METADATA)
    names = [name for name in measures(rollouts) if name != "reward"] or ["reward"]
    figure = Figure(figsize=(1 + 4.6 * len(names), 5.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    styles = looks({agent: record.privileged for agent, record in rollouts.items()})
    for panel, name in zip(panels, names, strict=True):
        for agent, record in rollouts.items():
            label = agent + (" (privileged)" if record.privileged else "")
            paint(panel, name, record, _plain(_short(label)), styles[agent])
        kind = "reward" if name == "reward" else "regret"
        panel.set_title(TITLES[name], fontsize=10)
        panel.set_xlabel(x_label.replace("regret", kind))
        panel.set_ylabel(y_label.format(kind))
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    n_tasks = len(next(iter(rollouts.values())).actions)
    figure.suptitle(_plain(f"{title}, {n_tasks} tasks"))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_columns(labels), frameon=False)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": SOFTWARE}):  # the same ids in every SVG of the same numbers
        figure.savefig(buffer, format=form, metadata=METADATA[form])
    return buffer.getvalue()


def _columns(labels: list[str]) -> int:
    """Return how many columns of the legend fit side by side."""
    longest = max(len(label) for label in labels)
    return max(1, min(4, len(labels), 150 // (longest + 6)))


def _plain(text: str) -> str:
    """Return ``text`` such that Matplotlib shows it as it is: not as a formula, and not hidden for its "_"."""
    return ("\u2009" if text.startswith("_") else "") + text.replace("$", r"\$")


def _short(name: str) -> str:
    """Return a name without its middle where it is too long for a legend."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"
