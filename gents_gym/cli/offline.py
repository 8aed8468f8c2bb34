"""The command ``offline``, which estimates from a log what other agents would have earned."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes

from gents_gym.checks import InputError
from gents_gym.cli.console import meter, print_wide
from gents_gym.files import check_target
from gents_gym.likelihoods import make_likelihood
from gents_gym.logs.roles import Roles
from gents_gym.offline.config import OfflineConfig


@dataclass(frozen=True)
class Offline:
    """Estimate from a log what other agents would have earned, with intervals and conclusions."""

    data: Path
    """A log, a CSV or Parquet file with a row for each decision."""
    agents: tuple[str, ...]
    """Agents, optionally with options: "ts-gen(m=100)". Some need --model; TS-Gen imputes 64 rows by default."""
    roles: OmitArgPrefixes[Roles] = field(default_factory=Roles)
    config: OmitArgPrefixes[OfflineConfig] = field(default_factory=OfflineConfig)
    action_table: Path | None = None
    """A CSV or Parquet file with a row for each action and its features."""
    likelihood: str | None = None
    """Kind of outcomes: bernoulli, gaussian or categorical(C); none: bernoulli if all are 0 or 1, else gaussian."""
    model: str | None = None
    """Model that predicts rewards, imagines tables and is used by agents on a model: a folder, a bundled model's id, or
    untrained."""
    out: Path | None = None
    """A new folder for the report, offline.html, and table.csv."""

    def run(self) -> None:
        """Read, estimate, print, and write the report."""
        from gents_gym.logs.describe import describe
        from gents_gym.logs.encoding import Encoding
        from gents_gym.logs.record import read_logs
        from gents_gym.models.notes import read_columns
        from gents_gym.offline.answers import evaluate_offline
        from gents_gym.offline.page import conclusions, limits, table_rows, warnings, write_answers

        if self.out is not None and check_target("out", self.out).exists() and any(self.out.iterdir()):
            raise InputError(f"out must be a new or empty folder, got '{self.out}', which has files in it")
        likelihood = None if self.likelihood is None else make_likelihood(self.likelihood)
        columns = read_columns(self.model)
        encoding = Encoding.from_json(columns) if columns else None
        logs = read_logs(
            self.data, self.roles, action_table=self.action_table, likelihood=likelihood, encoding=encoding
        )
        print("\n".join(describe(logs)), flush=True)
        with meter() as shown:
            found = evaluate_offline(logs, self.agents, self.model, self.config, on_progress=shown.show)
        _print_table(table_rows(found))
        for text in (*conclusions(found), *(f"warning: {text}" for text in warnings(found)), *limits(found)):
            print(text)
        if self.out is not None:
            print(f"written to {write_answers(found, self.out)}")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    from rich import box
    from rich.table import Table

    from gents_gym.offline.page import HEADS

    table = Table(box=box.SIMPLE_HEAD, title="mean reward per decision")
    for i, head in enumerate(HEADS):
        table.add_column(head, justify="left" if i < 2 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    print_wide(table)
