"""What a trained model's folder says of the log behind it."""

from pathlib import Path
from typing import Any

from gents_gym.logs.record import Logs
from gents_gym.models.load import model_folders, read_config
from gents_gym.models.sequence import CONFIG


def read_columns(model: str | Path) -> dict[str, Any]:
    """Return what a model keeps of the columns of its log; {} if it was not trained on a log."""
    notes = read_config(model_folders(model)[0] / CONFIG).get("notes") or {}
    columns = notes.get("columns")
    return columns if isinstance(columns, dict) and columns.get("contexts") else {}


def learned_rows(columns: dict[str, Any], logs: Logs) -> int:
    """Return how many of the first rows of a log a model learned from, in part at least; 0 if its log was another."""
    if columns.get("sha256") != logs.content_hash:
        return 0
    until = columns.get("until")
    return until if isinstance(until, int) else len(logs)
