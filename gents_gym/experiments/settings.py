"""The study of settings as they are in practice: regret against delay, turnover, drift and correlation."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.evaluation.environments import env_distribution, env_setting
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.conditions import AXES, SIZES, TRAINED, Axis, Size, on_folder
from gents_gym.experiments.settings_page import NAME, TITLE, Found, draw, make_page
from gents_gym.experiments.studies import Parts, choose_parts, open_study, read_records
from gents_gym.experiments.trained import holds_training
from gents_gym.files import write_whole
from gents_gym.training.config import preset_config
from gents_gym.training.data import draw_rows
from gents_gym.training.folder import train_to_folder
from gents_gym.words import count


def settings(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    regimes: Sequence[str] = (),
) -> Path:
    """Train and play what is missing, and return the page of all that the folder holds.

    Each level of each axis has a folder of its own below ``out``: the models that are trained for it, and evaluations.
    A larger scale goes on from a smaller one in the same folder, except from "tiny".

    Args:
        out: The folder.
        scale: "small"; "medium" and "full", with more tasks; "tiny", a trial of seconds.
        seed: Of the tasks and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with how far it is.
        regimes: The axes to play, as "drift"; none: all.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    check_integer("seed", seed, 0)
    chosen = [AXES[name] for name in choose_parts(regimes, list(AXES))]
    out = open_study(out, NAME, TITLE)
    work = [(axis, level, group) for axis in chosen for level in axis.levels for group in size.groups(axis)]
    parts = Parts(on_progress, [size.count(group) for _, _, group in work])
    for axis, level, group in work:
        folder = _folder(out, axis, level)
        _train(axis, level, size, seed, folder)
        tell = parts.begin(f"{axis.name} {level}, {count(size.count(group), 'task')}")
        agents = tuple(on_folder(agent, folder) for agent in size.groups(axis)[group])
        config = EvaluationConfig(
            agents, (axis.spec(level, size.horizon),), size.count(group), seed=seed, block=size.block
        )
        played = evaluate(config, folder / group, workers=workers, on_progress=tell)
        if played.failures:
            raise InputError(f"every agent must play to its end: {played.failures[0]}")
    return report(out, scale, seed)


def report(out: Path, scale: str, seed: int = 0) -> Path:
    """Write the page and the figure of all that the folder holds, and return the page; nothing is played."""
    size = SIZES[check_choice("scale", scale, SIZES)]
    found = [Found(axis, _read(out, axis, size, seed)) for axis in AXES.values()]
    command = f"gents-gym study {NAME} --scale {scale}" + (f" --seed {seed}" if seed else "")
    for file, data in {f"{NAME}.png": draw(found), f"{NAME}.md": make_page(command, size, found).encode()}.items():
        write_whole(out / file, data)
    return out / f"{NAME}.md"


def _folder(out: Path, axis: Axis, level: str) -> Path:
    return out / axis.name / "".join(letter for letter in level if letter.isalnum() or letter == ".")


def _train(axis: Axis, level: str, size: Size, seed: int, folder: Path) -> None:
    """Train the models of a level that are not there yet."""
    env = axis.spec(level, size.horizon)
    for model in axis.models:
        preset, changes = TRAINED[model]
        config = preset_config(preset, env_setting(env), seed=seed, **size.training, **changes)
        source = f"{env}, seed {seed}, {size.horizon} rows of each action"
        if not holds_training(folder / model, config, size.actions, source):
            rows = draw_rows(env_distribution(env), config, size.actions, size.horizon)
            folder.mkdir(parents=True, exist_ok=True)
            train_to_folder(*rows, config, folder / model, source)


def _read(out: Path, axis: Axis, size: Size, seed: int) -> dict[str, dict[str, Rollout]]:
    """Return what was played so far, by level and agent; levels that nobody has played are left out."""
    found = dict[str, dict[str, Rollout]]()
    for level in axis.levels:
        folder, env, records = _folder(out, axis, level), axis.spec(level, size.horizon), dict[str, Rollout]()
        for group, agents in size.groups(axis).items():
            played = read_records(folder / group, seed).get(env, {})
            records |= {agent: played[spec] for agent in agents if (spec := on_folder(agent, folder)) in played}
        if records:
            found[level] = records
    return found
