"""The command ``live export``, which writes the decisions of a live store as a log."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from gents_gym.checks import InputError
from gents_gym.files import new_file, write_whole


@dataclass(frozen=True)
class LiveExport:
    """Write the decisions of a live store as a log, a Parquet file; the store may be in use at the same time."""

    verb: Positional[Literal["export"]]
    """What to do: export."""
    store: Positional[Path]
    """The SQLite file of decisions and outcomes."""
    out: Path
    """A new Parquet file, with a row for each decision."""
    pending: bool = False
    """Include decisions whose outcome has not arrived, with an empty outcome; training refuses these."""

    def run(self) -> None:
        """Read and write."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from gents_gym.live.export import read_decisions

        new_file("out", self.out)
        if self.out.suffix != ".parquet":
            raise InputError(f"out must end in .parquet, which is what is written, got '{self.out}'")
        table, buffer = read_decisions(self.store, pending=self.pending), pa.BufferOutputStream()
        pq.write_table(table, buffer)
        write_whole(self.out, buffer.getvalue().to_pybytes())
        print(f"{len(table)} decisions in {self.out}: {', '.join(table.column_names)}")
