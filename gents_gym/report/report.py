"""Writes the report of an evaluation: one offline page, tables and figures."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gents_gym.checks import InputError
from gents_gym.drawing.canvas import METADATA
from gents_gym.evaluation.grid import FORMAT, slug
from gents_gym.evaluation.measures import (
    CONFIDENCE,
    Records,
    bad_tail,
    main_measure,
    measures,
    poor_yardstick,
    remark_lines,
    tail_note,
)
from gents_gym.evaluation.pictures import NOTES
from gents_gym.evaluation.rollout import pad
from gents_gym.evaluation.sealed import json_bytes, read_json
from gents_gym.evaluation.store import load_results
from gents_gym.files import check_target, is_part, read_file, remove_parts, write_whole
from gents_gym.report.analysis import Row, curve, distribution, lift, summary_rows
from gents_gym.report.comparison import Difference, compare_all
from gents_gym.report.figures import draw_distribution, draw_regret
from gents_gym.report.tables import escape, to_csv, to_markdown
from gents_gym.report.template import SHARED, fill_page
from gents_gym.report.wishes import Shown, Wishes, apply

LISTING = "files.json"  # the sha256 of each file that the report may replace
AS_IS = Wishes()
POINTS = 200  # most points of a curve on the page: more would not be visible, and the page stays small


def write_report(out: str | Path, to: str | Path | None = None, wishes: Wishes = AS_IS) -> Path:
    """Write the report of an evaluation, and return its page.

    Args:
        out: The folder of an evaluation.
        to: A new or empty folder, or one with an earlier report; None: ``report`` in that of the evaluation.
        wishes: Title, names, agents, baseline and regrets.
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
    _write_files(to, report_files(apply(found, wishes)))
    return to / "report.html"


def report_files(shown: Shown) -> dict[str, bytes]:
    """Return the files of a report by name."""
    tables = (to_markdown(env, records, shown.baseline(env)) for env, records in shown.records.items())
    head = f"# {escape(shown.wishes.title)}\n\n" if shown.wishes.title else ""
    files = {
        "report.html": page(shown),
        "table.csv": to_csv(_rows(shown)),
        "table.md": head + "\n".join(tables),
        "comparisons.csv": to_csv(_comparison_rows(shown)),
    }
    data = {name: text.encode() for name, text in files.items()}
    for i, (env, records) in enumerate(shown.records.items()):
        suffix = "" if len(shown.records) == 1 else f"-{i}-{slug(env)}"
        wanted = shown.title(env), shown.wishes.regrets, shown.looks
        for form in METADATA:
            data[f"regret{suffix}.{form}"] = draw_regret(records, wanted[0], form, *wanted[1:])
            data[f"distribution{suffix}.{form}"] = draw_distribution(records, wanted[0], form, *wanted[1:])
    return data


def _rows(shown: Shown) -> list[Row]:
    """Return the rows of all environments, with specs if agents have display names."""
    rows = [row for env, each in shown.records.items() for row in summary_rows(env, each, shown.baseline(env))]
    if all(name == spec for name, spec in shown.specs.items()):
        return rows
    return [{**row, "spec": shown.specs[row["agent"]]} for row in rows]


def _comparison_rows(shown: Shown) -> list[dict[str, Any]]:
    return [
        {"env": env, **_paired(difference), "verdict": difference.verdict, "words": str(difference)}
        for env, records in shown.records.items()
        for measure in measures(records)
        for difference in compare_all(records, measure).values()
    ]


def _paired(difference: Difference) -> dict[str, Any]:
    """Return the fields of a difference, task by task."""
    return {name: value for name, value in vars(difference).items() if name != "reference_tasks"}


def _write_files(to: Path, files: dict[str, bytes]) -> None:
    """Write all files; refuse, before writing, to overwrite files that the report did not make."""
    new = {hashlib.sha256(data).hexdigest() for data in files.values()}
    try:
        to.mkdir(exist_ok=True, parents=True)
        ours = set(read_json(to / LISTING, {"written": [str]})["written"]) if (to / LISTING).exists() else set()
        for path in sorted(path for path in to.iterdir() if path.name != LISTING and not is_part(path)):
            if not path.is_file() or hashlib.sha256(read_file(path)).hexdigest() not in ours:
                raise InputError(f"'{path}' is damaged or not of a report: move it away, and start again")
        # Old and new files are both listed while files change, so that a killed report can be written again.
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


def page(shown: Shown) -> str:
    """Return the whole page, with style, script and data in it."""
    title = shown.wishes.title or f"Evaluation: {', '.join(shown.records)}"
    return fill_page(SHARED, "report", title, page_data(shown))


def page_data(shown: Shown) -> dict[str, Any]:
    """Return the page's data as JSON values; agents are numbered in the order of the manifest."""
    found, numbers = shown.found, {name: i for i, name in enumerate(shown.specs)}
    return {
        "title": shown.wishes.title,
        "agents": [
            {
                "name": name,
                "spec": spec,
                "privileged": spec in found.manifest["privileged"],
                **vars(shown.looks[name]),
                "dark": shown.looks[name].lifted,
            }
            for name, spec in shown.specs.items()
        ],
        "environments": [
            _environment(env, records, numbers, shown.baseline(env)) for env, records in shown.records.items()
        ],
        "notes": {name: _note(text) for name, text in NOTES.items()},
        "confidence": f"{100 * CONFIDENCE:g} %",
        "csv": to_csv(_rows(shown)),
        "missing": sorted({f"{cell.agent} in {cell.env}" for cell in found.missing}),
        "manifest": found.manifest,
        "manifest_sha256": json.loads(json_bytes(found.manifest))["sha256"],
        "task_hashes": found.task_hashes,
    }


def _environment(env: str, records: Records, numbers: Mapping[str, int], baseline: str) -> dict[str, Any]:
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
        "main": main_measure(records),
        "yardstick": poor_yardstick(records),
        "remarks": remark_lines(records),
        "tails": {name: bad_tail(name, len(first.actions)) for name in names},
        "tail_notes": {name: tail_note(name, len(first.actions)) for name in names},
        "baseline": numbers[baseline],
        "lifts": {
            numbers[base]: {numbers[agent]: lift(record, records[base]) for agent, record in records.items()}
            for base in records
        },
        "rows": [{"id": numbers[row["agent"]], **row} for row in summary_rows(env, records)],
        "steps": curve(first, names[0], POINTS)[0],
        "curves": {name: by_agent(name, line) for name in names},
        "shares": distribution(first, names[0], POINTS)[1],
        "totals": {name: by_agent(name, lambda a, m: distribution(records[a], m, POINTS)[0]) for name in names},
        "pairs": {name: _pairs(compare_all(records, name), records, numbers) for name in names},
    }


def _pairs(
    differences: dict[tuple[str, str], Difference], records: Records, numbers: Mapping[str, int]
) -> dict[int, dict[int, Any]]:
    """Return the differences by the indices of agent and reference."""
    found: dict[int, dict[int, Any]] = {numbers[agent]: {} for agent in records}
    for (agent, reference), d in differences.items():
        shown = {"mean": d.mean, "low": d.low, "high": d.high, "share": d.share, "verdict": d.verdict, "text": str(d)}
        found[numbers[agent]][numbers[reference]] = shown
    return found


def _note(text: str) -> str:
    """Return the explanation of a measure as a sentence."""
    note = text.partition(": ")[2]
    return note[:1].upper() + note[1:] + "." if note else ""
