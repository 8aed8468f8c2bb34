"""The command ``distill``, which trains a small network to play as a slower agent does."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes

from gents_gym.cli.console import meter
from gents_gym.tuning.distill_config import DistillConfig


@dataclass(frozen=True)
class Distill:
    """Train a network to play as an agent does, on tasks that a model imagines; play it as distilled(path=...)."""

    out: Path
    """Folder for the network and its card: a new one, or one that this command wrote, which is replaced."""
    config: OmitArgPrefixes[DistillConfig] = field(default_factory=DistillConfig)

    def run(self) -> None:
        """Play, train, measure, write."""
        from gents_gym.tuning.distill import card, distill

        with meter() as shown:
            _, found = distill(self.config, self.out, on_progress=shown.show)
        print(card(self.config, found))
        print(f"written to {self.out}; play it with --agents \"distilled(path='{self.out}')\"")
