"""The command line ``gents-gym``: list what there is, evaluate agents, report on them, measure speed."""

import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from threadpoolctl import threadpool_limits
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, subcommand

from gents_gym import registry
from gents_gym.bench.run import report, run_benchmarks
from gents_gym.checks import InputError, check_integer
from gents_gym.construct import agent_ids, parse_spec
from gents_gym.evaluation.environments import env_distribution, env_setting
from gents_gym.evaluation.grid import EvaluationConfig, cells
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.rollout import Rollout
from gents_gym.files import write_whole
from gents_gym.news.grammar import invent
from gents_gym.news.prepare import PrepareConfig, prepare


@dataclass(frozen=True)
class List:
    """List the ids of environments, agents and policy classes."""

    def run(self) -> None:
        """Print the ids."""
        sections = {
            "environments": {name: registry.TASKS[given["tasks"]] for name, given in registry.ENVIRONMENTS.items()},
            "agents": agent_ids(),
            "models": {name: f"bundled, in models/weights/{folder}" for name, folder in registry.MODELS.items()},
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
            with _bar() as progress:
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
            _print_wide(summary_table(env, records))
        if found.records:
            print(f"written to {self.out}: results.parquet, {', '.join(p.name for p in self.out.glob('regret*.png'))}")
        for failure in found.failures:
            print(f"gents-gym: {failure}", file=sys.stderr)
        if found.failures:
            n_cells = len(cells(found.manifest))
            again = "the same command tries them again"
            print(f"gents-gym: {len(found.failures)} of {n_cells} blocks failed; {again}", file=sys.stderr)
            sys.exit(1)


def _print_wide(table: Table) -> None:
    """Print a table; a terminal that is too narrow wraps the lines, where rich would cut the numbers."""
    console = Console()
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def _bar() -> Bar:
    """Return a progress bar with the time left, on a terminal alone; it vanishes when the work is done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


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
    """Where it is played."""
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
        with _bar() as progress:
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


@dataclass(frozen=True)
class Train:
    """Train a sequence model on an environment's historical actions, or on logs of your own; write a folder."""

    out: Path
    """Folder for the model; new or empty, or that of an unfinished run of the same command, which goes on."""
    preset: str = "filter"
    """filter or paper, with the model's sizes behind it: "paper(hidden_layers=1)"."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose train and validation splits are learned from, with options behind it."""
    data: Path | None = None
    """Logged rows, a Parquet or CSV file: action, outcome (0 or 1), the context in all other columns; and task,
    where actions differ by task. It takes the environment's place."""
    action_features: Path | None = None
    """With --data: a file of the same kind with the features of every action."""
    actions: int = 10_000
    """Historical actions of the environment to train on."""
    rows: int = 1000
    """Rows of each."""
    seed: int = 0
    """Seed of the rows and of the training."""
    epochs: int | None = None
    """Epochs; none: the preset's. So with the following."""
    batch: int | None = None
    """Actions in a batch."""
    horizon: int | None = None
    """Rows of a training sequence, T."""
    learning_rates: tuple[float, ...] | None = None
    """Learning rates to try; the lowest validation loss wins."""
    steps: int | None = None
    """Entries of each sequence whose loss counts, drawn anew for every batch."""
    validation_actions: int | None = None
    """Actions that choose epoch and learning rate, at the most."""
    replacement: bool | None = None
    """Bootstrap sequences with replacement, as the paper does, instead of permuting an action's rows."""
    blind: bool = False
    """Hide the action features from the model: what they are worth shows in the difference."""

    def run(self) -> None:
        """Train and write."""
        from gents_gym.training.loop import preset_config
        from gents_gym.training.run import train_to_folder

        preset, sizes = parse_spec(self.preset)
        own = {"out", "preset", "env", "data", "action_features", "actions", "rows"}
        named = [entry.name for entry in fields(self) if entry.name not in own]
        given = {name: value for name in named if (value := getattr(self, name)) is not None}
        setting = env_setting(self.env) if self.data is None else None
        config = preset_config(preset, setting, model=sizes, **given)
        rows, validation, source = self._rows(config.horizon, config.validation_actions)
        n_batches = -(-len(rows) // config.batch)
        with _bar() as bars:
            bar = bars.add_task("batches", total=n_batches * config.epochs * len(config.learning_rates))

            def show(progress: Any) -> None:
                bars.update(bar, completed=n_batches * len(progress.history))
                last = progress.history[-1]["validation"]
                bars.update(bar, description=f"validation {last:.4f}, best {progress.best:.4f}")

            model = train_to_folder(
                rows, validation, config, self.out, source, on_epoch=show, on_batch=lambda _: bars.advance(bar)
            )
        print(f"{model.kind} model written to {self.out}; its README.md tells data, seed and losses")

    def _rows(self, horizon: int, n_validation: int) -> tuple[Any, Any, str]:
        from gents_gym.training.data import RowSets, read_logs
        from gents_gym.training.run import split_actions

        if (self.data is None) != (self.action_features is None):
            missing = "action_features" if self.action_features is None else "data"
            raise InputError(f"data and action_features must be given together, got no {missing}")
        if self.data is not None and self.action_features is not None:
            rows, validation = split_actions(read_logs(self.data, self.action_features), 0.2, self.seed)
            return rows, validation, f"logs: {self.data.name}, {self.action_features.name}"
        distribution = env_distribution(self.env)
        check_integer("actions", self.actions, 1)
        check_integer("rows", self.rows, 1)
        seen = distribution.sample_actions(self.seed, range(self.actions), self.rows, "train")
        held_out = distribution.sample_actions(self.seed, range(n_validation), horizon, "validation")
        source = f"{self.env}, seed {self.seed}: {self.rows} rows of each action of the train split"
        return RowSets.from_rows(seen), RowSets.from_rows(held_out), source


@dataclass(frozen=True)
class Losses:
    """Print models' held-out losses on the same rows of the test split, beside the exact p*."""

    models: tuple[str, ...] = ("synthetic-paper", "synthetic-filter", "exact")
    """Bundled models or folders; "exact" is p* itself, of the synthetic or the news setting."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose test split is predicted."""
    actions: int = 2000
    """Single actions to predict."""
    seed: int = 0
    """Seed of the rows."""
    blind: str | None = None
    """One of the models, which sees no action features: what share of its distance to "exact" do the others close?"""
    out: Path | None = None
    """A new PNG file for the losses by step."""

    def run(self) -> None:
        """Measure and print."""
        from gents_gym.models.load import load_model
        from gents_gym.training.losses import draw_losses_by_step, exact_twin, measure

        if self.out is not None and (self.out.exists() or not self.out.parent.is_dir()):
            raise InputError(f"out must be a new file in a folder that exists, got '{self.out}'")
        if not self.models:
            raise InputError("models must name at least one model, got none")
        if self.blind is not None and not {self.blind, "exact"} <= {*self.models}:
            raise InputError(f"models must name {self.blind!r} and 'exact' with --blind, got {', '.join(self.models)}")
        distribution = env_distribution(self.env)
        models = {name: exact_twin(distribution) if name == "exact" else load_model(name) for name in self.models}
        horizon = distribution.sample(0, [0]).horizon
        check_integer("actions", self.actions, 2)
        rows = distribution.sample_actions(self.seed, range(self.actions), horizon, "test")
        with Console(stderr=True).status("measuring"):
            found = measure(models, rows, self.seed)
        print(f"{self.env}, {self.actions} actions of the test split, seed {self.seed}: nats per step, mean ± s.e.")
        shown = [prefix for prefix in (1, 10, 50) if prefix in found.prefixes and prefix < horizon] + [horizon]
        print(f"{'model':<28}" + "".join(f"{f'first {prefix}':>20}" for prefix in shown))
        for name in models:
            cells = ("{:.5f} ± {:.5f}".format(*found.mean(name, prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        others = [name for name in models if name != "exact" and "exact" in models]
        if others:
            print("above exact, paired by action:")
        for name in others:
            cells = ("{:.5f} ± {:.5f}".format(*found.gap(name, "exact", prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        for name in others:
            gap, error = found.gap(name, "exact", horizon)
            whole = f"{gap * horizon:.3f} nats per sequence"
            print(f"{name} is above exact by {gap:.6f} ± {error:.6f} nats per step, {whole}")
        for name in [name for name in others if self.blind and name != self.blind]:
            shares = (found.closed(name, str(self.blind), "exact", prefix) for prefix in shown)
            told = ", ".join(
                f"{share:.3f} ± {1.96 * error:.3f} over the first {prefix}"
                for prefix, (share, error) in zip(shown, shares, strict=True)
            )
            print(f"of the distance from {self.blind} to exact, {name} closes (± 95 %): {told}")
        if self.out is not None:
            write_whole(self.out, draw_losses_by_step(found, "exact" if "exact" in models else None))


@dataclass(frozen=True)
class NewsInvent:
    """Write synthetic headlines of the package's grammar, one per line."""

    out: Path
    """A new file."""
    count: int = 16_000
    """Distinct headlines."""
    seed: int = 0
    """Seed of the grammar."""

    def run(self) -> None:
        """Invent and write."""
        if self.out.exists():
            raise InputError(f"out must be a new file, got '{self.out}'")
        write_whole(self.out, ("\n".join(invent(self.count, self.seed)) + "\n").encode())
        print(f"{self.count} synthetic headlines written to {self.out}")


@dataclass(frozen=True)
class NewsPrepare:
    """Make a corpus for gents_gym/News-v0 from a file of headlines; a killed run goes on when started again."""

    config: OmitArgPrefixes[PrepareConfig]
    out: Path
    """Folder for the corpus; new or empty, or that of an unfinished run of the same command, which goes on."""

    def run(self) -> None:
        """Prepare and tell what was made."""
        with _bar() as bars:
            bar = bars.add_task("headlines", total=None)
            corpus = prepare(
                self.config, self.out, on_part=lambda done, total: bars.update(bar, completed=done, total=total)
            )
        told = corpus.manifest
        sizes = ", ".join(f"{size} {name}" for name, size in told["sizes"].items())
        rows = told["plan"]["rows"]
        print(f"{rows['rows']} rows, {rows['empty']} empty and {rows['repeated']} repeated ones left out: {sizes}")
        for name, found in told["scores"].items():
            same = f"{100 * found['share_of_commonest_value']:.0f} % have the same value"
            print(f"{name}: {same}, R² {found['ridge_r2']:.2f} from {told['dimensions']} embedding dimensions")
        print(f'written to {self.out}: gym.make("gents_gym/News-v0", corpus="{self.out}")')


@dataclass(frozen=True)
class News:
    """Prepare headlines for gents_gym/News-v0."""

    command: OmitArgPrefixes[
        OmitSubcommandPrefixes[
            Annotated[NewsPrepare, subcommand("prepare")] | Annotated[NewsInvent, subcommand("invent")]
        ]
    ]

    def run(self) -> None:
        """Run the subcommand."""
        self.command.run()


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
    | Annotated[Report, subcommand("report")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Losses, subcommand("losses")]
    | Annotated[News, subcommand("news")]
    | Annotated[Bench, subcommand("bench")]
)


def main() -> None:
    """Run the command line; bad input ends in one line and exit status 2."""
    sys.path.append("")  # so that package.module:Class finds modules in the folder one stands in
    try:
        command = _parse()
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for torch, which is loaded where it is used
        with threadpool_limits(1):  # small matrices: threads only get in each other's way
            command.run()
    except (InputError, MemoryError) as error:
        print(f"gents-gym: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # who read the output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _parse() -> List | Evaluate | Report | Reproduce | Train | Losses | News | Bench:
    """Return the command; tyro's boxed complaints become one line."""
    flags = [word.partition("=")[0] for word in sys.argv[1:] if word.startswith("--")]
    if twice := [flag for flag in flags if flags.count(flag) > 1]:
        raise InputError(
            f"{twice[0]} must be given once, with all its values behind it, got it {flags.count(twice[0])} times"
        )
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
