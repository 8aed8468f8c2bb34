"""Models by name or folder: a bundled model's id or a path in, the model out."""

import json
from pathlib import Path

from gents_gym import registry
from gents_gym.checks import InputError, check_choice
from gents_gym.models.filter import FilterModel
from gents_gym.models.paper import PaperModel
from gents_gym.models.sequence import FORMAT, SequenceModel

KINDS: dict[str, type[SequenceModel]] = {model.kind: model for model in (FilterModel, PaperModel)}
WEIGHTS = Path(__file__).parent / "weights"


def model_folders(name: str | Path) -> list[Path]:
    """Return the folders of the bundled models that ``name`` stands for, or the one folder that it is itself.

    Args:
        name: A bundled model's id, a preset ("filter") for its models of all settings, or a folder.
    """
    if not isinstance(name, str | Path):
        raise InputError(f"a model must be named by its id, its preset or its folder, got {name!r}")
    ids = registry.FAMILIES.get(str(name), (str(name),))
    folders = [WEIGHTS / registry.MODELS[id] if id in registry.MODELS else Path(name) for id in ids]
    if not folders[0].is_dir():
        check_choice("model, and no folder:", str(name), [*registry.FAMILIES, *registry.MODELS])
    return folders


def load_model(name: str | Path) -> SequenceModel:
    """Return a trained model, ready to predict.

    Args:
        name: The id of a bundled model ("synthetic-filter"), or a folder that training wrote.
    """
    folders = model_folders(name)
    if name in registry.FAMILIES:
        raise InputError(f"model must be one of {', '.join(registry.FAMILIES[str(name)])}, got the preset {name!r}")
    return from_pretrained(folders[0])


def load_fitting_model(name: str | Path, action_dim: int, context_dim: int) -> SequenceModel:
    """Return the model that ``name`` stands for; of a preset, the first one of the task's sizes F and D."""
    models = [from_pretrained(folder) for folder in model_folders(name)]
    for model in models:
        if (model.config.action_dim, model.config.context_dim) == (action_dim, context_dim):
            return model
    known = ", ".join(
        f"{id} has {m.config.action_dim} and {m.config.context_dim}"
        for id, m in zip(registry.FAMILIES.get(str(name), (name,)), models, strict=True)
    )
    raise InputError(
        f"model must be trained on tasks with {action_dim} action features and contexts of {context_dim} entries; "
        f"{known}: train one with `gents-gym train` and name its folder"
    )


def from_pretrained(folder: Path) -> SequenceModel:
    """Return the model in ``folder``; nothing in it is ever run as code."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{folder}' must be a model's folder with a whole config.json ({error})") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        got = config.get("format") if isinstance(config, dict) else config
        raise InputError(f"'{path}' must have the format {FORMAT!r}, got {got!r}: it is of another version or origin")
    unexpected = config.keys() - {"format", "kind", "config", "notes"}
    if unexpected or not isinstance(config.get("config"), dict):
        raise InputError(f"'{path}' must have format, kind, config and notes alone, got {', '.join(sorted(config))}")
    kind = KINDS[check_choice("kind of model", config.get("kind"), KINDS)]
    model = kind.from_config(config["config"], path)
    model.load_tensors(folder / "model.safetensors")
    notes = config.get("notes")
    model.space = notes.get("space") if isinstance(notes, dict) else None
    return model.eval()
