"""Turns records into pandas data frames, and into the short tables that notebooks show."""

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gents_gym.checks import need
from gents_gym.evaluation.measures import remark_lines
from gents_gym.evaluation.rollout import Rollout
from gents_gym.words import count

if TYPE_CHECKING:
    import pandas as pd


def record_frame(record: Rollout, steps: bool = False) -> "pd.DataFrame":
    """Return a data frame of a record; see :meth:`Rollout.to_pandas`."""
    pandas = need("pandas", "to_pandas", extra="notebook")
    tasks = np.asarray(record.indices or range(len(record.actions)))
    values = {"reward": record.rewards, **{f"regret_{name}": found for name, found in record.regret.items()}}
    if not steps:
        return pandas.DataFrame({"task": tasks, **{name: np.nansum(found, axis=1) for name, found in values.items()}})
    if record.propensities is not None:
        values["propensity"] = record.propensities
    played = record.actions >= 0  # (B, T)
    rows, columns = np.nonzero(played)
    return pandas.DataFrame(
        {
            "task": tasks[rows],
            "step": columns + 1,
            "action": record.actions[played],
            **{name: found[played] for name, found in values.items()},
        }
    )


def records_frame(records: Mapping[str, Mapping[str, Rollout]], steps: bool = False) -> "pd.DataFrame":
    """Return one data frame of all records, by environment and agent; see :meth:`Evaluation.to_pandas`."""
    pandas = need("pandas", "to_pandas", extra="notebook")
    frames = []
    for env, agents in records.items():
        for agent, record in agents.items():
            frame = record_frame(record, steps)
            for place, (name, value) in enumerate((("env", env), ("agent", agent), ("privileged", record.privileged))):
                frame.insert(place, name, value)
            frames.append(frame)
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


def table_html(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Return a small HTML table, with notes below it; all texts are escaped."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    head, body = line("th", heads), "".join(line("td", row) for row in rows)
    table = f"<table><caption>{html.escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"
    return table + "".join(f"<p>Note: {html.escape(note)}.</p>" for note in notes)


def summary_html(caption: str, records: Mapping[str, Rollout]) -> str:
    """Return a table of the totals per task, mean ± s.e., a row for each agent."""
    measures = list(dict.fromkeys(name for record in records.values() for name in ("reward", *record.regret)))
    heads = ["agent", *(name if name == "reward" else f"{name} regret" for name in measures)]
    rows = [[_name(agent, record), *_means(record, measures)] for agent, record in records.items()]
    return table_html(caption, heads, rows, remark_lines(records))


def _name(agent: str, record: Rollout) -> str:
    return f"{agent} (privileged)" if record.privileged else agent


def _means(record: Rollout, measures: Sequence[str]) -> list[str]:
    found = record.summary()
    return [_mean(found[measure]) if measure in found else "–" for measure in measures]


def record_html(record: Rollout) -> str:
    """Return a table of a record's totals per task, a row for each measure."""
    n_tasks, steps = record.actions.shape
    heads = ["measure", "mean ± s.e.", "median", "10 %", "90 %"]
    rows = [
        [name, _mean(found), *(f"{found[key]:.2f}" for key in ("median", "q10", "q90"))]
        for name, found in record.summary().items()
    ]
    caption = f"{count(n_tasks, 'task')} of {count(steps, 'decision')}: totals per task"
    return table_html(caption, heads, rows, record.remarks)


def _mean(found: Mapping[str, float]) -> str:
    error = "" if np.isnan(found["se"]) else f" ± {found['se']:.2f}"
    return f"{found['mean']:.2f}{error}"
