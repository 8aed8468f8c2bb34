"""The command ``study``, which runs studies beyond the paper; what it needs is imported when it runs."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from gents_gym.checks import InputError, check_choice
from gents_gym.cli.console import meter

STUDIES = {
    "bake-off": "gents_gym.experiments.bake_off:bake_off",
    "general": "gents_gym.experiments.general:general",
    "imagined": "gents_gym.experiments.imagined:imagined",
    "planning": "gents_gym.experiments.planning:planning",
    "settings": "gents_gym.experiments.settings:settings",
}
WITH_REGIMES = ("imagined", "planning", "settings")


@dataclass(frozen=True)
class Study:
    """Run a study that is not in the paper; write its page and figure."""

    name: Positional[str]
    """bake-off: all agents on all bundled data sets, by average rank; general: the model general in ten settings that
    it was not trained on; imagined: imagined versus real regret of ten agents; planning: how good auto, chosen on
    imagined tasks, is in eight regimes; settings: regret against delay, turnover, drift and correlation."""
    scale: str = "small"
    """tiny: seconds; small: minutes; full: hours; planning and settings also have medium."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    out: Path | None = None
    """Folder; none: results/NAME-SCALE, followed by the seed if it is given. An interrupted study continues."""
    workers: int | None = None
    """Blocks of tasks played at once; none: one per core."""
    regimes: tuple[str, ...] = ()
    """For planning: play only these, such as synthetic-0-500; for imagined: use only these models, such as news-filter;
    for settings: only delay, turnover, drift or correlation. The page shows all that the folder holds. None: all."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        return self.out or Path("results") / "-".join(
            [self.name, self.scale, *([f"seed{self.seed}"] * bool(self.seed))]
        )

    def run(self) -> None:
        """Play, draw, write."""
        from gents_gym.construct import find

        check_choice("study", self.name, STUDIES)
        if self.regimes and self.name not in WITH_REGIMES:
            raise InputError(
                f"regimes must go with one of the studies {', '.join(WITH_REGIMES)}, got --regimes with {self.name}"
            )
        study, some = find("study", self.name, STUDIES), {"regimes": self.regimes} if self.regimes else {}
        with meter() as shown:
            page = study(
                *(self.folder, self.scale, self.seed, self.workers),
                on_progress=lambda now: shown.show(str(now), now.share),
                **some,
            )
        print(f"written to {self.folder}: {page.name} and its figure")
