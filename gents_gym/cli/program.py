"""The command line ``gents-gym``: list what there is, evaluate agents, report on them, measure speed."""

import io
import json
import os
import sys
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Annotated

import tyro
from tyro.conf import subcommand

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.cli.evaluate import Evaluate, Report, Reproduce
from gents_gym.cli.models import MeasureLosses
from gents_gym.cli.news import NewsCommands
from gents_gym.cli.train import Train
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
            "kinds of model": {**model_kinds(), "exact": "p* itself, of settings that publish it"},
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
    """Measure speed, each figure as a ratio within one run, with absolute rates beside it."""

    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        """Measure and print."""
        from rich.console import Console

        from gents_gym.bench.benchmarks import run_benchmarks, tabulate

        with Console(stderr=True).status("measuring"):
            found = run_benchmarks()
        print(json.dumps(found, indent=2) if self.json else tabulate(found))


Command = (
    Annotated[List, subcommand("list")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Train, subcommand("train")]
    | Annotated[MeasureLosses, subcommand("losses")]
    | Annotated[NewsCommands, subcommand("news")]
    | Annotated[Bench, subcommand("bench")]
)


def run() -> None:
    """Run the command line; bad input ends in one line and exit status 2."""
    sys.path.append("")  # so that package.module:Class finds modules in the folder one stands in
    try:
        command = _parse()
        from threadpoolctl import threadpool_limits  # not for --help, which ends in the line above

        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for torch, which is loaded where it is used
        with threadpool_limits(1):  # small matrices: threads only get in each other's way
            command.run()
    except (InputError, MemoryError) as error:
        print(f"gents-gym: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # who read the output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _parse() -> List | Evaluate | Report | Reproduce | Train | MeasureLosses | NewsCommands | Bench:
    """Return the command; tyro's boxed complaints become one line."""
    flags = [word.partition("=")[0] for word in sys.argv[1:] if word.startswith("--")]
    if twice := [flag for flag in flags if flags.count(flag) > 1]:
        raise InputError(
            f"{twice[0]} must be given once, with all its values behind it, got it {flags.count(twice[0])} times"
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
