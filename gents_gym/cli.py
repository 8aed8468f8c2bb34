"""The command line ``gents-gym``: list what there is, evaluate agents, measure speed."""

import io
import json
import sys
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits
from tyro.conf import OmitArgPrefixes, subcommand

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.construct import agent_ids
from gents_gym.evaluation.bench import report, run_benchmarks
from gents_gym.evaluation.harness import Evaluation, EvaluationConfig, count_decisions, evaluate, make_agents, save
from gents_gym.files import new_folder


@dataclass(frozen=True)
class List:
    """List the ids of environments, agents and policy classes."""

    def run(self) -> None:
        """Print the ids."""
        sections = {
            "environments": {name: registry.TASKS[given["tasks"]] for name, given in registry.ENVIRONMENTS.items()},
            "agents": agent_ids(),
            "models": registry.MODELS,
            "policy classes": registry.POLICIES,
        }
        for title, entries in sections.items():
            if entries:
                print(f"{title}:")
            for name, target in sorted(entries.items()):
                print(f"  {name:<24} {target}")


@dataclass(frozen=True)
class Evaluate:
    """Play agents on the same tasks; print a table, and write results and a regret plot to a folder."""

    config: OmitArgPrefixes[EvaluationConfig]
    out: Path
    """Folder for results.parquet, regret.png and manifest.json; it must be new or empty."""

    def run(self) -> None:
        """Play, print, write."""
        make_agents(self.config)  # bad input shows before the folder is made
        out = new_folder("out", self.out)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task("decisions", total=count_decisions(self.config))
            found = evaluate(self.config, on_step=lambda n: progress.advance(bar, n))
        save(found, out)
        table, console = summary_table(found), Console()
        # A terminal that is too narrow wraps the lines; rich would cut the numbers.
        console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
        console.print(table)
        print(f"written to {out}: results.parquet, regret.png, manifest.json")


def summary_table(found: Evaluation) -> Table:
    """Return the table of totals per task, one row per agent."""
    summaries = {spec: record.summary() for spec, record in found.rollouts.items()}
    measures = list(next(iter(summaries.values())))
    tail_of = "expected" if "expected" in measures else measures[-1]
    tail = ("median", "q90", "q99")
    title = f"{found.config.env}, {found.config.tasks} tasks: reward and cumulative regret per task, mean ± s.e."
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    table.add_column("agent", no_wrap=True)
    for name in (*measures, *(f"{tail_of}\n{statistic}" for statistic in tail), "µs per\ndecision"):
        table.add_column(name, justify="right", no_wrap=True)
    for spec, summary in summaries.items():
        name = f"{spec} *" if found.rollouts[spec].privileged else spec
        means = [f"{summary[m]['mean']:.1f} ± {summary[m]['se']:.1f}" for m in measures]
        quantiles = [f"{summary[tail_of][statistic]:.1f}" for statistic in tail]
        table.add_row(name, *means, *quantiles, f"{1e6 * found.seconds[spec]:.1f}")
    notes = ["* privileged: knows the table"] if any(r.privileged for r in found.rollouts.values()) else []
    if len(measures) > 1:
        notes.append("oracle and expected regret can be negative")
    notes.append("time includes the environment and the oracle's fit")
    table.caption = "; ".join(notes) or None
    return table


@dataclass(frozen=True)
class Bench:
    """Measure speed, each figure as a ratio within one run, with absolute rates beside it."""

    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        """Measure and print."""
        with Console(stderr=True).status("measuring"):
            found = run_benchmarks()
        print(json.dumps(found, indent=2) if self.json else report(found))


Command = (
    Annotated[List, subcommand("list")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Bench, subcommand("bench")]
)


def main() -> None:
    """Run the command line; bad input ends in one line and exit status 2."""
    sys.path.append("")  # so that package.module:Class finds modules in the folder one stands in
    try:
        command = _parse()
        with threadpool_limits(1):  # small matrices: threads only get in each other's way
            command.run()
    except InputError as error:
        print(f"gents-gym: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _parse() -> List | Evaluate | Bench:
    """Return the command; tyro's boxed complaints become one line."""
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint):
            return tyro.cli(Command, prog="gents-gym", description=__doc__)
    except SystemExit as stop:
        if stop.code != 2:
            raise
        rows = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
        end = next((i for i, row in enumerate(rows) if row.startswith(("─", "╰"))), len(rows))
        raise InputError(f"{' '.join(rows[:end])} (see --help)") from None


if __name__ == "__main__":
    main()
