"""Says whether a trained model has learned from the rows of a log."""

from typing import Any

from gents_gym.logs.record import Logs
from gents_gym.models.notes import read_columns


def learned_rows(model: Any, logs: Logs) -> int:
    """Return how many of the first rows of a log a model learned from; 0 if it learned from another log."""
    columns = read_columns(model)
    if columns.get("sha256") != logs.content_hash:
        return 0
    until = columns.get("until")
    return until if isinstance(until, int) else len(logs)
