"""What commands show on a terminal."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table


def print_wide(table: Table) -> None:
    """Print a table; a terminal that is too narrow wraps the lines, where rich would cut the numbers."""
    console = Console()
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def progress_bar() -> Bar:
    """Return a progress bar with the time left, on a terminal alone; it vanishes when the work is done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
