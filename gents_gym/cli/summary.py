"""Formats the table of an evaluation for a terminal."""

from collections.abc import Mapping

from rich import box
from rich.markup import escape
from rich.table import Table

from gents_gym.evaluation.measures import bad_tail, main_measure, poor_yardstick, tail_note
from gents_gym.evaluation.rollout import Rollout
from gents_gym.words import count


def summary_table(env: str, records: Mapping[str, Rollout]) -> Table:
    """Return the table of totals per task in an environment, one row per agent."""
    summaries = {spec: record.summary() for spec, record in records.items()}
    measures = list(next(iter(summaries.values())))
    if warning := poor_yardstick(records):
        measures.sort(key=("reward", "best").__contains__, reverse=True)
    tail_of, n_tasks = main_measure(records), len(next(iter(records.values())).actions)
    tail = {"median": "median", **bad_tail(tail_of, n_tasks)}
    title = f"{env}, {count(n_tasks, 'task')}: reward and cumulative regret per task, mean ± s.e."
    table = Table(box=box.SIMPLE_HEAD, title=escape(title), title_justify="left", caption_justify="left")
    table.add_column("agent", no_wrap=True)
    for name in (*measures, *(f"{tail_of}\n{head}" for head in tail.values()), "µs per\ndecision"):
        table.add_column(name, justify="right", no_wrap=True)
    for spec, summary in summaries.items():
        name = escape(f"{spec} *" if records[spec].privileged else spec)
        means = [f"{summary[m]['mean']:.1f} ± {summary[m]['se']:.1f}" for m in measures]
        quantiles = [f"{summary[tail_of][statistic]:.1f}" for statistic in tail]
        table.add_row(name, *means, *quantiles, f"{1e6 * records[spec].seconds_per_decision:.1f}")
    notes = ["* privileged: uses hidden information"] if any(r.privileged for r in records.values()) else []
    if warning:
        notes.append(escape(warning.rstrip(".")))
    if note := tail_note(tail_of, n_tasks):
        notes.append(note)
    if len(measures) > 1:
        notes.append("oracle and expected regret can be negative")
    notes.append("time is the agent's own, while other work may run on the same machine")
    table.caption = "; ".join(notes)
    return table
