"""Figures: rollouts in, PNG bytes out."""

import io
from collections.abc import Mapping

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gents_gym.evaluation.regret import REGRETS
from gents_gym.evaluation.rollout import Rollout

SOFTWARE = "gents_gym"  # a PNG of ours says so
TITLES = {
    "oracle": "oracle regret\n(realised, against the fitted policy; can be negative)",
    "expected": "expected regret\n(true means, against the fitted policy; can be negative)",
    "best": "best regret\n(true means, against the best action)",
    "reward": "reward",
}


def draw_regret(rollouts: Mapping[str, Rollout], title: str) -> bytes:
    """Return a PNG of the cumulative regrets' means over tasks with bands of ±1 s.e.; rewards where there are none."""
    names = [name for name in REGRETS if all(name in record.regret for record in rollouts.values())] or ["reward"]
    figure = Figure(figsize=(1 + 4.6 * len(names), 5.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        for label, record in rollouts.items():
            mean, error = record.curve(name)
            steps = np.arange(1, len(mean) + 1)
            look = {"linestyle": "--", "color": "black"} if record.privileged else {"linestyle": "-"}
            suffix = " (privileged)" if record.privileged else ""
            (line,) = panel.plot(steps, mean, label=label + suffix, linewidth=1.6, **look)
            panel.fill_between(steps, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
        panel.set_title(TITLES[name], fontsize=10)
        panel.set_xlabel("decision")
        panel.set_ylabel(f"cumulative {'reward' if name == 'reward' else 'regret'}, mean ± 1 s.e.")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    n_tasks = len(next(iter(rollouts.values())).actions)
    figure.suptitle(f"{title}, {n_tasks} tasks")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": SOFTWARE})
    return buffer.getvalue()
