"""The commands that play: evaluate, report, reproduce; what they need is imported when they run."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import OmitArgPrefixes, Positional

from gents_gym.cli.console import LineLog, print_wide, progress_bar
from gents_gym.evaluation.grid import EvaluationConfig, cells


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
        from gents_gym.cli.summary import summary_table
        from gents_gym.evaluation.harness import evaluate
        from gents_gym.report.figures import write_regret

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
        for env, records in found.records.items():
            print_wide(summary_table(env, records))
        if found.records:
            figures = ", ".join(path.name for path in write_regret(self.out))
            print(f"written to {self.out}: results.parquet, {figures}")
        for failure in found.failures:
            print(f"gents-gym: {failure}", file=sys.stderr)
        if found.failures:
            n_cells = len(cells(found.manifest))
            again = "the same command tries them again"
            print(f"gents-gym: {len(found.failures)} of {n_cells} blocks failed; {again}", file=sys.stderr)
            sys.exit(1)


@dataclass(frozen=True)
class Report:
    """Write the report of an evaluation: a page that is read offline, tables, figures and paired comparisons."""

    out: Positional[Path]
    """Folder that evaluate has written to."""
    to: Path | None = None
    """Folder for the report: new or empty, or with an earlier report; none: report in that of the evaluation."""

    def run(self) -> None:
        """Read, draw, write."""
        from rich.console import Console

        from gents_gym.report.report import write_report

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
    corpus: Path | None = None
    """With the setting news: a folder that `news prepare` wrote; models that are missing are trained on it."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    models: tuple[str, ...] = ()
    """Bundled models or folders to play on; none: the bundled ones, or those trained on the corpus."""
    out: Path | None = None
    """Folder; none: results/reproduce-SETTING-SCALE, with the corpus and the seed behind it, if they are given.
    Experiments that share it share what they play; an interrupted one goes on."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core."""

    @property
    def folder(self) -> Path:
        """The folder that is filled."""
        behind = [] if self.corpus is None else [self.corpus.name]
        behind += [f"seed{self.seed}"] if self.seed else []
        return self.out or Path("results") / "-".join(["reproduce", self.setting, self.scale, *behind])

    def run(self) -> None:
        """Train, play, draw, write."""
        from gents_gym.cli.train import say_epoch
        from gents_gym.experiments.reproduce import reproduce

        out = self.folder
        with progress_bar() as progress:
            bar = progress.add_task("blocks of tasks", total=None)
            log = LineLog(progress.disable)

            def show(model: str, training: Any, config: Any) -> None:
                line = f"training {Path(model).name}: {say_epoch(training, config)}"
                progress.update(bar, description=line)
                log(line)

            def count(over: int, total: int) -> None:
                progress.update(bar, completed=over, total=total, description="blocks of tasks")

            page = reproduce(
                *(self.name, out, self.scale, self.setting, self.workers, count),
                corpus=self.corpus,
                seed=self.seed,
                models=self.models,
                on_epoch=show,
            )
        print(f"written to {out}: {page.name} and its figures")
