"""Pictures of one task: its potential-outcomes table with the played cells filled in, as text or RGB."""

import numpy as np

from gents_gym.types import Tasks

ROWS = 16  # decisions shown: the latest ones and the one to come
SHOWN_CONTEXTS = 6  # context entries shown


def write_table(tasks: Tasks, actions: np.ndarray) -> str:
    """Return the table of a batch of one as text.

    Args:
        tasks: The task, B=1.
        actions: The actions played so far, (t,).
    """
    lines = [_title(tasks, actions), _row("t", "X_t", [f"Y({a})" for a in range(tasks.n_actions)], tasks)]
    for t in _window(tasks, actions):
        lines.append(_row(str(t + 1), _context(tasks, t), _cells(tasks, actions, t), tasks))
    return "\n".join(lines) + "\n"


def draw_table(tasks: Tasks, actions: np.ndarray) -> np.ndarray:
    """Return the table of a batch of one as an RGB array, (H, W, 3) uint8; arguments as in :func:`write_table`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # heavy, and most environments draw nothing
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    shown = _window(tasks, actions)
    figure = Figure(figsize=(3.2 + 0.55 * tasks.n_actions, 1.0 + 0.3 * ROWS), dpi=80)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 0.9))
    axes.axis("off")
    figure.suptitle(_title(tasks, actions), fontsize=11, y=0.97)
    widths = [0.06, 0.32] + [0.6 / tasks.n_actions] * tasks.n_actions
    height = (len(shown) + 1) / (ROWS + 1)
    table = axes.table(
        cellText=[[str(t + 1), _context(tasks, t), *_cells(tasks, actions, t)] for t in shown],
        colLabels=["t", "$X_t$", *(f"$Y^{{({a})}}$" for a in range(tasks.n_actions))],
        colWidths=widths,
        cellLoc="center",
        bbox=Bbox.from_bounds(0.01, 1 - height, 0.98, height),
    )
    table.auto_set_font_size(False)
    for (row, column), cell in table.get_celld().items():
        cell.set_fontsize(8)
        cell.set_edgecolor("#b8bec6")
        cell.set_facecolor(_colour(tasks, actions, shown, row, column))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _window(tasks: Tasks, actions: np.ndarray) -> range:
    """Return the decisions to show, the one to come last, if there is one."""
    end = min(len(actions) + 1, tasks.horizon)
    return range(max(0, end - ROWS), end)


def _title(tasks: Tasks, actions: np.ndarray) -> str:
    progress = f"decision {min(len(actions) + 1, tasks.horizon)} of {tasks.horizon}"
    if len(actions) == tasks.horizon:
        progress = f"ended after {tasks.horizon} decisions"
    if tasks.means is None:
        return progress
    means = tasks.means[0, : len(actions)]  # (t, A)
    regret = (means.max(axis=1) - means[np.arange(len(actions)), actions]).sum()
    return f"{progress}, best regret so far {regret:.2f}"


def _context(tasks: Tasks, t: int) -> str:
    context = tasks.contexts[0, t]
    dots = " …" if len(context) > SHOWN_CONTEXTS else ""
    return " ".join(f"{value:5.1f}" for value in context[:SHOWN_CONTEXTS]) + dots


def _cells(tasks: Tasks, actions: np.ndarray, t: int) -> list[str]:
    """Return the row's cells: the played action's outcome, "?" for the others, blanks for a row to come."""
    if t >= len(actions):
        return [""] * tasks.n_actions
    return [f"{tasks.outcomes[0, t, a]:.3g}" if a == actions[t] else "?" for a in range(tasks.n_actions)]


def _row(time: str, context: str, cells: list[str], tasks: Tasks) -> str:
    width = 6 * min(tasks.context_dim, SHOWN_CONTEXTS) + 2
    return f"{time:>5} | {context:<{width}}|" + "".join(f"{cell:>6}" for cell in cells)


def _colour(tasks: Tasks, actions: np.ndarray, shown: range, row: int, column: int) -> str:
    if row == 0:
        return "#e8ebef"
    t, action = shown[row - 1], column - 2
    if t >= len(actions):
        return "#fff4d1"  # the decision to come
    if action >= 0 and action == actions[t]:
        return "#9bd3a5" if tasks.rewards[0, t, action] >= 0.5 else "#f0a9a0"
    return "#ffffff"
