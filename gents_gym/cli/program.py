"""The command line ``gents-gym``: evaluate agents, train the models that they act on, and report results."""

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.cli.bounds import MeasureBounds
from gents_gym.cli.calibration import Calibrate
from gents_gym.cli.data import Data
from gents_gym.cli.distill import Distill
from gents_gym.cli.evaluate import Compare, Evaluate, Report, Reproduce
from gents_gym.cli.inspect import Inspect
from gents_gym.cli.live import LiveExport
from gents_gym.cli.models import MeasureLosses
from gents_gym.cli.news import NewsCommands, NewsPrepare
from gents_gym.cli.offline import Offline
from gents_gym.cli.study import Study
from gents_gym.cli.train import Train
from gents_gym.cli.tune import Tune
from gents_gym.construct import agent_ids


@dataclass(frozen=True)
class List:
    """List the ids of environments, agents, models and policy classes."""

    def run(self) -> None:
        """Print the ids."""
        from gents_gym.models.load import WEIGHTS, bundled_models, model_kinds

        sections = {
            "environments": {name: registry.TASKS[given["tasks"]] for name, given in registry.ENVIRONMENTS.items()},
            "agents": agent_ids(),
            "bundled models": {name: str(WEIGHTS / name) for name in bundled_models()},
            "kinds of model": {
                **model_kinds(),
                "exact": "p* itself, for settings that publish it",
                "reference": "p* by a chain, for binary outcomes of coefficients that move or correlate",
                "untrained": "a filter with the prior N(0, I), without offline training",
            },
            "presets": {name: f"how {given['kind']} models are trained" for name, given in registry.PRESETS.items()},
            "policy classes": registry.POLICIES,
        }
        for title, entries in sections.items():
            if entries:
                print(f"{title}:")
            for name, target in sorted(entries.items()):
                print(f"  {name:<24} {target}")


@dataclass(frozen=True)
class Bench:
    """Measure speed: ratios, each within one run, and absolute rates."""

    json: bool = False
    """Print one JSON object instead of a table."""
    only: tuple[str, ...] = ()
    """Parts to measure: suite, sb3, ts-gen, transformer, live, training, workers, startup; all if none is named."""
    live: tuple[int, ...] = (100, 1000, 10000)
    """Time live agents after these numbers of decisions."""

    def run(self) -> None:
        """Measure and print."""
        from rich.console import Console

        from gents_gym.bench.benchmarks import run_benchmarks, tabulate
        from gents_gym.bench.timing import Sizes

        if not self.live or min(self.live) < 1:
            raise InputError(f"live must be numbers from 1 on, got {self.live}")
        with Console(stderr=True).status("measuring"):
            found = run_benchmarks(Sizes(live=self.live), self.only)
        print(json.dumps(found, indent=2) if self.json else tabulate(found))


Command = (
    Annotated[List, subcommand("list")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Compare, subcommand("compare")]
    | Annotated[Inspect, subcommand("inspect")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Study, subcommand("study")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Data, subcommand("data")]
    | Annotated[Offline, subcommand("offline")]
    | Annotated[LiveExport, subcommand("live")]
    | Annotated[Tune, subcommand("tune")]
    | Annotated[Distill, subcommand("distill")]
    | Annotated[MeasureLosses, subcommand("losses")]
    | Annotated[Calibrate, subcommand("calibration")]
    | Annotated[MeasureBounds, subcommand("bounds")]
    | Annotated[NewsCommands, subcommand("news")]
    | Annotated[Bench, subcommand("bench")]
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)  # a second signal ends the process at once
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def _signals() -> Iterator[None]:
    """Raise a KeyboardInterrupt for the first SIGINT or SIGTERM; an ignored signal, as by nohup, stays ignored."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, _stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _kept(command: Any) -> str:
    """Return what a stopped command left, and how to continue."""
    command = getattr(command, "command", command)  # subcommands of ``news``
    if isinstance(command, Evaluate | Reproduce | Study | Train | NewsPrepare | Tune):
        folder = command.folder if isinstance(command, Reproduce | Study | Tune) else command.out
        if folder.exists():
            return f"the same command continues with what is in {folder}"
    return "nothing was kept; the same command starts again"


def run() -> None:
    """Run the command line; bad input ends in one line and exit status 2."""
    with _signals():
        _run()


def _run() -> None:
    command = None
    try:
        command = _parse()
        from threadpoolctl import threadpool_limits  # not for --help, which exits in the line above

        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for torch, which is loaded only if needed
        with threadpool_limits(1):  # matrices are small, so threads only slow each other down
            command.run()
    except KeyboardInterrupt as error:
        if command is not None:
            print(f"gents-gym: stopped; {_kept(command)}", file=sys.stderr)
        sys.exit(143 if isinstance(error, Terminated) else 130)
    except BrokenPipeError:  # the reader closed the pipe, as ``head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (InputError, MemoryError, OSError, RuntimeError) as error:
        if (message := _complaint(error)) is None:
            raise
        kept = "" if isinstance(error, InputError) or command is None else f"; {_kept(command)}"
        plain = "".join(letter if letter.isprintable() else " " for letter in message)  # a file's bytes may be quoted
        print(f"gents-gym: {' '.join(plain.split())}{kept}", file=sys.stderr)
        sys.exit(2)


def _complaint(error: Exception) -> str | None:
    """Return the message for bad input, a full or forbidden disk, or too little memory; None: a bug."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the latter is raised by torch
        asked = " ".join(sys.argv[1:])
        return f"'{asked}' takes more memory than there is{f' ({error})' if str(error) else ''}: give smaller sizes"
    if isinstance(error, OSError):
        where = "the output" if error.filename is None else f"'{error.filename}'"
        return f"{where} cannot be read or written ({error.strerror or error})"
    return None


def _parse() -> Any:
    """Parse the command; tyro's boxed errors become one line."""
    flags = [word.partition("=")[0] for word in sys.argv[1:] if word.startswith("--")]
    if twice := [flag for flag in flags if flags.count(flag) > 1]:
        raise InputError(
            f"{twice[0]} must be given once, followed by all its values, got it {flags.count(twice[0])} times"
        )
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint):
            return tyro.cli(Command, prog="gents-gym", description=__doc__)
    except SystemExit as stop:
        if stop.code != 2:
            raise
        rows = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
        end = next((i for i, row in enumerate(rows) if row.startswith(("─", "╰"))), len(rows))
        raise InputError(f"{' '.join(rows[:end])} (see --help)") from None
