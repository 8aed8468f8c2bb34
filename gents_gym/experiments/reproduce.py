"""Running an experiment: a name and a scale in, its evaluation, figures and page in a folder out."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError, check_choice
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.sealed import SOFTWARE
from gents_gym.evaluation.store import Evaluation
from gents_gym.experiments.catalogue import EXPERIMENTS, SCALES, SETTINGS, Experiment, Scale, Setting
from gents_gym.experiments.page import draw_figures, make_page
from gents_gym.files import write_whole
from gents_gym.models.load import load_model
from gents_gym.report.analysis import Records
from gents_gym.report.figures import write_regret
from gents_gym.training.losses import Losses, exact_model, measure

SEED = 0
FIRST_ORACLE = "logistic"  # while playing; others are fitted afterwards, once for all agents
BLOCK = 50  # tasks whose oracles are fitted at once


def reproduce(
    name: str,
    out: str | Path,
    scale: str = "small",
    setting: str = "synthetic",
    workers: int | None = None,
    on_cell: Callable[[int, int], None] | None = None,
) -> Path:
    """Play an experiment, and return the page that tells what was found; what is there already is not played again.

    Args:
        name: One of ``EXPERIMENTS``.
        out: The folder for ``run*``, an evaluation each, ``<name>.md`` and figures. Experiments that share it share
            what they play.
        scale: "small", for minutes, or "paper", for the paper's 500 tasks of 500 decisions.
        setting: One of ``SETTINGS``.
        workers: Processes; None: one per core. Times per decision are measured with one.
        on_cell: Told how many blocks of tasks are over, and how many there are.
    """
    place = SETTINGS[check_choice("setting", setting, SETTINGS)]
    experiment = EXPERIMENTS[check_choice("experiment", name, EXPERIMENTS)](place)
    size = SCALES[check_choice("scale", scale, SCALES)]
    out = Path(out)
    _check_files(out, name, experiment)
    started = time.perf_counter()
    runs = {block: _play(experiment, place, size, block, out, workers, on_cell) for block in experiment.blocks}
    for found in runs.values():
        if found.failures:
            raise InputError(f"every agent must play to its end: {found.failures[0]}")
    records = {
        f"{oracle} oracle, {_how_many(found, block)}": _against_oracle(found, oracle)
        for block, found in runs.items()
        for oracle in experiment.oracles
    }
    losses = _losses(experiment, place, size) if experiment.models else None
    files = draw_figures(name, place.env, experiment, records, size.horizon)
    command = f"gents-gym reproduce {name} --setting {setting} --scale {scale}"
    text = make_page(name, command, size, experiment, records, losses, time.perf_counter() - started)
    try:
        for file, data in {**files, f"{name}.md": text.encode()}.items():
            write_whole(out / file, data)
    except OSError as error:
        raise InputError(f"'{out}' cannot be written ({error.strerror or error})") from error
    return out / f"{name}.md"


def _check_files(out: Path, name: str, experiment: Experiment) -> None:
    """Raise where the folder cannot be had, or a file of the experiment's name in it is not an experiment's."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path in (out / f"{name}.md", *out.glob(f"{name}*.png")):
            mark = f"# {experiment.title}\n" if path.suffix == ".md" else SOFTWARE
            if path.exists() and mark.encode() not in path.read_bytes()[:400]:
                raise InputError(f"'{path}' is not of an experiment: move it away, and start again")
    except OSError as error:
        raise InputError(
            f"out must be a folder that can be written, got '{out}' ({error.strerror or error})"
        ) from error


def _play(
    experiment: Experiment,
    place: Setting,
    size: Scale,
    block: int,
    out: Path,
    workers: int | None,
    on_cell: Callable[[int, int], None] | None,
) -> Evaluation:
    """Return the evaluation of the experiment's agents with so many tasks side by side."""
    env = place.env if size.horizon == 500 else f"{place.env}(horizon={size.horizon})"
    tasks = min(size.tasks, max(4, block)) if experiment.timed else size.tasks
    config = EvaluationConfig(experiment.agents, (env,), tasks, seed=SEED, oracle=FIRST_ORACLE, block=block)
    found = evaluate(config, out / f"run{block}", workers=1 if experiment.timed else workers, on_cell=on_cell)
    write_regret(out / f"run{block}")
    return found


def _how_many(found: Evaluation, block: int) -> str:
    tasks = found.manifest["tasks"]
    return f"{tasks} tasks, {min(block, tasks)} side by side"


def _against_oracle(found: Evaluation, oracle: str) -> Records:
    """Return the records with regret against a policy class: the same actions on the same tasks."""
    run = found.manifest["run"]
    ((env, records),) = found.records.items()
    if oracle == run["oracle"]:
        return records
    distribution = env_distribution(env)
    indices = next(iter(records.values())).indices
    parts: dict[str, list[dict[str, np.ndarray]]] = {agent: [] for agent in records}
    for first in range(0, len(indices), BLOCK):
        tasks = distribution.sample(run["seed"], indices[first : first + BLOCK], run["split"])
        best_fit = oracle_actions(tasks, oracle)
        for agent, record in records.items():
            parts[agent].append(regret(tasks, record.actions[first : first + BLOCK], best_fit))
    return {agent: _with_regret(records[agent], pieces) for agent, pieces in parts.items()}


def _with_regret(record: Rollout, pieces: list[dict[str, np.ndarray]]) -> Rollout:
    return replace(record, regret={name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]})


def _losses(experiment: Experiment, place: Setting, size: Scale) -> Losses:
    """Return the models' losses on held-out actions of the test split."""
    distribution = env_distribution(place.env)
    rows = distribution.sample_actions(SEED, range(size.actions), size.horizon, "test")
    models = {name: exact_model(distribution) if name == "exact" else load_model(name) for name in experiment.models}
    return measure(models, rows, SEED, prefixes=())
