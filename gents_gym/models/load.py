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


def model_folder(name: str | Path) -> Path:
    """Return the folder of the bundled model with the id ``name``, or the folder that ``name`` is itself."""
    if not isinstance(name, str | Path):
        raise InputError(f"a model must be named by its id or folder, got {name!r}")
    folder = WEIGHTS / registry.MODELS[str(name)] if name in registry.MODELS else Path(name)
    if not folder.is_dir():
        check_choice("model, and no folder:", str(name), registry.MODELS)
    return folder


def load_model(name: str | Path) -> SequenceModel:
    """Return a trained model, ready to predict.

    Args:
        name: The id of a bundled model ("synthetic-filter"), or a folder that training wrote.
    """
    return from_pretrained(model_folder(name))


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
    return model.eval()
