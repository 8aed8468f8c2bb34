"""Measures how long importing the package and starting the command line take, compared with importing Gymnasium."""

import resource
import subprocess
import sys
from collections.abc import Callable

from gents_gym.bench.timing import Sizes, compete


def measure_startup(sizes: Sizes) -> dict[str, float]:
    """Return the ratios by name; lower is better. Each contestant runs in new processes, several times and in turn.

    Imports are timed inside the process, without the interpreter's start. The command line is timed as a whole process,
    compared with one that imports Gymnasium. All times are processor times, which other work on the machine affects
    least.
    """
    contestants = {
        "gymnasium": _importing("gymnasium"),
        "package": _importing("gents_gym"),
        "bare": _running("-c", "import gymnasium"),
        "help": _running("-m", "gents_gym.cli", "--help"),
    }
    per_second = compete(contestants, sizes.starts)
    return {
        "import_vs_gymnasium": per_second.ratio("gymnasium", "package"),
        "help_vs_gymnasium": per_second.ratio("bare", "help"),
        "import_milliseconds": 1000 / per_second.rate("package"),
        "help_milliseconds": 1000 / per_second.rate("help"),
    }


def _importing(module: str) -> Callable[[], float]:
    clock = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return lambda: 1 / float(_run("-c", clock))


def _running(*arguments: str) -> Callable[[], float]:
    def run() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1 / (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)

    return run


def _run(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
