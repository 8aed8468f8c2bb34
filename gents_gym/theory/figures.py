"""Draws the bounds next to what they bound."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.style import PALETTE
from gents_gym.theory.bounds import penalty
from gents_gym.theory.estimates import Estimate
from gents_gym.theory.histories import EXACT
from gents_gym.theory.measures import Bin, Measures
from gents_gym.theory.study import Point

FEWEST = 10  # least number of actions in a bin of Proposition 1 to be drawn


def _colors(names: Iterable[str]) -> dict[str, str]:
    """Return a color for each model, and gray for p*."""
    models = [name for name in names if name != EXACT]
    return {EXACT: "gray", **dict(zip(models, cycle(PALETTE), strict=False))}


def _canvas(n_panels: int) -> tuple[Figure, list[Axes]]:
    return canvas(n_panels, (4.3 * n_panels, 3.9))


def _band(panel: Axes, x: Sequence[float], values: Sequence[Estimate], label: str, color: str) -> None:
    means, errors = np.reshape(values, (-1, 2)).T
    panel.errorbar(x, means, 1.96 * errors, marker="o", markersize=3, linewidth=1.2, color=color, label=label)


def draw_bounds(sweeps: Mapping[str, Sequence[Point]], own: Point, found: Measures | None) -> bytes:
    """Return a PNG of bounds and measured regret per period against T, A and the loss gap.

    Args:
        sweeps: Points by the name of what varies: "horizon" and "n_actions".
        own: The environment's own point, at which models are measured.
        found: The measurements; if None or without models, there is no panel of loss gaps.
    """
    several = {name: points for name, points in sweeps.items() if len(points) > 1}
    with_models = found is not None and bool(found.regret)
    figure, panels = _canvas(max(1, len(several) + with_models))
    for panel, (name, points) in zip(panels, several.items(), strict=False):
        label = {"horizon": "horizon T", "n_actions": "actions A"}[name]
        x = [getattr(point, name) for point in points]
        panel.plot(x, [point.linear for point in points], "--", color=PALETTE[1], label="bound for linear policies")
        panel.plot(x, [point.perfect for point in points], "-o", color=PALETTE[0], label="Theorem 1")
        if played := [point for point in points if point.regret is not None]:
            x = [getattr(point, name) for point in played]
            panel.plot(x, [point.random or 0 for point in played], ":", color="gray", label="random play")
            _band(panel, x, [point.regret for point in played if point.regret], "TS-Gen on p*, measured", PALETTE[2])
        panel.set(xscale="log", yscale="log")
        panel.set_xticks([getattr(point, name) for point in points], [str(getattr(point, name)) for point in points])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.axhline(1, color="black", linewidth=0.8)
        finish(panel, label, "regret per period", f"against {label}")
    if found is not None and with_models:
        _draw_gaps(panels[-1], own, found)
    return to_bytes(figure)


def _draw_gaps(panel: Axes, own: Point, found: Measures) -> None:
    """Draw Theorem 2 and the regret of TS-Gen on each model against the model's loss gap."""
    for name, regret in found.regret.items():
        gap, color = max(found.gaps[name][-1].mean, 0), _colors(found.regret)[name]
        panel.plot(gap, own.perfect + penalty(gap), "s", color=color, label=f"{name}: Theorem 2")
        panel.errorbar(gap, regret.mean, 1.96 * regret.error, marker="o", color=color, label=f"{name}: measured")
    panel.axhline(1, color="black", linewidth=0.8)
    panel.set(xscale="symlog", yscale="log", xlim=(-0.3, 1000))
    finish(panel, "ℓ(p_θ) - ℓ(p*), nats per task", "regret per period", "against the loss gap")


def draw_measures(found: Measures, n_actions: int) -> bytes:
    """Return a PNG of the divergence of actions, the information ratio and the growth of the loss gap."""
    figure, panels = _canvas(4)
    colors = _colors(found.divergence)
    for name, values in found.divergence.items():
        label = "two sets of p*'s draws" if name == EXACT else name
        for panel, part in zip(panels, zip(*values, strict=True), strict=False):
            _band(panel, found.steps, part, label, colors[name])
    if clear := {step: ratio for step, ratio in zip(found.steps, found.information.ratio, strict=True) if ratio}:
        _band(panels[2], list(clear), list(clear.values()), "measured", PALETTE[0])
    panels[2].axhline(n_actions / 2, color="black", linewidth=0.8, label="A/2")
    for name, gaps in found.gaps.items():
        _band(panels[3], found.prefixes, gaps, name, colors[name])
    labels = [
        ("KL(p* ‖ p_θ) of actions", "decision", "nats"),
        ("total variation of actions", "decision", ""),
        ("information ratio", "decision", "E[Δ²] / E[I]"),
        ("loss gap of a task", "horizon T", "nats, outcomes given contexts"),
    ]
    for panel, texts in zip(panels, labels, strict=True):
        panel.set(xscale="log", yscale="log")
        title, x, y = texts
        finish(panel, x, y, title)
    panels[3].set_yscale("symlog", linthresh=1)
    return to_bytes(figure)


def draw_matching(found: Mapping[str, Sequence[Bin]]) -> bytes:
    """Return a PNG of Proposition 1: how often the oracle plays an action against TS-Gen's probability of it."""
    figure, (panel,) = _canvas(1)
    panel.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    for name, bins in found.items():
        told = "p*" if name == EXACT else name
        many = [one for one in bins if one.count >= FEWEST]
        _band(panel, [one.predicted for one in many], [one.observed for one in many], told, _colors(found)[name])
    panel.set_ylim(-0.03, 1.03)
    finish(panel, "P(A_t = a | H_t) of TS-Gen", "how often π*(X_t; τ) = a", "Proposition 1")
    return to_bytes(figure)
