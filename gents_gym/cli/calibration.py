"""The command ``calibration``, which measures how far models' posteriors can be trusted."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.checks import InputError
from gents_gym.cli.console import print_wide, progress_bar
from gents_gym.evaluation.environments import env_distribution
from gents_gym.files import new_folder, write_whole
from gents_gym.types import TaskDistribution


@dataclass(frozen=True)
class Calibrate:
    """Measure models' calibration on the test split: reliability, coverage of intervals, joint losses, ranks."""

    models: tuple[str, ...] = ("synthetic-filter",)
    """Bundled models, folders, or package.module:Class, optionally with options; "exact" is p* itself."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose test split is predicted, optionally with options."""
    config: OmitArgPrefixes[CalibrationConfig] = field(default_factory=CalibrationConfig)
    out: Path | None = None
    """A new or empty folder for calibration.png and calibration.json."""
    card: bool = False
    """Also write each model's numbers and picture into its folder and card; all models must be folders."""

    def run(self) -> None:
        """Measure, print, write."""
        from gents_gym.calibration.calibrate import calibrate
        from gents_gym.calibration.card import PICTURE, draw_calibrations, write_card

        distribution = env_distribution(self.env)
        models = self._models(distribution)
        if self.out is not None:
            new_folder("out", self.out)
        found = {}
        with progress_bar() as progress:
            for name, model in models.items():
                bar = progress.add_task(name, total=None)

                def show(over: int, total: int, bar: Any = bar) -> None:
                    progress.update(bar, completed=over, total=total)

                found[name] = calibrate(model, distribution, self.config, show)
        self._print(found)
        if self.out is not None:
            write_whole(self.out / PICTURE, draw_calibrations(found))
            numbers = {"env": self.env, "models": {name: one.numbers() for name, one in found.items()}}
            write_whole(self.out / "calibration.json", (json.dumps(numbers, indent=1) + "\n").encode())
            print(f"written to {self.out}: {PICTURE}, calibration.json")
        if self.card:
            for name, one in found.items():
                write_card(Path(name), one, self.env)
                print(f"written to {name}: README.md, {PICTURE}")

    def _models(self, distribution: TaskDistribution) -> dict[str, Any]:
        """Return the models, all checked before anything is measured."""
        from gents_gym.calibration.card import check_card
        from gents_gym.calibration.given import check_calibration

        if not self.models or len({*self.models}) < len(self.models):
            raise InputError(f"models must name at least one model, and each once, got {', '.join(self.models)}")
        if self.card:
            for name in self.models:
                check_card(Path(name))
        return {name: check_calibration(name, distribution, self.config) for name in self.models}

    def _print(self, found: dict[str, Any]) -> None:
        from rich.table import Table

        from gents_gym.calibration.card import header, table_rows

        config = self.config
        sizes = f"{config.actions} actions, {config.tasks} tasks, {config.draws} tables each"
        table = Table(title=f"{self.env}, test split, seed {config.seed}: {sizes}; nats per row, mean ± s.e.")
        for title in ("model", *header(next(iter(found.values())))):
            table.add_column(title)
        for name, one in found.items():
            for row in table_rows(one):
                table.add_row(name, *row)
        print_wide(table)
        for name, one in found.items():
            print(f"{name}: {one.verdict}")
