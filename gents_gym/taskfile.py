"""Reads and writes batches of tasks as safetensors, with a seal that covers both arrays and labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from gents_gym.checks import InputError
from gents_gym.files import digest, write_whole
from gents_gym.registry import POLICIES
from gents_gym.seals import read_tensors
from gents_gym.specs import check_registered

FORMAT = "gents_gym.tasks.1"
ARRAYS = ("action_features", "contexts", "outcomes", "means", "hidden_features", "available")  # in the seal's order
NEEDED = ARRAYS[:3]
LABELS = {"oracle": str, "reward_fn": str, "texts": list, "space": str, "likelihood": str, "known_columns": list}


def write_tasks(path: str | Path, arrays: dict[str, np.ndarray], labels: dict[str, Any]) -> Path:
    """Write a batch to one file, whole or not at all.

    Args:
        path: The file.
        arrays: The arrays of ``ARRAYS`` that the batch has, by name.
        labels: Everything else of the batch, as JSON values.
    """
    told = json.dumps({"format": FORMAT, **labels, "sha256": _seal(arrays, labels)})
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return write_whole(path, save(whole, metadata={"tasks": told}))


def read_tasks(path: str | Path, oracle: str | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and labels of a file that :func:`write_tasks` wrote. Raises if it was changed.

    Args:
        path: The file.
        oracle: The file's policy class as the caller names it; None: the file must name a registered id.
    """
    try:
        arrays, texts = read_tensors(Path(path), "numpy")
        labels = json.loads(texts["tasks"])
        form, sealed = labels.pop("format"), labels.pop("sha256")
        if form != FORMAT or not {*NEEDED} <= arrays.keys() <= {*ARRAYS}:
            raise ValueError(f"its format is {form!r}, with {', '.join(arrays)}")
        _check_labels(labels)
    except (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"path must be a whole file written by Tasks.save, got '{path}' ({error!r})") from error
    if _seal(arrays, labels) != sealed:
        raise InputError(f"'{path}' is damaged: its content does not match its sha256")
    named = labels["oracle"]
    if oracle is None:
        check_registered("oracle", named, POLICIES)
    elif oracle != named:
        raise InputError(f"oracle must be the one in the file, {named!r}, got {oracle!r}")
    return arrays, labels


def _check_labels(labels: dict[str, Any]) -> None:
    """Raise a ValueError unless these are the labels of a batch."""
    odd = [name for name, value in labels.items() if not isinstance(value, LABELS.get(name, ()))]
    odd += [name for name in ("oracle", "reward_fn") if name not in labels]
    if odd:
        raise ValueError(f"its label {odd[0]!r} is {labels.get(odd[0])!r}")


def _seal(arrays: dict[str, np.ndarray], labels: dict[str, Any]) -> str:
    content = digest(*(arrays[name] for name in ARRAYS if name in arrays))
    return digest(np.frombuffer(json.dumps([labels, content]).encode(), np.uint8))
