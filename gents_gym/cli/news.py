"""The commands ``news prepare`` and ``news invent``, about headlines; their imports happen when they run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from gents_gym.cli.console import progress_bar
from gents_gym.files import check_target, new_file, write_whole
from gents_gym.tasks.headlines.config import PrepareConfig

LOW_R2 = 0.2  # R² of a score from the embeddings: below it, agents can learn little from a headline


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
        from gents_gym.tasks.headlines.grammar import invent

        new_file("out", self.out)
        write_whole(self.out, ("\n".join(invent(self.count, self.seed)) + "\n").encode())
        print(f"{self.count} synthetic headlines written to {self.out}")


@dataclass(frozen=True)
class NewsPrepare:
    """Make a corpus for gents_gym/News-v0 from a file of headlines; run it again to continue after an interruption."""

    config: OmitArgPrefixes[PrepareConfig]
    out: Path
    """Folder for the corpus; new or empty, or that of an unfinished run of the same command, which continues."""

    def run(self) -> None:
        """Prepare, and print what was made."""
        from gents_gym.tasks.headlines.prepare import prepare

        check_target("out", self.out)
        with progress_bar() as bars:
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
            print(f"{name}: {same}, held-out R² {found['ridge_r2']:.2f} from {told['dimensions']} embedding dimensions")
            if found["ridge_r2"] < LOW_R2:
                print(f"  the embeddings say little about {name}: {self._remedy(name)}")
        print(f'written to {self.out}: gym.make("gents_gym/News-v0", corpus="{self.out}")')
        print(f'a model of it: gents-gym train --env "gents_gym/News-v0(corpus={self.out})" --out MODEL')

    def _remedy(self, name: str) -> str:
        """Return advice for a score that the embeddings predict badly."""
        if self.config.space is not None:
            return f"prepare the corpus without --space {self.config.space} and train a model on it"
        fewer = "" if self.config.dimensions is None else "more --dimensions, "
        return f"try {fewer}another --encoder, another --{name} or more headlines"


@dataclass(frozen=True)
class NewsCommands:
    """Prepare headlines for gents_gym/News-v0."""

    command: OmitArgPrefixes[
        OmitSubcommandPrefixes[
            Annotated[NewsPrepare, subcommand("prepare")] | Annotated[NewsInvent, subcommand("invent")]
        ]
    ]

    def run(self) -> None:
        """Run the subcommand."""
        self.command.run()
