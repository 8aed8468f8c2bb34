"""The commands evaluate, report, compare and reproduce; each imports what it needs when it runs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import OmitArgPrefixes, Positional

from gents_gym.checks import check_choice
from gents_gym.cli.console import meter, print_wide
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.regret import REGRETS

if TYPE_CHECKING:
    from gents_gym.evaluation.store import Evaluation


@dataclass(frozen=True)
class Evaluate:
    """Play agents on the same tasks; print a table, and write results and a regret plot to a folder."""

    config: OmitArgPrefixes[EvaluationConfig]
    out: Path
    """Folder for the results: new or empty, or from the same run, which then continues with what is missing."""
    workers: int | None = None
    """Cells played at once; none: one per core. Results do not depend on it."""
    backend: Literal["local", "ray", "dask"] = "local"
    """Where to play: in processes on this machine, or on a Ray or Dask cluster."""
    address: str | None = None
    """Address of a running Ray cluster or Dask scheduler; none: one is started on this machine."""

    only: bool = False
    """Show only the agents named here; otherwise the table and the figure show all that the folder holds."""
    regret: tuple[str, ...] = ()
    """Panels of the figure: oracle, expected, best, reward, or all; none: the regret that matters most."""

    def run(self) -> None:
        """Play, print, write."""
        from gents_gym.cli.summary import summary_table
        from gents_gym.evaluation.harness import evaluate
        from gents_gym.evaluation.measures import remark_lines
        from gents_gym.report.figures import write_regret

        _check_regrets(self.regret)
        with meter() as shown:
            found = evaluate(
                self.config,
                self.out,
                workers=self.workers,
                backend=self.backend,
                address=self.address,
                on_progress=lambda now: shown.show(str(now), now.share),
            )
        agents = self.config.agents if self.only else None
        told = found if agents is None else found.only(agents)
        for env, records in told.records.items():
            print_wide(summary_table(env, records))
            for line in remark_lines(records):
                print(f"note: {line}")
        if told.records:
            figures = ", ".join(path.name for path in write_regret(self.out, self.regret, agents))
            print(f"written to {self.out}: results.parquet, {figures}")
        for line in _left_out(found, self.config.agents):
            print(f"gents-gym: {line}", file=sys.stderr)
        for failure in found.failures:
            print(f"gents-gym: {failure}", file=sys.stderr)
        if found.failures:
            n_cells = len(self.config.env) * len(self.config.agents) * -(-self.config.tasks // self.config.block)
            again = "the same command tries them again"
            print(f"gents-gym: {len(found.failures)} of {n_cells} blocks failed; {again}", file=sys.stderr)
            sys.exit(1)


def _check_regrets(regrets: tuple[str, ...]) -> None:
    """Raise, before anything is played, unless each is the name of a regret."""
    for name in regrets:
        check_choice("regret", name, (*REGRETS, "reward", "all"))


def _left_out(found: "Evaluation", named: tuple[str, ...]) -> list[str]:
    """Return a line for each agent of the folder that is not shown because it still has tasks to play."""
    pairs = dict.fromkeys(cell.pair for cell in found.missing if cell.agent not in named)
    return [f"{agent} has not played all tasks of {env}: name it to play them" for env, agent in pairs]


@dataclass(frozen=True)
class Report:
    """Write the report of an evaluation: an offline page with tables, figures and paired comparisons."""

    out: Positional[Path]
    """Folder that evaluate wrote."""
    to: Path | None = None
    """Folder for the report: new or empty, or with an earlier report; none: the subfolder report of the evaluation."""
    title: str | None = None
    """Title of the page and of the figures; none: the environment."""
    names: tuple[str, ...] = ()
    """Display names of agents, each AGENT=NAME: "ts-gen(model=synthetic-filter)=TS-Gen"."""
    only: tuple[str, ...] = ()
    """Agents to show, in this order; none: all agents that have played all their tasks."""
    baseline: str | None = None
    """Agent that the lift of rewards is measured against; none: random if it was played, else the worst agent."""
    regret: tuple[str, ...] = ()
    """Panels of the figures: oracle, expected, best, reward, or all; none: the regret that matters most."""

    def run(self) -> None:
        """Read, draw, write."""
        from rich.console import Console

        from gents_gym.report.report import write_report
        from gents_gym.report.wishes import Wishes

        _check_regrets(self.regret)
        wishes = Wishes(self.title, self.names, self.only, self.baseline, self.regret)
        with Console(stderr=True).status("drawing"):
            page = write_report(self.out, self.to, wishes)
        print(f"written to {page.parent}: open {page} in any browser")


@dataclass(frozen=True)
class Compare:
    """Compare agents of two evaluation folders: task by task if the tasks are the same, otherwise unpaired."""

    first: Positional[Path]
    """Folder that evaluate wrote."""
    second: Positional[Path]
    """Another such folder; both must share an environment."""
    agents: tuple[str, ...] = ()
    """One agent that is in both folders, or two: one of the first folder and one of the second; none: every agent in
    both folders or, if there is none, every pair of agents."""
    measure: str | None = None
    """oracle, expected, best or reward; none: the regret that matters most."""

    def run(self) -> None:
        """Read, compare, print."""
        from gents_gym.report.folders import compare_folders

        for line in compare_folders(self.first, self.second, self.agents, self.measure):
            print(line)


@dataclass(frozen=True)
class Reproduce:
    """Run one of the paper's experiments; write its figures, tables and verdicts."""

    name: Positional[str]
    """main, loss-vs-regret, policy-class, horizon, simpler-models, softmax, timing, exact-gap or ladder."""
    setting: str = "synthetic"
    """synthetic, or news."""
    scale: Literal["small", "medium", "paper"] = "small"
    """small: minutes on two cores; medium: 100 tasks of 500 decisions; paper: 500 of them."""
    corpus: Path | None = None
    """For the setting news: a folder that `news prepare` wrote; missing models are trained on it."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    models: tuple[str, ...] = ()
    """Bundled models or folders to play on; none: the bundled ones, or those trained on the corpus."""
    tasks: int | None = None
    """Number of tasks; none: the scale's. A larger number later plays only what is missing."""
    beside: Path | None = None
    """With ladder: a folder that holds the ladder of the other setting; the figure then has the points of both."""
    out: Path | None = None
    """Folder; none: results/reproduce-SETTING-SCALE, followed by the corpus and the seed if they are given.
    Experiments in the same folder share what they play; an interrupted one continues."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core."""
    regret: tuple[str, ...] = ()
    """Panels of the regret figures: oracle, expected, best, reward, or all; none: the regret that matters most."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        behind = [] if self.corpus is None else [self.corpus.name]
        behind += [f"seed{self.seed}"] if self.seed else []
        return self.out or Path("results") / "-".join(["reproduce", self.setting, self.scale, *behind])

    def run(self) -> None:
        """Train, play, draw, write."""
        from gents_gym.cli.train import say_epoch
        from gents_gym.experiments.reproduce import reproduce

        out = self.folder
        _check_regrets(self.regret)
        with meter() as shown:

            def train(model: str, training: Any, config: Any) -> None:
                line = f"training {Path(model).name}: {say_epoch(training, config)}"
                shown.show(line)
                shown.say(line)

            page = reproduce(
                *(self.name, out, self.scale, self.setting, self.workers),
                on_progress=lambda now: shown.show(str(now), now.share),
                corpus=self.corpus,
                seed=self.seed,
                models=self.models,
                tasks=self.tasks,
                beside=self.beside,
                regrets=self.regret,
                on_epoch=train,
            )
        print(f"written to {out}: {page.name} and its figures")
