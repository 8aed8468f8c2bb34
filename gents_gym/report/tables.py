"""Writes tables as CSV or Markdown."""

import csv
import io
import math
import re
from collections.abc import Sequence

from gents_gym.evaluation.measures import Records, bad_tail, measures, poor_yardstick, remark_lines, tail_note
from gents_gym.evaluation.pictures import noun
from gents_gym.report.analysis import Row, summary_rows

NOTE = (
    "Totals per task: mean ± 1 s.e., median and quantiles of the bad tail over tasks. Oracle and expected regret can "
    "be negative."
)


def to_csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV, with a column for every key; a missing number is an empty cell."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
    return buffer.getvalue()


def to_markdown(env: str, records: Records, baseline: str | None = None) -> str:
    """Return the table of an environment as Markdown, one line per agent; with a baseline, also the lift over it."""
    n_tasks, names = len(next(iter(records.values())).actions), measures(records)
    tails = {name: {"median": "median", **bad_tail(name, n_tasks)} for name in names}
    heads = ["agent", "tasks"]
    for name in names:
        heads += [noun(name), *tails[name].values()]
    heads += ["reward / decision", *([f"lift over {escape(baseline)}"] if baseline else []), "ms / decision"]
    lines = [f"### {escape(env)}", "", _line(heads), _line(["---"] + ["---:"] * (len(heads) - 1))]
    for row in summary_rows(env, records, baseline):
        cells = [escape(row["agent"]) + (" (privileged)" if row["privileged"] else ""), str(row["tasks"])]
        for name in names:
            cells += [_mean(row, name), *(_number(row[f"{name}_{key}"]) for key in tails[name])]
        cells.append(_pair(row["reward_per_decision"], row["reward_per_decision_se"], 4))
        if baseline:
            cells.append(f"{_pair(100 * row['lift'], 100 * row['lift_se'], 1)} %")
        lines.append(_line([*cells, _number(row["ms_per_decision"], 4)]))
    warning, marks = poor_yardstick(records), [tail_note(name, n_tasks) for name in (names[0], "reward")]
    notes = [NOTE, *(f"{mark}." for mark in dict.fromkeys(marks) if mark)]
    notes += [f"Note: {escape(line)}." for line in remark_lines(records)]
    return "\n".join([*lines, "", *([f"**{escape(warning)}**", ""] if warning else []), " ".join(notes), ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Return ``text`` on one line, escaped so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>|~#&])", r"\\\1", " ".join(text.split()))


def _mean(row: Row, measure: str) -> str:
    return _pair(row[f"{measure}_mean"], row[f"{measure}_se"])


def _pair(mean: float, error: float, digits: int = 2) -> str:
    return f"{_number(mean, digits)} ± {_number(error, digits)}"


def _number(value: float, digits: int = 2) -> str:
    return "–" if _is_nan(value) else f"{value:.{digits}f}"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
