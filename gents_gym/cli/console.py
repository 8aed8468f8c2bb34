"""What commands show on a terminal; rich is imported when something is shown."""

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
    """Print a table; a terminal that is too narrow wraps the lines, where rich would cut the numbers."""
    from rich.console import Console

    console = Console()
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def progress_bar(counted: bool = True) -> "Progress":
    """Return a progress bar with the time left, on a terminal alone; it vanishes when the work is done.

    With ``counted`` it shows how many of how many are over.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    numbers = [MofNCompleteColumn()] if counted else []
    columns = (TextColumn("{task.description}"), BarColumn(), *numbers, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


FIRST, EVERY = 30.0, 30.0  # seconds until the first line where there is no terminal, and between two of them
ENOUGH = 0.03  # of the work, after the first part of it: less says nothing about the time left


class Meter:
    """Shows how far a command is: by a bar on a terminal, elsewhere by a line now and then."""

    def __init__(self, progress: "Progress") -> None:
        """Show by ``progress``, or by lines if it is disabled."""
        self._progress, self._log = progress, LineLog(progress.disable)
        self._bar = progress.add_task("starting", total=1.0)
        self._text, self._share, self._began = "starting", 0.0, time.monotonic()
        self._first: tuple[float, float] | None = None  # when anything was over, and what share: start-up is no rate

    def show(self, text: str, share: float | None = None) -> None:
        """Take what is done now, and the share of the work that is over."""
        self._text, self._share = text, self._share if share is None else share
        if self._first is None and self._share > 0:
            self._first = time.monotonic(), self._share
        self._progress.update(self._bar, description=text, completed=self._share)

    def say(self, line: str) -> None:
        """Print a line at once, where there is no bar."""
        self._log(line)

    def line(self) -> None:
        """Print how far it is, where there is no bar."""
        now = time.monotonic()
        self._log(f"gents-gym: {self._text}, after {_duration(now - self._began)}{self._left(now)}")

    def _left(self, now: float) -> str:
        """Return how long the rest takes, in words; nothing until enough is over to say it."""
        since, share = self._first or (now, self._share)
        if self._share - share < ENOUGH or self._share >= 1:
            return ""
        return f", about {_duration((now - since) * (1 - self._share) / (self._share - share))} left"


@contextmanager
def meter() -> Iterator[Meter]:
    """Yield a meter; it vanishes when the work is done."""
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
    """Prints lines where no progress bar is shown, as in a log file; one that repeats the last is left out."""

    def __init__(self, enabled: bool) -> None:
        """Print if ``enabled``."""
        self._enabled, self._last = enabled, ""

    def __call__(self, line: str) -> None:
        """Print one line to standard error, at once."""
        if self._enabled and line != self._last:
            print(line, file=sys.stderr, flush=True)
        self._last = line
