"""The commands that play: evaluate, report, reproduce."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import OmitArgPrefixes, Positional

from gents_gym.commands.console import print_wide, progress_bar
from gents_gym.evaluation.grid import EvaluationConfig, cells
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.rollout import Rollout


@dataclass(frozen=True)
class Evaluate:
    """Play agents on the same tasks; print a table, and write results and a regret plot to a folder."""

    config: OmitArgPrefixes[EvaluationConfig]
    out: Path
    """Folder for the results: new or empty, or that of the same run, of which only what is missing is played."""
    workers: int | None = None
    """Cells played at once; none: one per core. Results do not depend on it."""
    backend: Literal["local", "ray", "dask"] = "local"
    """Who plays: processes on this machine, or a Ray or Dask cluster."""
    address: str | None = None
    """Of a running Ray cluster or Dask scheduler; none: one is started on this machine."""

    def run(self) -> None:
        """Play, print, write."""
        try:
            with progress_bar() as progress:
                bar = progress.add_task("blocks of tasks", total=None)
                found = evaluate(
                    self.config,
                    self.out,
                    workers=self.workers,
                    backend=self.backend,
                    address=self.address,
                    on_cell=lambda over, total: progress.update(bar, completed=over, total=total),
                )
        except KeyboardInterrupt:
            print(f"gents-gym: stopped; the same command goes on with what is in {self.out}", file=sys.stderr)
            raise
        for env, records in found.records.items():
            print_wide(summary_table(env, records))
        if found.records:
            print(f"written to {self.out}: results.parquet, {', '.join(p.name for p in self.out.glob('regret*.png'))}")
        for failure in found.failures:
            print(f"gents-gym: {failure}", file=sys.stderr)
        if found.failures:
            n_cells = len(cells(found.manifest))
            again = "the same command tries them again"
            print(f"gents-gym: {len(found.failures)} of {n_cells} blocks failed; {again}", file=sys.stderr)
            sys.exit(1)


def summary_table(env: str, records: Mapping[str, Rollout]) -> Table:
    """Return the table of totals per task in an environment, one row per agent."""
    summaries = {spec: record.summary() for spec, record in records.items()}
    measures = list(next(iter(summaries.values())))
    tail_of = "expected" if "expected" in measures else measures[-1]
    tail = ("median", "q90", "q99")
    n_tasks = len(next(iter(records.values())).actions)
    title = f"{env}, {n_tasks} tasks: reward and cumulative regret per task, mean ± s.e."
    table = Table(box=box.SIMPLE_HEAD, title=escape(title), title_justify="left", caption_justify="left")
    table.add_column("agent", no_wrap=True)
    for name in (*measures, *(f"{tail_of}\n{statistic}" for statistic in tail), "µs per\ndecision"):
        table.add_column(name, justify="right", no_wrap=True)
    for spec, summary in summaries.items():
        name = escape(f"{spec} *" if records[spec].privileged else spec)
        means = [f"{summary[m]['mean']:.1f} ± {summary[m]['se']:.1f}" for m in measures]
        quantiles = [f"{summary[tail_of][statistic]:.1f}" for statistic in tail]
        table.add_row(name, *means, *quantiles, f"{1e6 * records[spec].seconds_per_decision:.1f}")
    notes = ["* privileged: knows what no agent may"] if any(r.privileged for r in records.values()) else []
    if len(measures) > 1:
        notes.append("oracle and expected regret can be negative")
    notes.append("time is the agent's own, beside others' work on the same machine")
    table.caption = "; ".join(notes)
    return table


@dataclass(frozen=True)
class Report:
    """Write the report of an evaluation: a page that is read offline, tables, figures and paired comparisons."""

    out: Positional[Path]
    """Folder that evaluate has written to."""
    to: Path | None = None
    """Folder for the report: new or empty, or with an earlier report; none: report in that of the evaluation."""

    def run(self) -> None:
        """Read, draw, write."""
        from gents_gym.evaluation.report import write_report

        with Console(stderr=True).status("drawing"):
            page = write_report(self.out, self.to)
        print(f"written to {page.parent}: open {page} in any browser")


@dataclass(frozen=True)
class Reproduce:
    """Run one of the paper's experiments; write its figures, tables and verdicts."""

    name: Positional[str]
    """main, loss-vs-regret, policy-class, horizon, simpler-models, softmax, timing or exact-gap."""
    setting: str = "synthetic"
    """synthetic, or news."""
    scale: Literal["small", "paper"] = "small"
    """small: minutes on two cores; paper: 500 tasks of 500 decisions."""
    out: Path | None = None
    """Folder; none: results/reproduce-SETTING-SCALE. Experiments that share it share what they play; an interrupted one
    goes on."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core."""

    def run(self) -> None:
        """Play, draw, write."""
        from gents_gym.experiments.run import reproduce

        out = self.out or Path("results") / f"reproduce-{self.setting}-{self.scale}"
        with progress_bar() as progress:
            bar = progress.add_task("blocks of tasks", total=None)
            page = reproduce(
                self.name,
                out,
                self.scale,
                self.setting,
                self.workers,
                on_cell=lambda over, total: progress.update(bar, completed=over, total=total),
            )
        print(f"written to {out}: {page.name} and its figures")
