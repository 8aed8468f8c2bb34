"""Tunes: candidates play the same imagined tasks, and the best is recorded in the model's folder."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gents_gym.checks import InputError, check_type
from gents_gym.construct import make_agent
from gents_gym.evaluation.grid import EvaluationConfig, first_info, slug, versions
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.progress import Progress
from gents_gym.files import check_target
from gents_gym.models.banks import context_law, urn_mass
from gents_gym.models.load import WEIGHTS, load_model, model_folders
from gents_gym.models.tuned import Entry, weights_sha256, write_tuned
from gents_gym.specs import write_spec
from gents_gym.tuning.config import TuneConfig, choose_candidates, tasks_to_come
from gents_gym.tuning.halving import best, judge, plan_rungs
from gents_gym.types import Selective, TaskInfo

ENV = "gents_gym/Imagined-v0"
SPLIT = "validation"  # split of imagined tasks; those of the test split measure the chosen agent
MEASURE = "expected"  # the regret that candidates are judged by


def tune(
    config: TuneConfig,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Entry, Path]:
    """Choose an agent for a model and record it; return the entry and the ``tuned.json`` that holds it.

    What was played is in the folder ``tuning`` next to that file. An interrupted call continues from it and ends with
    the same choice.

    Args:
        config: What is tuned.
        out: Folder for ``tuned.json``; None: that of the model, if it is not a bundled one.
        workers: Processes that play; None: one per core. The choice does not depend on it.
        on_progress: Called with the progress.
    """
    check_type("config", config, TuneConfig)
    model = load_model(config.model)
    (folder,) = model_folders(config.model)
    name = folder.name if folder.parent == WEIGHTS else str(folder.absolute())
    played = config.model if ":" in config.model else name  # a user's own class; the file names the folder
    come = tasks_to_come(config)
    law = context_law(come.get("contexts"), urn_mass(model))
    env = write_spec(ENV, {"model": played, **come, "contexts": law})
    candidates = choose_candidates(config, played)
    if not config.candidates:
        candidates = _playable(candidates, first_info(env, SPLIT, config.seed))
    place = _place(folder, out)
    rungs = _play(env, candidates, config, place, workers, on_progress)
    entry = {
        "horizon": come["horizon"],
        "n_actions": come["n_actions"],
        "contexts": law,
        "agent": best(rungs[-1]["agents"], 1)[0],
        **{"risk": float(config.risk), "quantile": float(config.quantile), "seed": config.seed},
        "env": env,
        "rungs": rungs,
        "versions": versions(),
    }
    return entry, write_tuned(place, name, weights_sha256(folder), entry)


def _place(folder: Path, out: str | Path | None) -> Path:
    """Return the folder to write to. Raises if it cannot be written."""
    if out is None and folder.parent == WEIGHTS:
        raise InputError(f"out must be given for a bundled model (--out FOLDER), got none for {folder.name!r}")
    place = check_target("out", folder if out is None else out)
    if place.exists() and not place.is_dir():
        raise InputError(f"out must be a folder, got the file '{place}'")
    return place


def _playable(candidates: dict[str, str], info: TaskInfo) -> dict[str, str]:
    """Return the candidates that can play such tasks; all, if none can, because the evaluation then says why."""
    found = {}
    for spec, played in candidates.items():
        agent = make_agent(played)
        try:
            if isinstance(agent, Selective):
                agent.check(info)
        except InputError:
            continue
        found[spec] = played
    return found or candidates


def _play(
    env: str,
    candidates: dict[str, str],
    config: TuneConfig,
    place: Path,
    workers: int | None,
    on_progress: Callable[[Progress], None] | None,
) -> list[dict[str, Any]]:
    """Return the results of each rung, by candidate; all of them are played in one evaluation folder."""
    identity = hashlib.sha256(f"{env} {config.seed} {config.block}".encode()).hexdigest()[:8]
    folder = place / "tuning" / f"{slug(env)}--{identity}"
    block = min(config.block, config.tasks)
    plan = plan_rungs(len(candidates), config.tasks, block)
    counts = [count for count, _ in plan]
    blocks = [math.ceil(n_tasks / block) for _, n_tasks in plan]
    dropped = [(one - other) * n for one, other, n in zip(counts, [*counts[1:], 0], blocks, strict=True)]
    total = sum(dropped)

    def tell(now: Progress, before: int) -> None:
        if on_progress is not None and now.phase != "checking":  # before, the amount of work is not known
            over = before + now.over
            on_progress(replace(now, over=over, total=total, share=over / total))

    left, rungs = list(candidates), list[dict[str, Any]]()
    for rung, (count, n_tasks) in enumerate(plan):
        left = left if rung == 0 else list(best(rungs[-1]["agents"], count))
        over = sum(dropped[:rung])  # blocks of candidates that were eliminated
        agents = tuple(candidates[spec] for spec in candidates if spec in left)
        found = evaluate(
            EvaluationConfig(agents, (env,), n_tasks, config.seed, SPLIT, block=block),
            folder,
            workers=workers,
            on_progress=partial(tell, before=over),
        )
        if found.failures:
            raise InputError(f"{found.failures[0]}; what was played stays, and the same command continues from it")
        records = found.records[env]
        totals = {spec: records[candidates[spec]].regret[MEASURE].sum(axis=1) for spec in candidates if spec in left}
        rungs.append({"tasks": n_tasks, "agents": judge(totals, config.risk, config.quantile)})
    return rungs
