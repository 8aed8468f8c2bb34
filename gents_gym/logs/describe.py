"""Says in words what was taken from a log."""

from datetime import UTC, datetime

import numpy as np

from gents_gym.logs.record import Logs
from gents_gym.words import count

SECONDS = (1e8, 1e11)  # a time between them is taken for seconds since 1970 and shown as a date
MOST = 12  # names of columns in a line


def describe(logs: Logs) -> list[str]:
    """Return a line for each role: its columns, and what is in them."""
    assert logs.found is not None
    assert logs.encoding is not None
    found, n_tasks = logs.found, sum(1 for _ in logs.streams())
    rows = {"action": f"{found.action}: {count(len(logs.action_ids), 'action')}"}
    if found.task is not None:
        rows["task"] = f"{found.task}: {count(n_tasks, 'task')}"
    rows["outcome"] = f"{found.outcome}: {logs.likelihood}, mean {logs.outcomes.mean(dtype=np.float64):.4g}"
    rows["context"] = _columns(logs.encoding.contexts, logs.contexts.shape[1])
    rows["action features"] = _columns(logs.encoding.action_features, logs.action_features.shape[1])
    if found.time is not None and logs.times is not None:
        rows["time"] = f"{found.time}: {_time(logs.times[0])} to {_time(logs.times[-1])}"
    if logs.propensities is not None:
        least, most = logs.propensities.min(), logs.propensities.max()
        rows["propensity"] = f"{found.propensity or 'uniform'}: {least:.4g} to {most:.4g}"
    rows["not used"] = ", ".join(found.unused) or "none"
    return [f"{logs.name}: {len(logs)} rows", *(f"  {role:<16} {text}" for role, text in rows.items())]


def _columns(columns: tuple[object, ...], size: int) -> str:
    names = [str(column) for column in columns]
    if len(names) > MOST:
        names = [*names[: MOST - 1], "...", names[-1]]
    return f"{', '.join(names) or 'none'}: {size} entr{'y' if size == 1 else 'ies'}"


def _time(value: float) -> str:
    if SECONDS[0] < value < SECONDS[1]:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:g}"
