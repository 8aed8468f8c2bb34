"""The command that runs studies beyond the paper; what it needs is imported when it runs."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from gents_gym.checks import check_choice
from gents_gym.cli.console import meter

STUDIES = {"bake-off": "gents_gym.experiments.bake_off:bake_off"}


@dataclass(frozen=True)
class Study:
    """Run a study that is not the paper's; write its page and figure."""

    name: Positional[str]
    """bake-off: all agents on all bundled data sets, by average rank."""
    scale: str = "small"
    """tiny: seconds; small: minutes; full: hours."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    out: Path | None = None
    """Folder; none: results/NAME-SCALE, with the seed behind it, if it is given. An interrupted study goes on."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core."""

    @property
    def folder(self) -> Path:
        """The folder that is filled."""
        return self.out or Path("results") / "-".join(
            [self.name, self.scale, *([f"seed{self.seed}"] * bool(self.seed))]
        )

    def run(self) -> None:
        """Play, draw, write."""
        from gents_gym.construct import find

        check_choice("study", self.name, STUDIES)
        study = find("study", self.name, STUDIES)
        with meter() as shown:
            page = study(
                *(self.folder, self.scale, self.seed, self.workers),
                on_progress=lambda now: shown.show(str(now), now.share),
            )
        print(f"written to {self.folder}: {page.name} and its figure")
