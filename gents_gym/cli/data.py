"""The command ``data check``, which checks logs."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import OmitArgPrefixes, Positional

from gents_gym.logs.roles import Roles


@dataclass(frozen=True)
class Data:
    """Report what a log contains and what is odd about it; the exit status is 2 if it cannot be used."""

    verb: Positional[Literal["check"]]
    """What to do: check."""
    file: Positional[Path]
    """A CSV or Parquet file with a row for each decision."""
    roles: OmitArgPrefixes[Roles] = field(default_factory=Roles)
    action_table: Path | None = None
    """A CSV or Parquet file with a row for each action and its features."""

    def run(self) -> None:
        """Check and print."""
        from gents_gym.logs.check import check_data

        has, odd, fatal = check_data(self.file, self.roles, self.action_table)
        print("\n".join(has))
        if not self.roles:
            print("no roles are given: name columns by --action, --outcome, --context and so on to check them too")
        if odd or not fatal:
            print("\n".join(odd) if odd else "nothing odd was found")
        if fatal:
            print("\n".join(["The log cannot be used as it is:", *(f"  {fault}" for fault in fatal)]))
            sys.exit(2)
