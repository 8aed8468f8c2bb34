"""Reads and writes the files in which ``gents-gym tune`` stores which agent plays best for which tasks."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gents_gym.checks import InputError
from gents_gym.files import as_path, read_file
from gents_gym.models.banks import context_law, urn_mass
from gents_gym.models.load import model_folders
from gents_gym.models.sequence import CONFIG, TENSORS, SequenceModel
from gents_gym.schema import check_schema, positive, whole
from gents_gym.seals import check_seal, is_sha256, sha256, write_described
from gents_gym.types import TaskInfo

TUNED = "tuned.json"
FORMAT = "gents_gym.tuned.1"
Entry = Mapping[str, Any]
Law = str | float | None

EVIDENCE = dict.fromkeys(("mean", "se", "quantile", "score", "behind", "behind_se"), float)
SCHEMA = {
    "format": str,
    "model": {"name": str, "sha256": is_sha256},
    "entries": [
        {
            "horizon": positive,
            "n_actions": positive,
            "contexts": str | float,
            "agent": str,
            "risk": float,
            "quantile": float,
            "seed": whole,
            "env": str,
            "rungs": [{"tasks": positive, "agents": {str: EVIDENCE}}],
            "versions": {str: str},
        }
    ],
    "sha256": {TUNED: is_sha256},
}


def weights_sha256(folder: Path) -> str:
    """Return the sha256 of a model's tensors, which identifies the model of a tuned file."""
    try:
        return sha256(read_file(folder / TENSORS))
    except OSError as error:
        raise InputError(f"'{folder}' must be a model's folder with a {TENSORS} ({error.strerror or error})") from error


def tuned_path(place: str | Path) -> Path:
    """Return ``place``, or the tuned file in it if it is a folder."""
    path = as_path("tuned", place)
    return path / TUNED if path.is_dir() else path


def read_tuned(path: Path) -> dict[str, Any]:
    """Return the content of a tuned file. Raises if it differs from what :func:`write_tuned` writes."""
    try:
        data = read_file(path)
        value: dict[str, Any] = json.loads(data)
        check_schema(value, SCHEMA)
        if value["format"] != FORMAT:
            raise ValueError(f"its format is {value['format'][:60]!r}, not {FORMAT!r}")
        if not value["entries"]:
            raise ValueError("it has no entries")
    except FileNotFoundError:
        raise InputError(f"no agent is tuned in '{path}': {_how(path.parent)}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path}' must be a whole file of gents-gym tune ({error}): {_how(path.parent)}") from error
    check_seal(path, data, value["sha256"][TUNED])
    return value


def _how(folder: Path) -> str:
    """Return advice: the command that makes the tuned file of a model's folder."""
    return f"run `gents-gym tune --model {folder.name} --out FOLDER`, and name it, auto(tuned=FOLDER)"


def write_tuned(folder: Path, model: str, sha256: str, entry: Entry) -> Path:
    """Add an entry to a folder's tuned file, next to those for other sizes and contexts; return the file."""
    path, entries = folder / TUNED, [entry]
    if path.exists() and (there := read_tuned(path))["model"]["sha256"] == sha256:
        entries += [other for other in there["entries"] if _key(other) != _key(entry)]
    entries.sort(key=lambda one: (str(one["contexts"]), one["horizon"], one["n_actions"]))
    value = {"format": FORMAT, "model": {"name": model, "sha256": sha256}, "entries": entries}
    write_described(folder, TUNED, value, {})
    return path


def _key(entry: Entry) -> tuple[Any, ...]:
    return entry["horizon"], entry["n_actions"], entry["contexts"]


def find_tuned(model: str | Path | None, tuned: str | Path | None, default: str) -> tuple[str | Path, Path | None]:
    """Return a model's name, and the tuned file to read; None: the one in the folder of the model.

    Args:
        model: The model's name, or a folder that ``gents-gym tune`` wrote for a model elsewhere; None: the one that
            the tuned file names, or the default.
        tuned: The tuned file or its folder; None: the model's own.
        default: The model's name if nothing names one.
    """
    if tuned is None and isinstance(model, str | Path) and _is_tuned_alone(as_path("model", model)):
        model, tuned = None, model
    path = None if tuned is None else tuned_path(tuned)
    if model is None:
        model = default if path is None else _named_model(path)
    if model == "exact":
        raise InputError("model must be a trained one, whose tuned file says which agent to play, got 'exact'")
    model_folders(model)
    return model, path


def _named_model(path: Path) -> str:
    """Return the model that a tuned file names; a file cannot name code."""
    name = str(read_tuned(path)["model"]["name"])
    if ":" in name:
        raise InputError(f"'{path}' must name a model by its id or folder, never package.module:Class, got {name!r}")
    return name


def _is_tuned_alone(folder: Path) -> bool:
    """Return whether a folder has a tuned file but no model."""
    return (folder / TUNED).exists() and not (folder / TENSORS).exists()


def check_law(contexts: Law) -> None:
    """Raise unless ``contexts`` names a law of contexts, or is None."""
    context_law(contexts, math.inf)


def tuned_files(model: str | Path, path: Path | None) -> list[Path]:
    """Return the files that determine what is played on a model: its own, and the tuned ones."""
    folders = model_folders(model)
    own = [folder / name for folder in folders for name in (CONFIG, TENSORS)]
    return own + ([folder / TUNED for folder in folders if (folder / TUNED).exists()] if path is None else [path])


def tuned_entry(
    path: Path | None, folder: Path, model: SequenceModel, info: TaskInfo, horizon: int | None, contexts: Law
) -> Entry:
    """Return the entry for tasks described by ``info``. Raises if the file belongs to another model.

    Args:
        path: The tuned file; None: the one in the model's folder.
        folder: The model's folder.
        model: The model.
        info: What is known of the tasks.
        horizon: T, if the tasks do not specify it.
        contexts: The law of contexts; None: the model's own.
    """
    path = folder / TUNED if path is None else path
    tuned, horizon = read_tuned(path), info.horizon or horizon
    if tuned["model"]["sha256"] != weights_sha256(folder):
        got = f"one for other weights, {tuned['model']['name']!r}"
        raise InputError(f"'{path}' must be tuned for the model in '{folder}', got {got}: {_how(folder)}")
    if horizon is None:
        raise InputError("horizon must be known or given, as auto(horizon=500), got None")
    alpha = urn_mass(model)
    wanted = None if contexts is None else context_law(contexts, alpha)
    return pick_entry(path, tuned["entries"], horizon, info.n_actions, wanted, context_law(None, alpha))


def pick_entry(
    path: Path, entries: Sequence[Entry], horizon: int, n_actions: int, contexts: Law, own: str | float
) -> Entry:
    """Return the entry for tasks of these sizes and contexts.

    Contexts must follow a law that was tuned for. Among its entries, the nearest in |log(T/T')| + |log(A/A')| is
    picked, and of two equally near ones the one with the longer horizon.

    Args:
        path: The file, for the errors.
        entries: What it holds.
        horizon: T.
        n_actions: A.
        contexts: The law of contexts; None: the model's own, or else the only one in the file.
        own: The model's own law of contexts.
    """
    laws = list(dict.fromkeys(entry["contexts"] for entry in entries))
    law = contexts if contexts is not None else laws[0] if len(laws) == 1 else own
    if law not in laws:
        known, cure = ", ".join(str(one) for one in laws), f"run gents-gym tune --contexts {law}"
        raise InputError(f"contexts must be among those in '{path}', {known}, got {law}: name one of them, or {cure}")

    def distance(entry: Entry) -> tuple[float, int, int]:
        apart = abs(math.log(horizon / entry["horizon"])) + abs(math.log(n_actions / entry["n_actions"]))
        return apart, -entry["horizon"], -entry["n_actions"]

    return min((entry for entry in entries if entry["contexts"] == law), key=distance)
