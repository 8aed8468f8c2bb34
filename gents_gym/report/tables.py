"""Tables as text: rows of an analysis in, CSV or Markdown out."""

import csv
import io
import math
import re
from collections.abc import Sequence

from gents_gym.report.analysis import Records, Row, measures, poor_yardstick, summary_rows

NOTE = "Totals per task: mean ± 1 s.e., median and quantiles over tasks. Oracle and expected regret can be negative."


def to_csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV, a column for every key of theirs; a number that there is not is an empty cell."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
    return buffer.getvalue()


def to_markdown(env: str, records: Records) -> str:
    """Return the table of an environment as Markdown, one line per agent."""
    *regrets, reward = measures(records)
    heads = ["agent", "tasks"]
    for name in regrets:
        heads += [f"{name} regret", "median", "90 %", "99 %"]
    heads += [reward, "ms per decision"]
    lines = [f"### {escape(env)}", "", _line(heads), _line(["---"] + ["---:"] * (len(heads) - 1))]
    for row in summary_rows(env, records):
        cells = [escape(row["agent"]) + (" (privileged)" if row["privileged"] else ""), str(row["tasks"])]
        for name in regrets:
            cells += [_mean(row, name), *(_number(row[f"{name}_{tail}"]) for tail in ("median", "q90", "q99"))]
        lines.append(_line([*cells, _mean(row, reward), _number(row["ms_per_decision"], 4)]))
    warning = poor_yardstick(records)
    return "\n".join([*lines, "", *([f"**{escape(warning)}**", ""] if warning else []), NOTE, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Return ``text`` in one line, such that Markdown shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|~#&])", r"\\\1", " ".join(text.split()))


def _mean(row: Row, measure: str) -> str:
    return f"{_number(row[f'{measure}_mean'])} ± {_number(row[f'{measure}_se'])}"


def _number(value: float, digits: int = 2) -> str:
    return "–" if _is_nan(value) else f"{value:.{digits}f}"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
