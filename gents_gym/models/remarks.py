"""Says what a reader of results should know about the model that was played, in a line each."""

from pathlib import Path
from typing import Any

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.models.load import fitting_model, model_folders, read_config
from gents_gym.models.sequence import CONFIG
from gents_gym.types import TaskDistribution, TaskInfo

ADVICE = "name one trained on your data, as model=FOLDER, or model=untrained"


def model_remarks(model: Any, info: TaskInfo, distribution: TaskDistribution | None = None) -> tuple[str, ...]:
    """Return remarks on a model that plays tasks: chosen by its sizes alone, or trained on shorter sequences.

    Args:
        model: The model, or what names it, as an agent has it.
        info: What is known of the tasks.
        distribution: Where the tasks come from; None: not from a setting of this package.
    """
    if not isinstance(model, str | Path):
        return ()
    chosen = str(model) in registry.PRESETS
    try:
        folder = fitting_model(model, info)[0] if chosen else model_folders(model)[0]
        notes = read_config(folder / CONFIG).get("notes") or {}
    except InputError:  # "exact", "untrained", or what else an agent may call its model
        return ()
    found = []
    if chosen and bundled_setting(folder.name) != _setting(distribution):
        found.append(f"{chosen_by_size(folder)}, not on this environment: {ADVICE}")
    rows = (notes.get("config") or {}).get("horizon")
    if isinstance(rows, int) and info.horizon is not None and info.horizon > rows:
        found.append(
            f"{folder.name} was trained on sequences of {rows} rows; these tasks have {info.horizon} decisions"
        )
    return tuple(found)


def bundled_setting(name: str) -> str:
    """Return the setting that a bundled model was trained on, SETTING of SETTING-PRESET-VARIANT."""
    return name.partition("-")[0]


def chosen_by_size(folder: Path) -> str:
    """Return why a preset chose a bundled model, and the environment that this model was trained on."""
    setting = bundled_setting(folder.name)
    env = next(env for env, options in registry.ENVIRONMENTS.items() if options["tasks"] == setting)
    return f"the bundled {folder.name} plays because its sizes fit, but it was trained on {env}"


def _setting(distribution: TaskDistribution | None) -> str | None:
    """Return the id of a task distribution, of imagined tasks that of the model's; None if it is not ours."""
    kind = f"{type(distribution).__module__}:{type(distribution).__qualname__}"
    name = next((setting for setting, target in registry.TASKS.items() if target == kind), None)
    if name != "imagined":
        return name
    options: Any = distribution
    return options.setting or bundled_setting(str(options.model))
