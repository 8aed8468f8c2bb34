"""Draws an experiment's pictures, in the common style of figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.names import name_points
from gents_gym.drawing.style import PALETTE, model_looks
from gents_gym.evaluation.measures import Records, totals
from gents_gym.evaluation.rollout import summarize
from gents_gym.experiments.catalogue import RUNG, Experiment
from gents_gym.experiments.timing import Times
from gents_gym.report.comparison import mean_interval
from gents_gym.report.figures import draw_regret
from gents_gym.training.losses import Losses

Figures = dict[str, bytes]


class Gap(NamedTuple):
    """What sampling costs on a model."""

    above: float  # the model's loss above that of p*, nats per step
    mean: float  # TS-Gen's expected regret minus greedy's
    low: float  # its 95 % interval
    high: float


Gaps = Mapping[str, Gap]  # by model


@dataclass(frozen=True, eq=False)
class Found:
    """What an experiment found."""

    records: Mapping[str, Records]  # by title and agent; one title for each oracle
    losses: Losses | None  # losses of the experiment's models
    times: Mapping[str, Times]  # times of single decisions, by agent


def draw_figures(
    name: str,
    env: str,
    experiment: Experiment,
    found: Found,
    horizon: int,
    regrets: tuple[str, ...] = (),
    gaps: Mapping[str, Gaps] | None = None,
) -> Figures:
    """Return the experiment's pictures as PNG, by the file name that its page uses; ``gaps`` are by setting."""
    if experiment.timed:
        return {f"{name}.png": _draw_times({experiment.shorten(agent): each for agent, each in found.times.items()})}
    if len(found.records) > 1:
        regrets = regrets or ("oracle",)  # what the pictures differ in
    files = {
        file: draw_regret(
            {experiment.shorten(agent): record for agent, record in part.items()}, f"{env}, {title}", regrets=regrets
        )
        for file, (title, part) in regret_views(name, experiment, found.records).items()
    }
    first = next(iter(found.records.values()))
    if experiment.losses and found.losses is not None:
        files[f"{name}-loss.png"] = _draw_loss_and_regret(experiment, found.losses, first)
    if experiment.against:
        files[f"{name}-against.png"] = _draw_against(experiment, first, horizon)
    if gaps:
        files[f"{name}-gap.png"] = _draw_gaps(gaps)
    return files


def regret_views(name: str, experiment: Experiment, records: Mapping[str, Records]) -> dict[str, tuple[str, Records]]:
    """Return the figures of regret by file: a title, the records. There is one for each oracle and model's view."""
    found: list[tuple[str, Records]] = []
    for title, part in records.items():
        oracle = title.partition(",")[0]
        found += [
            (f"{oracle}, {Path(model).name}", {agent: part[agent] for agent in view})
            for model, view in experiment.views.items()
        ] or [(oracle, part)]
    return {f"{name}{'' if i == 0 else f'-{i + 1}'}.png": each for i, each in enumerate(found)}


def _draw_times(times: Mapping[str, Times]) -> bytes:
    """Return a PNG of the time per decision, with a bar for each agent, split into generation and fitting."""
    figure, (panel,) = canvas(1, (9, 1.4 + 0.7 * len(times)))
    parts = ("total", "generation", "fit")
    for i, part in enumerate(parts):
        found = {agent: getattr(each, part) for agent, each in times.items()}
        rows = [row for row, values in enumerate(found.values()) if values is not None]
        means = [1e3 * float(values.mean()) for values in found.values() if values is not None]
        bars = panel.barh([row + 0.27 * (i - 1) for row in rows], means, 0.25, label=part, color=PALETTE[i])
        panel.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
    panel.set_yticks(range(len(times)), list(times))
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.margins(x=0.12)
    finish(panel, "milliseconds per decision, one task at a time, on one core", "")
    return to_bytes(figure)


def _draw_loss_and_regret(experiment: Experiment, losses: Losses, records: Records) -> bytes:
    """Return a PNG: each model's loss by step on the left, TS-Gen's regret on it on the right, mean ± 1 s.e."""
    figure, (left, right) = canvas(2, (12, 4.6))
    edges = np.array([0, *losses.prefixes]) + 0.5
    looks = model_looks(experiment.losses)
    for model, agent in experiment.losses.items():
        color, style = looks[model].color, looks[model].linestyle
        steps = losses.by_step(model)  # (N, P)
        mean, error = steps.mean(axis=0), steps.std(axis=0, ddof=1) / np.sqrt(len(steps))
        left.stairs(mean, edges, baseline=None, color=color, linestyle=style, linewidth=1.5, label=Path(model).name)
        left.stairs(mean + error, edges, baseline=mean - error, fill=True, color=color, alpha=0.2)
        mean, error = records[agent].curve("oracle")
        at = np.arange(1, len(mean) + 1)
        right.plot(at, mean, color=color, linestyle=style, linewidth=1.5, label=Path(model).name)
        right.fill_between(at, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
    left.set_xscale("log")
    finish(left, "step", "loss of a step, not cumulative, in nats, mean ± 1 s.e.")
    finish(right, "decision", "cumulative oracle regret of TS-Gen, mean ± 1 s.e.")
    return to_bytes(figure)


def _draw_against(experiment: Experiment, records: Records, horizon: int) -> bytes:
    """Return a PNG of expected regret, mean ± 1 s.e., against what the experiment varies."""
    figure, (panel,) = canvas(1, (6.8, 4.8))
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for agent, (curve, x) in experiment.against.items():
        found = summarize(totals(records[agent], "expected"))
        curves.setdefault(curve, []).append((horizon if x is None else x, found["mean"], found["se"]))
    for (curve, points), look in zip(curves.items(), model_looks(curves).values(), strict=True):
        places, means, errors = zip(*sorted(points), strict=True)
        panel.errorbar(places, means, errors, label=experiment.shorten(curve), marker="o", capsize=3, **look.style)
    if max(x for points in curves.values() for x, _, _ in points) > 20:
        panel.set_xscale("log")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    finish(panel, experiment.axis, "expected regret at the end, mean ± 1 s.e.")
    return to_bytes(figure)


def paired_gaps(experiment: Experiment, found: Found) -> Gaps:
    """Return what sampling costs on each model: TS-Gen's expected regret minus greedy's, on the same tasks."""
    records, losses = next(iter(found.records.values())), found.losses
    assert losses is not None
    gaps = {}
    for model, (ours, greedy) in experiment.pairs.items():
        above = 0.0 if model == "exact" else losses.gap(model, "exact", losses.prefixes[-1])[0]
        difference = totals(records[ours], "expected") - totals(records[greedy], "expected")
        gaps[Path(model).name] = Gap(float(above), *(float(each) for each in mean_interval(difference)))
    return gaps


def _draw_gaps(settings: Mapping[str, Gaps]) -> bytes:
    """Return a PNG of TS-Gen's regret minus greedy's against the loss gap, with a named point per model."""
    figure, (panel,) = canvas(1, (9, 5.6))
    panel.axhline(0, color="gray", linewidth=0.8)
    names = []
    for (setting, gaps), color, marker in zip(settings.items(), PALETTE, "os^vDP", strict=False):
        above, mean, low, high = np.array([*gaps.values()]).T
        bars = [mean - low, high - mean]
        panel.errorbar(above, mean, bars, color=color, marker=marker, linestyle="", capsize=3, label=setting)
        for model, gap in gaps.items():
            name = "p*" if model == "exact" else model.removeprefix(f"{setting}-")
            names.append((name.replace(RUNG.removeprefix("-"), "+ "), *gap, color))
    panel.set_xscale("symlog", linthresh=1e-4)  # p* is at 0, and few actions may show a gap below 0
    panel.margins(x=0.12)
    finish(panel, "loss above p*, nats per step", "expected regret, TS-Gen − greedy, 95 % interval")
    name_points(panel, names)
    return to_bytes(figure)
