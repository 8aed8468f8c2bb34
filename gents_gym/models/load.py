"""Loads models by name: a bundled model's id, a preset, a folder or ``package.module:Class``."""

import json
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import numpy as np

from gents_gym import registry
from gents_gym.checks import InputError, check_choice
from gents_gym.construct import find, make_object, parse_spec
from gents_gym.files import as_path, read_file
from gents_gym.models.action import PerAction
from gents_gym.models.exact import ExactModel
from gents_gym.models.reference import ReferenceModel
from gents_gym.models.sequence import CONFIG, FORMAT, TENSORS, SequenceModel
from gents_gym.schema import check_schema
from gents_gym.seals import check_seal, is_sha256
from gents_gym.types import ActionModel, Belief, Model, TaskInfo, Truth

WEIGHTS = Path(__file__).parent / "weights"
# Names of p*, of tasks that publish it.
PUBLISHED: dict[str, Callable[[Truth], Model]] = {"exact": ExactModel, "reference": ReferenceModel}
UNTRAINED = "untrained"  # the name of a filter with the prior N(0, I)
WHOLE = ("begin", "likelihood", "context_features", "action_context_features")  # the parts of a Model
VERBS = ("expected", "variance", "decide", "observe", "complete", "fork", "add", "state", "restore")  # of a Belief
SCHEMA = {  # format of config.json
    "format": str,
    "kind": str,
    "config": dict,
    "notes?": lambda value: value is None or (isinstance(value, dict) and isinstance(value.get("space"), str | None)),
    "sha256?": {CONFIG: is_sha256, TENSORS: is_sha256},
}


def model_kinds() -> dict[str, str]:
    """Return all kinds of model with their classes, including those of other distributions."""
    theirs = {point.name: point.value for point in entry_points(group="gents_gym.models")}
    return {**theirs, **registry.MODELS}


def bundled_models() -> list[str]:
    """Return the ids of the bundled models."""
    return sorted(path.parent.name for path in WEIGHTS.glob("*/config.json"))


def bundled_family(preset: str) -> list[str]:
    """Return the bundled models of a preset, one per setting and kind of outcomes."""
    known = bundled_models()
    endings = ("", *(f"-{variant}" for variant in registry.OUTCOME_VARIANTS))
    ids = (f"{setting}-{preset}{ending}" for setting in registry.TASKS for ending in endings)
    return [id for id in ids if id in known]


def model_folders(name: str | Path) -> list[Path]:
    """Return the folders of the bundled models that ``name`` refers to, or the folder that it is.

    Args:
        name: A bundled model's id, a preset ("filter") for its models of all settings, a folder, or
            ``package.module:Class(folder=...)``.
    """
    if not isinstance(name, str | Path):
        raise InputError(f"a model must be named by its id, its preset or its folder, got {name!r}")
    if ":" in str(name):
        name = str(parse_spec(str(name))[1].get("folder", name))
    bundled = bundled_models()
    if str(name) in registry.PRESETS:
        return [WEIGHTS / id for id in bundled_family(str(name))]
    folder = WEIGHTS / str(name) if str(name) in bundled else as_path("model", name)
    if not folder.is_dir():
        check_choice("model or folder", str(name), [*registry.PRESETS, *bundled, *PUBLISHED, UNTRAINED])
    return [folder]


def load_model(name: str | Path, kind: type[SequenceModel] | str | None = None) -> SequenceModel:
    """Return a trained model, ready to predict.

    Args:
        name: The id of a bundled model ("synthetic-filter"), a folder that training wrote, or
            ``package.module:Class(folder=...)``, which names a folder and its class.
        kind: The model's class, or ``package.module:Class``, if its kind is not registered. A folder itself never
            brings code.
    """
    if ":" in str(name) and kind is None:
        kind = model_class(parse_spec(str(name))[0])
    if str(name) in (*PUBLISHED, UNTRAINED):
        raise InputError(f"model must have weights to load, got {str(name)!r}, which is made for the tasks it plays")
    folders = model_folders(name)
    if str(name) in registry.PRESETS:
        family = ", ".join(bundled_family(str(name)))
        raise InputError(f"model must be one of {family}, got the preset {str(name)!r}")
    return from_pretrained(folders[0], kind)


def check_model_name(model: Any) -> None:
    """Raise unless ``model`` is a model or names one; weights are read when tasks start."""
    if isinstance(model, str | Path):
        if ":" in str(model):
            if is_trained(str(model)):
                model_folders(model)
        elif model not in (*PUBLISHED, UNTRAINED):
            model_folders(model)
    else:
        as_model(model)


def resolve_model(model: Any, info: TaskInfo) -> Model:
    """Return the model that ``model`` is or names, for tasks described by ``info``.

    Args:
        model: A model, or the name of one: a bundled model's id; a preset, which selects its bundled model for the
            tasks' sizes and outcomes; a folder; ``package.module:Class`` with options, of which a subclass of
            :class:`SequenceModel` takes only ``folder``; "exact", p* itself; "reference", p* by a chain, if
            there is no closed form; or "untrained", a filter without offline training.
        info: What is known of the tasks.
    """
    if not isinstance(model, str | Path):
        return as_model(model)
    if model in PUBLISHED:
        if info.truth is None:
            rule = f"model {str(model)!r} is p* of settings that publish it (if φ is hidden, exact-twin knows it)"
            raise InputError(f"{rule}, and these tasks do not")
        return PUBLISHED[str(model)](info.truth)
    if model == UNTRAINED:
        return untrained_filter(info)
    if ":" in str(model) and not is_trained(str(model)):
        return as_model(make_object("model", str(model), {}, {}))
    return fitting_model(model, info)[1]


def untrained_filter(info: TaskInfo) -> SequenceModel:
    """Return a filter of the tasks' sizes with the prior N(0, I), which imagines only the task's own contexts.

    It does not scale contexts. Gaussian outcomes have noise of variance 1.
    """
    kind = model_class("filter")
    sizes = (info.action_features.shape[-1], info.context_dim)
    return kind(kind.config_class(*sizes, likelihood=str(info.likelihood))).eval()


def begin_belief(model: Any, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> tuple[Model, Belief]:
    """Return the model that ``model`` is or names, and its belief about B new tasks; raise if it returns no belief."""
    found = resolve_model(model, info)
    belief = found.begin(info, rngs)
    if _missing(belief, VERBS):
        verbs = f"{', '.join(VERBS[:-1])} and {VERBS[-1]}"
        raise InputError(f"the model's begin must return a belief with {verbs} (docs/own_model.md), got {belief!r}")
    return found, belief


def is_trained(spec: str) -> bool:
    """Return whether "package.module:Class(...)" names a class of trained models, whose weights are in a folder."""
    name, options = parse_spec(spec)
    found = find("model", name, {})
    if not isinstance(found, type) or not issubclass(found, SequenceModel):
        return False
    if options.keys() != {"folder"}:
        raise InputError(f"model {name!r} is trained: name the folder of its weights, {name}(folder=...), got {spec!r}")
    return True


def as_model(model: Any) -> Model:
    """Return ``model``, adapted if it only has ``start``, ``predict`` and ``append``."""
    if isinstance(model, type):
        raise InputError(f"model must be a model, not a class, got {model!r}: make one first")
    if not _missing(model, WHOLE):
        return cast(Model, model)
    if isinstance(model, ActionModel):
        return PerAction(model)
    rule = "a model's id, preset or folder, or have start, predict and append, or begin (docs/own_model.md)"
    raise InputError(f"model must be {rule}, got {model!r}, which lacks {', '.join(missing_parts(model))}")


def missing_parts(model: Any) -> list[str]:
    """Return the methods that an object lacks to be a model: a joint one if it has ``begin``, else a per-action one."""
    return _missing(model, WHOLE if hasattr(model, "begin") else ("start", "predict", "append"))


def _missing(thing: Any, parts: Sequence[str]) -> list[str]:
    """Return which of the parts an object lacks; ``isinstance`` of a protocol is too slow for every live decision."""
    return [part for part in parts if not hasattr(thing, part)]


def fitting_model(name: str | Path, info: TaskInfo) -> tuple[Path, SequenceModel]:
    """Return the first model among those named ``name`` that fits the tasks' sizes and likelihood, and its folder."""
    sizes = (info.action_features.shape[-1], info.context_dim)
    # A user who names one model knows what its contexts are.
    timeless = str(name) in registry.PRESETS and not _knows_time(info)
    kind = parse_spec(str(name))[0] if ":" in str(name) else None
    known = []
    for folder in model_folders(name):
        model = from_pretrained(folder, kind)
        if model.fits(*sizes) and model.likelihood == info.likelihood and not (timeless and model.ordered):
            return folder, model
        known.append(f"{folder.name} has {model.describe_sizes()}, {model.likelihood} outcomes")
    found = known[0] if len(known) == 1 else f"{known[0]}, and {len(known) - 1} more of {name!r} do not fit either"
    raise InputError(
        f"model must be trained on tasks with {sizes[0]} action features, contexts of {sizes[1]} entries and "
        f"{info.likelihood} outcomes; {found}: "
        f"train one with `gents-gym train --env ENV --out FOLDER` and name its folder, or name {UNTRAINED!r}"
    )


def _knows_time(info: TaskInfo) -> bool:
    """Whether the last entry of contexts is known ahead, as time is."""
    return info.known_contexts is not None and bool(np.isfinite(info.known_contexts[..., -1]).all())


def from_pretrained(folder: Path, kind: type[SequenceModel] | str | None = None) -> SequenceModel:
    """Return the model in ``folder``; nothing in it is ever run as code."""
    path = folder / CONFIG
    config = read_config(path)
    model = _model_class(config["kind"], kind, path).from_config(config["config"], path)
    model.load_tensors(folder / TENSORS, config.get("sha256", {}).get(TENSORS))
    model.space = (config.get("notes") or {}).get("space")
    return model.eval()


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of the config.json in a model's folder. Raises if the file is damaged or not a model's."""
    try:
        data = read_file(path)
        config = json.loads(data)
        form = config.get("format") if isinstance(config, dict) else config
        if form == FORMAT:
            check_schema(config, SCHEMA)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path.parent}' must be a model's folder with a whole {CONFIG} ({error})") from error
    if form != FORMAT:
        got = repr(form)[:60]
        raise InputError(f"'{path}' must have the format {FORMAT!r}, got {got}: it is of another version or origin")
    check_seal(path, data, config.get("sha256", {}).get(CONFIG))
    return dict(config)


def _model_class(named: Any, kind: type[SequenceModel] | str | None, path: Path) -> type[SequenceModel]:
    """Return the class of a model's folder: a registered kind, or the one that the caller names."""
    if kind is None:
        if named not in registry.MODELS and named not in (known := model_kinds()):
            rule = f"'{path}' must have a registered kind ({', '.join(sorted(known))}), got {named!r}"
            raise InputError(f"{rule}: name its class, as load_model(folder, kind=Class) or module:Class(folder=...)")
        return model_class(named)
    found = model_class(kind) if isinstance(kind, str) else check_model_class(kind)
    if found.kind != named:
        raise InputError(f"kind must be the class of a {named!r} model for '{path}', got one of {found.kind!r} models")
    return found


def model_class(kind: str) -> type[SequenceModel]:
    """Return the class of a registered kind of model, or of ``package.module:Class``."""
    # Looking through all distributions takes time.
    known = registry.MODELS if kind in registry.MODELS else model_kinds()
    return check_model_class(find("kind of model", kind, known))


def check_model_class(found: Any) -> type[SequenceModel]:
    """Check that ``found`` is a class of trainable models; return it."""
    if not isinstance(found, type) or not issubclass(found, SequenceModel):
        raise InputError(f"a kind of model must be a subclass of gents_gym.SequenceModel, got {found!r}")
    return found
