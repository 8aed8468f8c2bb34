"""The command ``tune``, which chooses an agent for a model by playing tasks that the model imagines."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes

from gents_gym.cli.console import meter, print_wide
from gents_gym.tuning.config import TuneConfig

BEHIND = ("behind", "behind_se")


@dataclass(frozen=True)
class Tune:
    """Choose an agent and its options by playing tasks that a model imagines; the agent auto then plays the choice."""

    config: OmitArgPrefixes[TuneConfig] = field(default_factory=TuneConfig)
    out: Path | None = None
    """Folder for tuned.json and what was played; none: the model's own, unless it is bundled. The same command
    continues from there."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core. The choice does not depend on it."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        return self.out or Path(self.config.model)

    def run(self) -> None:
        """Play, print, write."""
        from gents_gym.tuning.tune import tune

        with meter() as shown:
            entry, path = tune(
                self.config,
                self.out,
                workers=self.workers,
                on_progress=lambda now: shown.show(str(now), now.share),
            )
        self._print(entry)
        print(f"chosen: {entry['agent']}; written to {path}")

    def _print(self, entry: Any) -> None:
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        sizes = f"{entry['n_actions']} actions, {entry['horizon']} decisions, contexts {entry['contexts']}"
        title = escape(f"{self.config.model}, imagined tasks of {sizes}: expected regret per task, mean ± s.e.")
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        table.add_column("candidate", no_wrap=True)
        titles = ("tasks", "mean", f"{entry['quantile']:.0%} quantile", f"score at\nrisk {entry['risk']:g}")
        for name in (*titles, "behind the best,\npaired"):
            table.add_column(name, justify="right", no_wrap=True)
        last = {spec: (rung["tasks"], one) for rung in entry["rungs"] for spec, one in rung["agents"].items()}
        for spec, (tasks, one) in sorted(last.items(), key=lambda item: (-item[1][0], item[1][1]["score"])):
            mean, behind = (f"{one[key]:.2f} ± {one[error]:.2f}" for key, error in (("mean", "se"), BEHIND))
            table.add_row(escape(spec), str(tasks), mean, f"{one['quantile']:.1f}", f"{one['score']:.2f}", behind)
        print_wide(table)
