"""Reads what a trained model's folder says of it, without its weights."""

from pathlib import Path
from typing import Any

from gents_gym import registry
from gents_gym.models.load import is_trained, model_folders, read_config
from gents_gym.models.sequence import CONFIG


def read_notes(model: Any) -> dict[str, Any]:
    """Return the config.json of the one folder that ``model`` names; {} if it is an object or names none."""
    if not isinstance(model, str | Path) or str(model) in registry.PRESETS:
        return {}
    if ":" in str(model) and not is_trained(str(model)):
        return {}
    (folder,) = model_folders(model)
    return read_config(folder / CONFIG) if folder.is_dir() else {}  # "exact" and "untrained" have none


def read_columns(model: Any) -> dict[str, Any]:
    """Return what a model keeps of the columns of its log; {} if it was not trained on a log."""
    columns = (read_notes(model).get("notes") or {}).get("columns")
    return columns if isinstance(columns, dict) and columns.get("contexts") else {}
