"""Draws docs/idea.png: a table with seen and missing cells, its completion, the policy fitted to it, and the action.

    python docs/draw_idea.py

The numbers are those of a small task: outcomes are drawn, a few are seen, the others are drawn again, and the policy is
fitted by gents_gym.
"""

import io
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image
from scipy.special import expit

import gents_gym
from gents_gym.drawing.canvas import FONT, MUTED, Picture, canvas, dress
from gents_gym.drawing.style import DASHES, PALETTE

ROWS, NOW = 9, 5  # decisions of the task, and those that were made
COLORS = (PALETTE[0], PALETTE[1], PALETTE[2])
SLOPES, INTERCEPTS = np.array([2.0, -2.0, 0.3]), np.array([0.0, 0.0, 0.4])
SEEN, IMPUTED = "#CFE3F3", "#FFFFFF"


def draw_task() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts (T,), a completed table of outcomes (T, A), and which cells were seen (T, A)."""
    rng = np.random.default_rng(2)
    contexts = rng.uniform(-2, 2, ROWS).round(1)
    outcomes = (rng.random((ROWS, 3)) < expit(contexts[:, None] * SLOPES + INTERCEPTS)).astype(float)
    seen = np.zeros((ROWS, 3), bool)
    seen[np.arange(NOW), [0, 1, 2, 0, 1]] = True
    return contexts, outcomes, seen


def draw_table(panel: Axes, contexts: np.ndarray, outcomes: np.ndarray, seen: np.ndarray, complete: bool) -> None:
    """Draw the table: seen cells filled, missing ones open, imputed ones hatched."""
    for row, column in np.ndindex(outcomes.shape):
        known = seen[row, column]
        hatch = "//////" if complete and not known else None
        style = {"facecolor": SEEN if known else IMPUTED, "edgecolor": "#C9CED4", "hatch": hatch, "linewidth": 0.8}
        panel.add_patch(Rectangle((column, row), 0.94, 0.9, **style))
        if known or complete:
            box = {} if known else {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.2}}
            look = {"weight": "bold"} if known else {"style": "italic", "color": "#333333"}
            panel.text(
                column + 0.47, row + 0.46, f"{outcomes[row, column]:.0f}", ha="center", va="center", **look, **box
            )
        else:
            panel.text(column + 0.47, row + 0.46, "?", ha="center", va="center", color="#9AA1A9")
    for column, color in enumerate(COLORS):
        panel.text(column + 0.47, -0.35, f"action {column + 1}", ha="center", color=color, fontsize=FONT - 1)
    for row, context in enumerate(contexts):
        here = {"weight": "bold"} if row == NOW else {"color": MUTED}
        known = row <= NOW or complete
        panel.text(-0.15, row + 0.46, f"x = {context:+.1f}" if known else "x = ?", ha="right", va="center", **here)
    panel.add_patch(Rectangle((-1.28, NOW - 0.03), 4.26, 0.96, fill=False, edgecolor="black", linewidth=1.2))
    panel.text(3.08, NOW + 0.46, "now", va="center", weight="bold")
    panel.set(xlim=(-1.35, 3.6), ylim=(ROWS + 0.1, -0.75))
    panel.axis("off")


def draw_policy(panel: Axes, contexts: np.ndarray, outcomes: np.ndarray) -> None:
    """Draw the policy that is fitted to the completed table, and the action that it plays now."""
    policy = gents_gym.make_policy("logistic").fit(
        contexts[None, :, None].astype(np.float32), outcomes[None].astype(np.float32)
    )
    places = np.linspace(-2, 2, 81)
    scores = np.stack([policy.scores(np.full((1, 1), x, np.float32))[0] for x in places])  # (P, A)
    now = policy.scores(np.full((1, 1), contexts[NOW], np.float32))[0]
    best = int(now.argmax())
    for column, color in enumerate(COLORS):
        style = (0, DASHES[column]) if DASHES[column] else "-"
        panel.plot(places, scores[:, column], color=color, linewidth=2, linestyle=style)
        end = scores[-1, column]
        panel.text(2.06, end, f"action {column + 1}", color=color, va="center", fontsize=FONT - 1)
    panel.axvline(contexts[NOW], color="black", linewidth=1)
    panel.plot(contexts[NOW], now[best], "o", color=COLORS[best], markersize=10, markeredgecolor="black")
    panel.annotate(
        f"play action {best + 1}", (contexts[NOW], now[best]), (-1.9, 1.04), weight="bold", va="center",
        arrowprops={"arrowstyle": "-", "linewidth": 0.8},
    )  # fmt: skip
    panel.text(contexts[NOW] - 0.06, 0.03, f"now: x = {contexts[NOW]:+.1f}", fontsize=FONT - 1, ha="right")
    panel.set(xlim=(-2, 2), ylim=(0, 1.12), xlabel="context x", ylabel="predicted reward", yticks=[0, 0.5, 1])
    dress(panel)


def draw() -> Picture:
    """Return the picture."""
    contexts, outcomes, seen = draw_task()
    figure, panels = canvas(3, (11, 3.6), dpi=110)
    figure.set_layout_engine("none")
    places = ([0.005, 0.02, 0.29, 0.84], [0.345, 0.02, 0.29, 0.84], [0.735, 0.15, 0.2, 0.68])
    for panel, place in zip(panels, places, strict=True):
        panel.set_position(place)
    draw_table(panels[0], contexts, outcomes, seen, complete=False)
    draw_table(panels[1], contexts, outcomes, seen, complete=True)
    draw_policy(panels[2], contexts, outcomes)
    titles = (
        (0.005, "The table of outcomes", "one cell is seen at each decision; the others are missing"),
        (0.345, "1. Complete it", "draw the missing cells from the generative model"),
        (0.695, "2. Fit a policy, 3. play its action", "as if the completed table were the truth"),
    )
    for x, title, note in titles:
        figure.text(x, 0.955, title, weight="bold", fontsize=FONT + 2, va="center")
        figure.text(x, 0.895, note, color=MUTED, fontsize=FONT - 1, va="center")
    for x in (0.312, 0.65):
        figure.add_artist(
            FancyArrowPatch(
                (x, 0.45), (x + 0.028, 0.45), transform=figure.transFigure, mutation_scale=16, color="#333333"
            )
        )
    return figure


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("idea.png")
    image = (
        Image.open(io.BytesIO(draw()._repr_png_())).convert("RGB").quantize(200, dither=Image.Dither.NONE)
    )  # few colors: a small file
    image.save(out, optimize=True)
