"""The page of an inspection: one file that is read offline and stepped through."""

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError
from gents_gym.drawing.style import OTHERS, PALETTE, mix
from gents_gym.files import check_target, read_file, write_whole
from gents_gym.inspection.record import TAIL, Inspection, Step
from gents_gym.report.template import fill_page

GENERATOR = "gents_gym inspect"
MARK = f'<meta name="generator" content="{GENERATOR}">'.encode()  # by which a page of ours is known
# Apart from each other on a map, for the ten actions of our settings; more than these begin again.
COLORS = (*PALETTE, "#6F4BA8", "#8A4B2A", "#6B7480", "#9DB61E", *OTHERS)
DIGITS = 4  # decimals of the numbers on the page


def check_page(out: str | Path) -> Path:
    """Check that ``out`` is an inspection's page, or new in a folder that exists; return it as a path."""
    path = check_target("out", out)
    if not path.parent.is_dir():
        raise InputError(f"out must lie in a folder that exists, got '{path}'")
    if path.exists() and MARK not in read_file(path)[:1000]:
        raise InputError(f"out must be a new file or an inspection's page, got '{path}', which is another file")
    return path


def write_page(found: Inspection, out: str | Path) -> Path:
    """Write the page, whole or not at all; a file that is not an inspection's page is never replaced."""
    return write_whole(check_page(out), page(found).encode())


def page(found: Inspection) -> str:
    """Return the whole page, with style, script and data in it."""
    title = f"{found.agent} in {found.env}, task {found.task}"
    folder = resources.files("gents_gym.inspection") / "template"
    return fill_page(folder, "inspect", title, page_data(found), GENERATOR)


def page_data(found: Inspection) -> dict[str, Any]:
    """Return what the page shows, as JSON holds it."""
    n_steps, info = len(found.actions), found.info
    colors = [COLORS[a % len(COLORS)] for a in range(info.n_actions)]
    data = {
        "env": found.env,
        "agent": found.agent,
        "privileged": found.privileged,
        "model": found.model,
        "remarks": found.remarks,
        "policy": found.policy,
        "label": found.label,
        "seed": found.seed,
        "task": found.task,
        "horizon": found.tasks.horizon,
        "likelihood": str(info.likelihood),
        "coverage": f"{100 * (1 - 2 * TAIL):g} %",
        "names": None if info.texts is None else list(info.texts[0]),
        "colors": [{"light": color, "dark": mix(color, "#FFFFFF", 0.25)} for color in colors],
        "contexts": _short(found.tasks.contexts[0, :n_steps], 2),
        "actions": found.actions,
        "outcomes": _short(found.outcomes),
        "rewards": _short(found.rewards),
        "dims": found.dims,
        "axes": None if found.axes is None else _short(found.axes, 2),
        "steps": [_step(found, step, t) for t, step in enumerate(found.steps)],
    }
    if found.truth:
        means = found.tasks.means
        data["truth"] = {
            "outcomes": _short(found.tasks.outcomes[0, :n_steps]),
            "means": None if means is None else _short(means[0, :n_steps]),
        }
    return data


def _step(found: Inspection, step: Step, t: int) -> dict[str, Any]:
    reason, ahead = step.reason, t + 1 - step.first
    return {
        "first": step.first,
        "ahead": _short(step.contexts[ahead:], 2),  # the rows up to now are those of the task
        "draws": _short(step.draws.reshape(len(step.draws), -1), 2),
        "own": None if step.own is None else _short(step.own.ravel(), 2),
        "expected": _short(step.expected),
        "interval": None if step.interval is None else _short(step.interval),
        "scores": None if reason.scores is None else _short(reason.scores),
        "predictions": None if reason.predictions is None else _short(reason.predictions),
        "policy": reason.policy,
        "best": step.best,
        "text": step.text,
    }


def _short(values: np.ndarray, digits: int = DIGITS) -> Any:
    """Return few digits of each number, and whole numbers without a point; NaN stays."""
    rounded = np.round(np.asarray(values, np.float64), digits)
    known = rounded[~np.isnan(rounded)]
    whole = bool((known == np.round(known)).all())
    if whole and len(known) == rounded.size:
        return rounded.astype(np.int64)
    if whole:
        return [None if np.isnan(value) else int(value) for value in rounded.ravel()]
    return rounded
