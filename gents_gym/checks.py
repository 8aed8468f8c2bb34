"""Checks arguments of public functions; each error names the argument, the rule and the value."""

import difflib
import importlib
import math
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = "biuf"  # dtype kinds that are real numbers
UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
MOST_SHOWN = 200  # characters of a value in an error; of a longer one, only the type is shown
LONGEST = 10**6  # most repeats of anything: each takes a millisecond or more


class InputError(ValueError):
    """An argument breaks a documented rule; the message names the rule and the value."""


class InputTypeError(InputError, TypeError):
    """An argument has the wrong type or an unknown name; also a TypeError, as Python's own functions raise."""


class TaskError(InputError):
    """One task of a batch breaks a rule; ``position`` is its index."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def need(module: str, what: str, extra: str) -> Any:
    """Return the optional ``module`` that ``what`` needs. If it is missing, the error names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        rule = f"{what} needs the package {module.split('.')[0]!r}: pip install 'gents-gym[{extra}]'"
        raise InputError(f"{rule} ({error})") from error


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Check that ``value`` is a whole number of at least ``minimum``; return it as an int."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{name} must be a whole number, got {value!r}")
    if value < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_number(name: str, value: Any, minimum: float = -math.inf, *, above: bool = False) -> float:
    """Check that ``value`` is finite and at least ``minimum``, or above it if ``above``; return it as a float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise InputTypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise InputError(f"{name} must be finite, got {value}")
    if value < minimum or (above and value == minimum):
        raise InputError(f"{name} must be {'above' if above else 'at least'} {minimum:g}, got {value}")
    return float(value)


def check_repeats(name: str, value: Any, minimum: int = 1) -> int:
    """Check that ``value`` is a number of repeats that ends within days; return it as an int."""
    if (number := check_integer(name, value, minimum)) > LONGEST:
        raise InputError(f"{name} must be at most {LONGEST}, or it takes weeks to years, got {value}")
    return number


def check_count(name: str, values: Any) -> int:
    """Check that ``values`` are a sequence; return their number."""
    try:
        return len(values)
    except OverflowError:  # for a range with more numbers than fit into memory
        return sys.maxsize
    except TypeError:
        raise InputTypeError(f"{name} must be a list of whole numbers, got {values!r}") from None


@cache
def machine_memory() -> float:
    """Return how many bytes this process may use, limited by the machine, the container or ``ulimit -v``."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):  # not available on Windows
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):  # no control group, or one without a limit
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(ImportError):
        import resource

        limits += [limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit != resource.RLIM_INFINITY]
    return min(limits, default=math.inf)


def check_memory(n_bytes: int, **sizes: int) -> None:
    """Raise if arrays of ``sizes`` do not fit into memory.

    Operating systems promise more memory than they have and kill a process that uses it, so a MemoryError is not
    enough.

    Args:
        n_bytes: The bytes of the arrays, estimated low, so that nothing that fits is refused.
        **sizes: The arguments that determine it, for the error.
    """
    if n_bytes > (memory := machine_memory()):
        asked = ", ".join(f"{name}={value}" for name, value in sizes.items())
        rule = f"{asked} must fit into this machine's {_readable(int(memory))} of memory"
        raise InputError(f"{rule}, got sizes that take {_readable(n_bytes)} or more")


def _readable(n_bytes: int) -> str:
    for unit in UNITS:
        if n_bytes < 1000:
            return f"{n_bytes} {unit}"
        n_bytes //= 1000
    return f"1000 {UNITS[-1]}"


def check_flag(name: str, value: Any) -> bool:
    """Check that ``value`` is a bool; return it."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_type(name: str, value: Any, wanted: Any) -> Any:
    """Check that ``value`` is an instance of ``wanted``, which may be Callable; return it."""
    if not isinstance(value, wanted):
        told, text = getattr(wanted, "__name__", wanted), repr(value)
        shown = text if len(text) <= MOST_SHOWN else f"an object of {type(value).__name__}"
        raise InputTypeError(f"{name} must be a {told}, got {shown}")
    return value


def check_reward_fn(value: Any) -> None:
    """Raise unless ``value`` can be called, as R must be."""
    if not callable(value):
        raise InputTypeError(f"reward_fn must be a function of outcomes, got {value!r}")


def check_choice(kind: str, value: Any, choices: Iterable[str]) -> str:
    """Check that ``value`` is one of ``choices``; return it. The error suggests the nearest."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    raise InputError(f"unknown {kind} {value!r}; {_hint(value, known)}")


def check_option(kind: str, option: str, choices: Iterable[str]) -> None:
    """Raise unless ``kind`` has the keyword argument ``option``, with Python's own words, which libraries read."""
    if option not in (known := list(choices)):
        problem = f"unexpected keyword argument {option!r}"
        raise InputTypeError(f"unknown option of {kind}: {problem}; {_hint(option, known)}")


def _hint(value: Any, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(value), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known)) or 'none'}"


def check_array(
    name: str, value: Any, axes: str, shape: tuple[int, ...], dtype: Any = np.float32, per_task: int | None = None
) -> np.ndarray:
    """Return ``value`` as a finite array of ``shape``; a size of -1 in ``shape`` admits any.

    With ``per_task``, that many rows of the first axis belong to each task, and the error about a number that is not
    finite is a :class:`TaskError`.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind not in NUMBERS or (array.dtype.kind == "f" and np.dtype(dtype).kind != "f"):
            raise TypeError(array.dtype)
        if array.dtype != dtype:
            with np.errstate(over="ignore"):  # numbers that the type cannot hold become infinite and are refused below
                array = array.astype(dtype)
    except MemoryError as error:
        raise InputError(f"{name} must be an array that fits into memory, got {_sort(value)}") from error
    except (TypeError, ValueError, OverflowError) as error:
        what = "whole numbers" if np.dtype(dtype).kind != "f" else "numbers"
        raise InputTypeError(f"{name} must be an array of {what}, got {_sort(value)}") from error
    if array.shape != shape and not _fits(array.shape, shape):
        wanted = axes if -1 in shape else f"{axes}=({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        raise InputError(f"{name} must have shape {wanted}, got {array.shape}")
    if np.count_nonzero(np.isfinite(array)) < array.size:  # faster than all() for the small arrays of a decision
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        problem = f"{name} must be finite, got {array[where]} at index {where}"
        raise InputError(problem) if per_task is None else TaskError(problem, where[0] // per_task)
    return array


def check_available(value: Any, axes: str, shape: tuple[int, ...]) -> np.ndarray:
    """Check that ``value`` holds booleans of ``shape``, at least one True along the last axis; return them."""
    available = check_array("available", value, axes, shape, np.bool_)
    some = available.any(axis=-1)
    if np.count_nonzero(some) < some.size:
        where = tuple(int(i) for i in np.argwhere(~some)[0])
        raise TaskError(f"available must have an action that can be played, got none at index {where}", where[0])
    return available


def check_played(actions: np.ndarray, available: np.ndarray) -> None:
    """Raise unless each of the actions (B,) is ``available`` (B, A)."""
    odd = ~np.take_along_axis(available, actions[:, None], axis=1)[:, 0].astype(np.bool_)
    if np.count_nonzero(odd):
        task = int(odd.argmax())
        some = np.flatnonzero(available[task])
        known = ", ".join(map(str, some[:10])) + (", ..." if len(some) > 10 else "")
        raise TaskError(f"action must be available ({known}), got {actions[task]} in task {task}", task)


def check_contexts(contexts: Any, n_tasks: int, size: int, dtype: Any = np.float32) -> np.ndarray:
    """Check that contexts are (B, C, D) or (B, D); return them as (B, C, D), with C = 1 for the latter."""
    if np.ndim(contexts) == 3:
        return check_array("contexts", contexts, "(B, C, D)", (n_tasks, -1, size), dtype)
    return check_array("context", contexts, "(B, D)", (n_tasks, size), dtype)[:, None]


def _sort(value: Any) -> str:
    """Return a description of an array's type, or of another object."""
    return f"dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(want in (-1, got) for want, got in zip(wanted, shape, strict=True))


def check_rngs(rngs: Sequence[Any], n_tasks: int) -> Sequence[Any]:
    """Check that there is one generator per task; return ``rngs``."""
    if len(rngs) != n_tasks:
        raise InputError(f"rngs must be one generator per task, B={n_tasks}, got {len(rngs)}")
    return rngs


def check_actions(value: Any, n_tasks: int, n_actions: int) -> np.ndarray:
    """Check that ``value`` has (B,) action numbers in [0, n_actions); return them."""
    try:
        actions = np.asarray(value)
    except (ValueError, MemoryError):  # a ragged list, or an endless range
        raise InputError(f"action must have shape (B,)=({n_tasks},), got {value!r}") from None
    if actions.shape != (n_tasks,):
        raise InputError(f"action must have shape (B,)=({n_tasks},), got {actions.shape}")
    if actions.dtype.kind == "f" and np.isnan(actions).any():
        raise TaskError("action must be a whole number, got nan", int(np.isnan(actions).argmax()))
    if actions.dtype.kind not in "iu":
        raise InputTypeError(f"action must be a whole number, got dtype {actions.dtype}")
    odd = (actions < 0) | (actions >= n_actions)
    if np.count_nonzero(odd):
        position = int(odd.argmax())
        raise TaskError(f"action must lie in [0, {n_actions}), got {actions[position]}", position)
    return actions.astype(np.int64, copy=False)
