"""What commands show on a terminal; rich is imported when something is shown."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table


def print_wide(table: "Table") -> None:
    """Print a table; a terminal that is too narrow wraps the lines, where rich would cut the numbers."""
    from rich.console import Console

    console = Console()
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def progress_bar() -> "Progress":
    """Return a progress bar with the time left, on a terminal alone; it vanishes when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class LineLog:
    """Prints lines where no progress bar is shown, as in a log file; one that repeats the last is left out."""

    def __init__(self, enabled: bool) -> None:
        """Print if ``enabled``."""
        self._enabled, self._last = enabled, ""

    def __call__(self, line: str) -> None:
        """Print one line to standard error, at once."""
        if self._enabled and line != self._last:
            print(line, file=sys.stderr, flush=True)
        self._last = line
