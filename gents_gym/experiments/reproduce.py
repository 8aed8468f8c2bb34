"""Runs an experiment at a scale, and writes its evaluation, figures and page to a folder."""

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.drawing.style import SOFTWARE
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.measures import Records
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import Evaluation
from gents_gym.experiments.catalogue import EXPERIMENTS, Experiment
from gents_gym.experiments.page import make_page
from gents_gym.experiments.pictures import Found, Gap, Gaps, draw_figures, paired_gaps
from gents_gym.experiments.places import SCALES, Scale, Setting, find_place
from gents_gym.experiments.timing import time_decisions
from gents_gym.experiments.trained import Told, train_missing
from gents_gym.files import as_path, write_whole
from gents_gym.models.load import load_model
from gents_gym.report.figures import write_regret
from gents_gym.training.losses import PREFIXES, Losses, exact_model, measure
from gents_gym.words import count

FIRST_ORACLE = "logistic"  # oracle while playing; others are fitted afterwards, once for all agents
BLOCK = 50  # tasks whose oracles are fitted at once
TIMED_TASKS = 20  # tasks side by side, if an experiment is about times
MODELS = "models"  # subfolder for models that were missing
GAPS = "ladder-gap.json"  # what sampling costs on each model, by setting


def reproduce(
    name: str,
    out: str | Path,
    scale: str = "small",
    setting: str = "synthetic",
    workers: int | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    corpus: str | Path | None = None,
    seed: int = 0,
    models: tuple[str, ...] = (),
    tasks: int | None = None,
    beside: str | Path | None = None,
    regrets: tuple[str, ...] = (),
    on_epoch: Told | None = None,
) -> Path:
    """Play an experiment, and return the page with its results; existing results are not played again.

    Args:
        name: One of ``EXPERIMENTS``.
        out: The folder for ``run*``, an evaluation each, ``models``, ``<name>.md`` and figures. Experiments that share
            it share what they play.
        scale: "small", for minutes; "medium", with 100 tasks of 500 decisions; or "paper", with the paper's 500.
        setting: One of ``SETTINGS``.
        workers: Processes; None: one per core. Times per decision are measured with one.
        on_progress: Called with the progress of playing.
        corpus: A prepared corpus of the news setting instead of the bundled one; models are then trained on it.
        seed: Seed of the tasks and of the agents' randomness.
        models: Models to play on instead of the bundled or trained ones.
        tasks: Number of tasks; None: that of the scale. A larger number in the same folder plays only the new ones.
        beside: A folder with the ladder of the other setting, whose points are drawn too.
        regrets: Panels of the regret figures: names of regrets, or ("all",); empty: the one that matters most.
        on_epoch: Called after each epoch of a training with the model's folder, its progress and its configuration.
    """
    check_choice("experiment", name, EXPERIMENTS)
    size = SCALES[check_choice("scale", scale, SCALES)]
    check_integer("seed", seed, 0)
    if tasks is not None:
        size = replace(size, tasks=check_integer("tasks", tasks, 2))
    out, corpus = Path(out), None if corpus is None else as_path("corpus", corpus)
    place = find_place(setting, size, corpus, tuple(models), out / MODELS)
    experiment = EXPERIMENTS[name](place, size)
    others = _other_gaps(name, beside, setting)
    _check_files(out, name, experiment)
    started = time.perf_counter()
    train_missing(experiment, place, size, on_epoch)
    played = _play(experiment, place, size, seed, out, workers, on_progress)
    records = {
        f"{oracle} oracle, {_how_many(played)}": _against_oracle(played, oracle) for oracle in experiment.oracles
    }
    losses = _losses(experiment, place, size, seed) if experiment.models else None
    env, timed, times = place.spec(size.horizon), experiment.agents if experiment.timed else (), {}
    for i, agent in enumerate(timed):
        if on_progress:
            on_progress(Progress("timing", i, len(timed), i / len(timed)))
        times[agent] = time_decisions(env, agent, size.timed, seed)
    found = Found(records, losses, times)
    gaps = {setting: paired_gaps(experiment, found)} if experiment.pairs else {}
    files = draw_figures(name, env, experiment, found, size.horizon, regrets, {**gaps, **others})
    if gaps:
        files[GAPS] = json.dumps(gaps, indent=1).encode()
    command = _command(name, setting, scale, corpus, seed, models, tasks, beside)
    spent = time.perf_counter() - started
    text = make_page(name, command, size, seed, place.where, experiment, found, spent)
    try:
        for file, data in {**files, f"{name}.md": text.encode()}.items():
            write_whole(out / file, data)
    except OSError as error:
        raise InputError(f"'{out}' cannot be written ({error.strerror or error})") from error
    return out / f"{name}.md"


def _other_gaps(name: str, beside: str | Path | None, setting: str) -> dict[str, Gaps]:
    """Return the ladder's gaps of another setting, {} if none are wanted; raise if the folder has none."""
    if beside is None:
        return {}
    if name != "ladder":
        raise InputError(f"beside is for the ladder, got it for {name!r}")
    try:
        text = (as_path("beside", beside) / GAPS).read_text()
        found = json.loads(text).items()
        gaps: dict[str, Gaps] = {each: {name: Gap(*gap) for name, gap in part.items()} for each, part in found}
    except (OSError, ValueError, AttributeError, TypeError):
        gaps = {}
    if not gaps or setting in gaps:
        raise InputError(f"beside must be a folder with the ladder of another setting, got '{beside}'")
    return gaps


def _command(
    name: str,
    setting: str,
    scale: str,
    corpus: Path | None,
    seed: int,
    models: tuple[str, ...],
    tasks: int | None,
    beside: str | Path | None,
) -> str:
    """Return the command that makes the page."""
    words = ["gents-gym", "reproduce", name, "--setting", setting, "--scale", scale]
    words += [] if corpus is None else ["--corpus", str(corpus)]
    words += ["--seed", str(seed)] if seed else []
    words += [] if tasks is None else ["--tasks", str(tasks)]
    words += [] if beside is None else ["--beside", str(beside)]
    return shlex.join([*words, "--models", *models] if models else words)


def _check_files(out: Path, name: str, experiment: Experiment) -> None:
    """Raise if the folder cannot be used, or holds a file of the experiment's name that no experiment wrote."""
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
    seed: int,
    out: Path,
    workers: int | None,
    on_progress: Callable[[Progress], None] | None,
) -> Evaluation:
    """Return the evaluation of the experiment's agents, or raise unless all of them finished."""
    tasks = min(size.tasks, TIMED_TASKS) if experiment.timed else size.tasks
    env, block = place.spec(size.horizon), experiment.block
    config = EvaluationConfig(
        experiment.agents,
        (env,),
        tasks,
        seed=seed,
        oracle=FIRST_ORACLE,
        block=block,
        training_actions=place.whole,  # fitted priors learn from as many as the models
    )
    workers = 1 if experiment.timed else workers
    found = evaluate(config, out / f"run{block}", workers=workers, on_progress=on_progress)
    if found.failures:
        raise InputError(f"every agent must play to its end: {found.failures[0]}")
    write_regret(out / f"run{block}")
    return replace(found, records={env: found.only(experiment.agents).records[env]})


def _how_many(found: Evaluation) -> str:
    tasks = found.manifest["tasks"]
    return f"{count(tasks, 'task')}, {min(found.manifest['run']['block'], tasks)} side by side"


def _against_oracle(found: Evaluation, oracle: str) -> Records:
    """Return the records with regret against another policy class: the same actions on the same tasks."""
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


def _losses(experiment: Experiment, place: Setting, size: Scale, seed: int) -> Losses:
    """Return the models' losses on held-out actions of the test split, by step if they are drawn."""
    distribution = env_distribution(place.spec(size.horizon))
    rows = distribution.sample_actions(seed, range(size.actions), size.horizon, "test")
    models = {name: exact_model(distribution) if name == "exact" else load_model(name) for name in experiment.models}
    return measure(models, rows, seed, prefixes=PREFIXES if experiment.losses else ())
