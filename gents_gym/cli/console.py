"""Shows tables and progress on a terminal; rich is imported only when something is shown."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table


def print_wide(table: "Table") -> None:
    """Print a table; a narrow terminal wraps its lines, because rich would cut off numbers."""
    from rich.console import Console

    console = Console()
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def progress_bar(counted: bool = True) -> "Progress":
    """Return a progress bar with the time left, shown only on a terminal and removed when the work is done.

    With ``counted`` it shows the number of finished items and the total.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    numbers = [MofNCompleteColumn()] if counted else []
    columns = (TextColumn("{task.description}"), BarColumn(), *numbers, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


FIRST, EVERY = 30.0, 30.0  # without a terminal: seconds until the first line, and between two lines
ENOUGH = 0.03  # share of the work, after its first part, that an estimate of the time left needs


class Meter:
    """Shows the progress of a command: a bar on a terminal, otherwise a line now and then."""

    def __init__(self, progress: "Progress") -> None:
        """Show progress in ``progress``, or as lines if that is disabled."""
        self._progress, self._log = progress, LineLog(progress.disable)
        self._bar = progress.add_task("starting", total=1.0)
        self._text, self._share, self._began = "starting", 0.0, time.monotonic()
        self._first: tuple[float, float] | None = None  # time and share after the first part; start-up does not count

    def show(self, text: str, share: float | None = None) -> None:
        """Update the current activity and the share of the work done."""
        self._text, self._share = text, self._share if share is None else share
        if self._first is None and self._share > 0:
            self._first = time.monotonic(), self._share
        self._progress.update(self._bar, description=text, completed=self._share)

    def say(self, line: str) -> None:
        """Print a line at once if there is no bar."""
        self._log(line)

    def line(self) -> None:
        """Print the progress if there is no bar."""
        now = time.monotonic()
        self._log(f"gents-gym: {self._text}, after {_duration(now - self._began)}{self._left(now)}")

    def _left(self, now: float) -> str:
        """Return the time left as text; an empty text until enough is done for an estimate."""
        since, share = self._first or (now, self._share)
        if self._share - share < ENOUGH or self._share >= 1:
            return ""
        return f", about {_duration((now - since) * (1 - self._share) / (self._share - share))} left"


@contextmanager
def meter() -> Iterator[Meter]:
    """Yield a meter; it is removed when the work is done."""
    with progress_bar(counted=False) as progress:
        shown, over = Meter(progress), threading.Event()

        def tick() -> None:
            wait = FIRST
            while not over.wait(wait):
                shown.line()
                wait = EVERY

        ticker = threading.Thread(target=tick, daemon=True)
        if progress.disable:
            ticker.start()
        try:
            yield shown
        finally:
            over.set()
            if ticker.is_alive():
                ticker.join()


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


class LineLog:
    """Prints lines if there is no progress bar, as in a log file; repeated lines are skipped."""

    def __init__(self, enabled: bool) -> None:
        """Print if ``enabled``."""
        self._enabled, self._last = enabled, ""

    def __call__(self, line: str) -> None:
        """Print one line to standard error, at once."""
        if self._enabled and line != self._last:
            print(line, file=sys.stderr, flush=True)
        self._last = line
