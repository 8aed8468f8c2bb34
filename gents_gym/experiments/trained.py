"""Trains the models that an experiment on the user's corpus needs; resumable."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gents_gym.checks import InputError
from gents_gym.evaluation.environments import env_distribution
from gents_gym.experiments.catalogue import Experiment
from gents_gym.experiments.places import HORIZON, Scale, Setting, find_recipe
from gents_gym.models.load import bundled_models, read_config
from gents_gym.models.sequence import CONFIG
from gents_gym.training.config import TrainConfig, plain_config, preset_config
from gents_gym.training.data import draw_rows
from gents_gym.training.folder import train_to_folder

Told = Callable[[str, Any, TrainConfig], None]  # a model's folder, its progress, how it is trained


def train_missing(experiment: Experiment, place: Setting, size: Scale, on_epoch: Told | None = None) -> None:
    """Train the models that an experiment needs and that are neither bundled nor in their folder yet.

    A stopped training continues. A folder with another training in it is refused.
    """
    bundled = bundled_models()
    for name in experiment.needed:
        if name in place.given or name in bundled:
            continue
        config, actions = plan_training(name, place, size)
        source = training_source(place, size, config)
        if not holds_training(Path(name), config, actions, source):
            _train(Path(name), place, size, config, actions, source, on_epoch)


def plan_training(name: str, place: Setting, size: Scale) -> tuple[TrainConfig, int]:
    """Return how a model is trained, and on how many actions.

    Models of fewer actions take as many gradient steps as the full one.
    """
    recipe = find_recipe(name)
    config = preset_config(recipe.preset, place.name, model=dict(recipe.sizes), **recipe.training)
    whole = min(place.whole, size.training)
    actions = min(recipe.actions or whole, whole)
    epochs = min(config.epochs, size.epochs) * _n_batches(whole, config) // _n_batches(actions, config)
    validation = min(config.validation_actions, size.validation)
    return replace(config, epochs=epochs, horizon=size.horizon, validation_actions=validation), actions


def _n_batches(actions: int, config: TrainConfig) -> int:
    return -(-actions // (config.batch or 500))


def holds_training(folder: Path, config: TrainConfig, actions: int, source: str) -> bool:
    """Return whether a folder holds this training, finished; raise if it holds another."""
    if not (folder / CONFIG).exists():
        return False
    notes = read_config(folder / CONFIG).get("notes") or {}
    kept = (notes.get("config"), (notes.get("actions") or {}).get("training"), notes.get("source"))
    if kept != (plain_config(config), actions, source):
        raise InputError(f"'{folder}' holds another training: give another out, or name it among the models")
    return True


def training_source(place: Setting, size: Scale, config: TrainConfig) -> str:
    """Return where the rows come from, with the content of a user's corpus."""
    headlines = ""
    if place.corpus is not None:
        distribution: Any = env_distribution(place.spec(HORIZON))
        headlines = f", headlines {distribution.headlines.content}"
    return f"{place.spec(HORIZON)}, seed {config.seed}: {size.rows} rows of each action of the train split{headlines}"


def _train(
    folder: Path, place: Setting, size: Scale, config: TrainConfig, actions: int, source: str, on_epoch: Told | None
) -> None:
    rows, validation = draw_rows(env_distribution(place.spec(HORIZON)), config, actions, size.rows)
    tell = None if on_epoch is None else lambda progress: on_epoch(str(folder), progress, config)
    folder.parent.mkdir(parents=True, exist_ok=True)
    train_to_folder(rows, validation, config, folder, source, on_epoch=tell)
