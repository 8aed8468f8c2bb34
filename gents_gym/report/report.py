"""The report of an evaluation: its folder in, one page that is read offline, tables and figures out."""

import hashlib
import html
import json
import math
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError
from gents_gym.evaluation.grid import FORMAT, slug
from gents_gym.evaluation.rollout import pad
from gents_gym.evaluation.sealed import json_bytes, read_json
from gents_gym.evaluation.store import Evaluation, load_results
from gents_gym.files import check_target, is_part, read_file, remove_parts, write_whole
from gents_gym.report.analysis import (
    CONFIDENCE,
    Records,
    curve,
    distribution,
    measures,
    poor_yardstick,
    summary_rows,
)
from gents_gym.report.comparison import Difference, compare_all
from gents_gym.report.figures import TITLES, draw_distribution, draw_regret, looks
from gents_gym.report.tables import to_csv, to_markdown

LISTING = "files.json"  # the sha256 of each file that the report may replace
POINTS = 200  # of a curve on the page: more cannot be seen, and the page stays small


def write_report(out: str | Path, to: str | Path | None = None) -> Path:
    """Write the report of an evaluation, and return its page.

    Args:
        out: The folder of an evaluation.
        to: A new or empty folder, or one with an earlier report; None: ``report`` in that of the evaluation.
    """
    found = load_results(out)
    if not found.records:
        raise InputError(f"out must hold an agent that has played all its tasks, got '{out}' with none")
    own = Path(out) / "report"
    if to is None and own.is_symlink():
        raise InputError(f"'{own}' must be a folder, got a link: remove it, or name a folder by --to")
    to = check_target("to", own if to is None else to)
    if Path(out).resolve() in (to.resolve(), *to.resolve().parents) and to.resolve() != own.resolve():
        raise InputError(f"to must be '{own}' or lie outside the evaluation's folder, got '{to}'")
    _write_files(to, report_files(found))
    return to / "report.html"


def report_files(found: Evaluation) -> dict[str, bytes]:
    """Return the files of a report by name."""
    rows = [row for env, records in found.records.items() for row in summary_rows(env, records)]
    files = {
        "report.html": page(found),
        "table.csv": to_csv(rows),
        "table.md": "\n".join(to_markdown(env, records) for env, records in found.records.items()),
        "comparisons.csv": to_csv(_comparison_rows(found)),
    }
    data = {name: text.encode() for name, text in files.items()}
    for i, (env, records) in enumerate(found.records.items()):
        suffix = "" if len(found.records) == 1 else f"-{i}-{slug(env)}"
        for form in ("png", "svg"):
            data[f"regret{suffix}.{form}"] = draw_regret(records, env, form)
            data[f"distribution{suffix}.{form}"] = draw_distribution(records, env, form)
    return data


def _comparison_rows(found: Evaluation) -> list[dict[str, Any]]:
    return [
        {"env": env, **vars(difference), "verdict": difference.verdict, "words": str(difference)}
        for env, records in found.records.items()
        for measure in measures(records)
        for difference in compare_all(records, measure).values()
    ]


def _write_files(to: Path, files: dict[str, bytes]) -> None:
    """Write all files, or raise, with nothing touched, where one would take the place of what is not a report's."""
    new = {hashlib.sha256(data).hexdigest() for data in files.values()}
    try:
        to.mkdir(exist_ok=True, parents=True)
        ours = set(read_json(to / LISTING, {"written": [str]})["written"]) if (to / LISTING).exists() else set()
        for path in sorted(path for path in to.iterdir() if path.name != LISTING and not is_part(path)):
            if not path.is_file() or hashlib.sha256(read_file(path)).hexdigest() not in ours:
                raise InputError(f"'{path}' is damaged or not of a report: move it away, and start again")
        # Old and new are both listed while files change, so that a report that is killed can be written again.
        remove_parts(to)
        _write_listing(to, ours | new)
        for path in to.iterdir():
            if path.name not in (*files, LISTING):
                path.unlink()
        for name, data in files.items():
            write_whole(to / name, data)
        _write_listing(to, new)
    except OSError as error:
        raise InputError(f"'{to}' cannot be written ({error.strerror or error})") from error


def _write_listing(to: Path, hashes: set[str]) -> None:
    write_whole(to / LISTING, json_bytes({"format": FORMAT, "written": sorted(hashes)}))


# -- the page


def page(found: Evaluation) -> str:
    """Return the whole page, with style, script and data in it."""
    folder = resources.files("gents_gym.report") / "page"
    # JSON needs no "<", so that no name in it can end the script it stands in.
    data = json.dumps(_plain(page_data(found)), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(f"Evaluation: {', '.join(found.records)}"),
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "script": (folder / "report.js").read_text(encoding="utf-8"),
        "data": data,
    }
    template = (folder / "report.html").read_text(encoding="utf-8")
    return re.sub("@(title|style|script|data)@", lambda match: parts[match[1]], template)


def page_data(found: Evaluation) -> dict[str, Any]:
    """Return what the page shows, as JSON holds it; agents go by their number in the manifest."""
    numbers = {agent: i for i, agent in enumerate(found.manifest["agents"])}
    privileged = {agent: agent in found.manifest["privileged"] for agent in numbers}
    styles = looks(privileged)
    return {
        "agents": [{"name": agent, "privileged": privileged[agent], **vars(styles[agent])} for agent in numbers],
        "environments": [_environment(env, records, numbers) for env, records in found.records.items()],
        "notes": {name: _note(title) for name, title in TITLES.items()},
        "confidence": f"{100 * CONFIDENCE:g} %",
        "csv": to_csv([row for env, records in found.records.items() for row in summary_rows(env, records)]),
        "missing": sorted({f"{cell.agent} in {cell.env}" for cell in found.missing}),
        "manifest": found.manifest,
        "manifest_sha256": json.loads(json_bytes(found.manifest))["sha256"],
        "task_hashes": found.task_hashes,
    }


def _environment(env: str, records: Records, numbers: dict[str, int]) -> dict[str, Any]:
    steps = max(record.actions.shape[1] for record in records.values())
    records = {agent: pad(record, steps) for agent, record in records.items()}
    first = next(iter(records.values()))
    names = measures(records)

    def line(agent: str, measure: str) -> dict[str, Any]:
        _, mean, error = curve(records[agent], measure, POINTS)
        return {"y": mean, "se": error}

    def by_agent(measure: str, value: Callable[[str, str], Any]) -> dict[int, Any]:
        return {numbers[agent]: value(agent, measure) for agent in records}

    return {
        "name": env,
        "tasks": len(first.actions),
        "agents": [numbers[agent] for agent in records],
        "measures": names,
        "yardstick": poor_yardstick(records),
        "rows": [{"id": numbers[row["agent"]], **row} for row in summary_rows(env, records)],
        "steps": curve(first, names[0], POINTS)[0],
        "curves": {name: by_agent(name, line) for name in names},
        "shares": distribution(first, names[0], POINTS)[1],
        "totals": {name: by_agent(name, lambda a, m: distribution(records[a], m, POINTS)[0]) for name in names},
        "pairs": {name: _pairs(compare_all(records, name), records, numbers) for name in names},
    }


def _pairs(
    differences: dict[tuple[str, str], Difference], records: Records, numbers: dict[str, int]
) -> dict[int, dict[int, Any]]:
    """Return the differences by the numbers of agent and reference."""
    found: dict[int, dict[int, Any]] = {numbers[agent]: {} for agent in records}
    for (agent, reference), d in differences.items():
        shown = {"mean": d.mean, "low": d.low, "high": d.high, "share": d.share, "verdict": d.verdict, "text": str(d)}
        found[numbers[agent]][numbers[reference]] = shown
    return found


def _note(title: str) -> str:
    """Return the explanation in a figure's title as a sentence."""
    note = title.partition("\n")[2].strip("()")
    return note[:1].upper() + note[1:] + "." if note else ""


def _plain(value: Any) -> Any:
    """Return ``value`` as JSON knows it: five digits of each number, and null for NaN."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
