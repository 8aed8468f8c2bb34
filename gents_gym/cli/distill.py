"""The command that trains a small network to play as a slower agent does."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes

from gents_gym.cli.console import meter
from gents_gym.tuning.distill_config import DistillConfig


@dataclass(frozen=True)
class Distill:
    """Train a network to play as an agent does, on tasks that a model imagines; distilled(path=...) plays it."""

    out: Path
    """Folder for the network and its card: a new one, or one of this command, which is replaced."""
    config: OmitArgPrefixes[DistillConfig] = field(default_factory=DistillConfig)

    def run(self) -> None:
        """Play, train, measure, write."""
        from gents_gym.tuning.distill import card, distill

        with meter() as shown:
            _, found = distill(self.config, self.out, on_progress=shown.show)
        print(card(self.config, found))
        print(f"written to {self.out}; play it by --agents \"distilled(path='{self.out}')\"")
