"""Draws Matplotlib figures of records: regret curves and distributions over tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gents_gym.checks import InputError, check_choice, check_type
from gents_gym.drawing.board import Board
from gents_gym.drawing.canvas import Picture, dress, plain
from gents_gym.drawing.names import Name
from gents_gym.drawing.style import Look, looks
from gents_gym.evaluation.measures import Records, main_measure, measures, totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.words import count

NOTES = {
    "oracle": "oracle regret: realised, against the fitted policy; can be negative",
    "expected": "expected regret: true means, against the fitted policy; can be negative",
    "best": "best regret: true means, against the best action",
    "reward": "reward",
}
Looks = Mapping[str, Look]
Paint = Callable[..., None]  # panel, record and measure, color and linestyle


def noun(measure: str) -> str:
    """Return the name of a measure for use in a sentence."""
    return measure if measure == "reward" else f"{measure} regret"


def regret_figure(
    records: Records,
    title: str,
    regrets: Sequence[str] = (),
    styles: Looks | None = None,
) -> Picture:
    """Return curves of cumulative regrets, means over tasks with ±1 s.e., each named at its end.

    Args:
        records: The records by agent.
        title: The title, to which the number of tasks is added.
        regrets: A panel for each of these, or ("all",); empty: the one that matters most.
        styles: The agents' styles, by name; None: those of a figure of these agents.
    """
    wanted = choose_measures(records, regrets)
    styles = styles or agent_looks(records)
    entries = [
        replace(entry, end=float(totals(record, wanted[-1]).mean()))
        for entry, record in zip(_entries(records, styles), records.values(), strict=True)
    ]
    board = Board(len(wanted), entries, _title(title, records), [NOTES[name] for name in wanted])
    _paint(board, records, wanted, styles, plot_curve)
    return board.finish("decision", f"cumulative {_common(wanted)}, mean ± 1 s.e.", entries)


def distribution_figure(
    records: Records,
    title: str,
    regrets: Sequence[str] = (),
    styles: Looks | None = None,
) -> Picture:
    """Return the share of tasks whose regret is at most x; names follow the order of the curves, from left to right.

    Arguments as in :func:`regret_figure`.
    """
    wanted = choose_measures(records, regrets)
    styles = styles or agent_looks(records)
    ordered = sorted(records, key=lambda agent: float(np.median(totals(records[agent], wanted[-1]))))
    entries = _entries({agent: records[agent] for agent in ordered}, styles)
    board = Board(len(wanted), entries, _title(title, records), [NOTES[name] for name in wanted])

    def steps(panel: Axes, record: Rollout, measure: str, **style: Any) -> None:
        panel.ecdf(totals(record, measure), linewidth=1.6, **style)

    _paint(board, records, wanted, styles, steps)
    return board.finish(f"{_common(wanted)} of a task", "share of tasks", entries)


def agent_looks(records: Records) -> dict[str, Look]:
    """Return the styles of agents in a figure of these agents."""
    return looks({agent: record.privileged for agent, record in records.items()})


def choose_measures(records: Records, regrets: str | Sequence[str] = ()) -> tuple[str, ...]:
    """Return the measures to draw. Raises if there is nothing to draw or a regret is not known."""
    if not records:
        raise InputError("records must hold an agent that has played all its tasks, got none: nothing to draw")
    known = measures(records)
    regrets = (regrets,) if isinstance(regrets, str) else regrets
    if "all" in regrets:
        return tuple(name for name in known if name != "reward") or known
    return tuple(dict.fromkeys(check_choice("regret", name, known) for name in regrets)) or (main_measure(records),)


def plot_curve(panel: Axes, record: Rollout, measure: str, **style: Any) -> None:
    """Draw the mean over tasks of the cumulative measure at each step, with a band of ±1 s.e."""
    mean, error = record.curve(measure)
    steps = np.arange(1, len(mean) + 1)
    (line,) = panel.plot(steps, mean, linewidth=1.6, **style)
    panel.fill_between(steps, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)


def plot_record(record: Rollout, ax: Axes | None, measure: str | None, label: str | None) -> Axes:
    """Draw a record's curve into ``ax``, or into a new pyplot figure; see :meth:`Rollout.plot`."""
    (measure,) = choose_measures({"": record}, () if measure is None else (measure,))
    if ax is None:
        from matplotlib import pyplot  # pyplot chooses a window system, so import it only on request

        ax = pyplot.subplots(figsize=(6.4, 4))[1]
        dress(ax)
    plot_curve(check_type("ax", ax, Axes), record, measure, **({} if label is None else {"label": plain(label)}))
    ax.set_xlabel("decision")
    ax.set_ylabel(f"cumulative {noun(measure)}, mean ± 1 s.e.")
    if label is not None:
        ax.legend(frameon=False)
    return ax


def _entries(records: Records, styles: Looks) -> list[Name]:
    privileged = {agent: " (privileged)" if record.privileged else "" for agent, record in records.items()}
    return [Name(agent + privileged[agent], styles[agent]) for agent in records]


def _title(title: str, records: Records) -> str:
    n_tasks = len(next(iter(records.values())).actions)
    return f"{title}, {count(n_tasks, 'task')}"


def _paint(board: Board, records: Records, wanted: Sequence[str], styles: Looks, paint: Paint) -> None:
    for panel, measure in zip(board.panels, wanted, strict=True):
        for agent, record in records.items():
            paint(panel, record, measure, **styles[agent].style)


def _common(wanted: Sequence[str]) -> str:
    """Return the label of an axis that all panels share."""
    return noun(wanted[0]) if len(wanted) == 1 else "regret"
