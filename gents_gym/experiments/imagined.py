"""Runs the study of imagined tasks: does regret on imagined tasks predict regret on real ones?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.drawing.canvas import MUTED, canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.measures import totals
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import Rollout, summarize
from gents_gym.experiments.regimes import ENVS
from gents_gym.experiments.studies import Parts, choose_parts, open_study, read_records, wrap
from gents_gym.files import write_whole
from gents_gym.report.tables import escape
from gents_gym.specs import parse_spec, write_spec
from gents_gym.words import count

NAME, TITLE = "imagined", "Imagined against real regret"
LIGHT = ("greedy", "epsilon-greedy", "softmax(temperature=0.01)", "softmax", "squarecb")
TABLES = ("ts-gen", "ts-gen(samples=8, m=64)", "gen-ucb")
PLANNERS = ("bayes-ucb", "gen-kg")
AGENTS = {  # by model; the paper's model has no variance of a mean reward, and no kernel for gen-kg
    "synthetic-filter": (*LIGHT, *TABLES, *PLANNERS),
    "news-filter": (*LIGHT, *TABLES, *PLANNERS),
    "synthetic-paper": (*LIGHT, *TABLES),
}
NOTES = """\
The same agents play tasks that a model imagines and real tasks of the test split, of the same sizes, with contexts that
vary. Agents act on the model that imagines. The model knows nothing of the real tasks except its training data, so
imagined regret is a prediction. Expected regret per task, mean ± 1 s.e.; the tasks of the two columns are different
ones, so their errors are independent. The rank correlation is Spearman's, over the agents.
"""
Records = Mapping[str, Rollout]


@dataclass(frozen=True)
class Size:
    """How much is played."""

    tasks: Mapping[str, int]  # tasks by model, imagined and real ones each
    horizon: int = 500
    block: int = 20
    agents: tuple[str, ...] | None = None  # None: all


SIZES = {
    "tiny": Size(dict.fromkeys(AGENTS, 2), 6, 2, ("greedy", "softmax", "epsilon-greedy")),
    "small": Size({"synthetic-filter": 60, "news-filter": 60, "synthetic-paper": 20}),
    "full": Size(dict.fromkeys(AGENTS, 300)),
}


def imagined(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    regimes: Sequence[str] = (),
) -> Path:
    """Play agents on imagined and real tasks, and return the page of everything that the folder holds.

    Args:
        out: The folder, with one evaluation per model.
        scale: "small"; "full", with more tasks; "tiny", a trial of seconds.
        seed: Seed of the tasks and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with the progress.
        regimes: The models to play with, such as "news-filter"; empty: all.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    check_integer("seed", seed, 0)
    chosen = choose_parts(regimes, list(AGENTS))
    out = open_study(out, NAME, TITLE)
    parts = Parts(on_progress, [size.tasks[model] for model in chosen])
    for model in chosen:
        agents = tuple(_spec(agent, model) for agent in _agents(model, size))
        config = EvaluationConfig(agents, _envs(model, size), size.tasks[model], seed=seed, block=size.block)
        found = evaluate(config, out / model, workers=workers, on_progress=parts.begin(model))
        if found.failures:
            raise InputError(f"every agent must play to its end: {found.failures[0]}")
    pairs = {model: pair for model in AGENTS if (pair := _read(out / model, model, size, seed)) is not None}
    command = f"gents-gym study {NAME} --scale {scale}" + (f" --seed {seed}" if seed else "")
    for file, data in {f"{NAME}.png": _draw(pairs), f"{NAME}.md": _page(command, pairs).encode()}.items():
        write_whole(out / file, data)
    return out / f"{NAME}.md"


def _agents(model: str, size: Size) -> tuple[str, ...]:
    return AGENTS[model] if size.agents is None else size.agents


def _spec(agent: str, model: str) -> str:
    """Return an agent on a model, as it is played."""
    name, options = parse_spec(agent)
    return write_spec(name, {**options, "model": model})


def _envs(model: str, size: Size) -> tuple[str, str]:
    """Return the environments of imagined and of real tasks."""
    options = {"model": model, "n_actions": 10, "horizon": size.horizon, "contexts": "bank"}
    real = write_spec(ENVS[model.partition("-")[0]], {"horizon": size.horizon})
    return write_spec("gents_gym/Imagined-v0", options), real


def _read(folder: Path, model: str, size: Size, seed: int) -> tuple[Records, Records] | None:
    """Return the records of imagined and of real tasks by agent; None if no agent has finished both."""
    found = read_records(folder, seed)
    one, other = (found.get(env, {}) for env in _envs(model, size))
    agents = [agent for agent in _agents(model, size) if _spec(agent, model) in one.keys() & other.keys()]
    pair = tuple({agent: part[_spec(agent, model)] for agent in agents} for part in (one, other))
    return (pair[0], pair[1]) if agents else None


def _means(records: Records) -> dict[str, dict[str, float]]:
    return {agent: summarize(totals(record, "expected")) for agent, record in records.items()}


def _page(command: str, pairs: Mapping[str, tuple[Records, Records]]) -> str:
    """Return the page as Markdown."""
    lines = [f"# {TITLE}", "", f"`{command}`", "", wrap(NOTES), "", f"![Imagined and real regret]({NAME}.png)", ""]
    for model, (imagined, real) in pairs.items():
        one, other = _means(imagined), _means(real)
        found = stats.spearmanr([one[agent]["mean"] for agent in one], [other[agent]["mean"] for agent in one])
        n_tasks, n_steps = next(iter(real.values())).actions.shape
        tasks = f"{n_tasks} imagined and {count(n_tasks, 'real task')}"
        what = f"{tasks} of {n_steps} decisions, {count(len(one), 'agent')}"
        lines += [f"## {model}", "", wrap(f"{what}; rank correlation {found.statistic:.2f}."), ""]
        lines += ["| agent | imagined | real | real − imagined |", "|---|---:|---:|---:|"]
        for agent in sorted(one, key=lambda agent: other[agent]["mean"]):
            cells = [f"{each[agent]['mean']:.1f} ± {each[agent]['se']:.1f}" for each in (one, other)]
            gap, error = other[agent]["mean"] - one[agent]["mean"], np.hypot(one[agent]["se"], other[agent]["se"])
            lines.append(f"| {escape(agent)} | {' | '.join(cells)} | {gap:+.1f} ± {error:.1f} |")
        lines.append("")
    return "\n".join(lines)


def _draw(pairs: Mapping[str, tuple[Records, Records]]) -> bytes:
    """Return a PNG with a panel for each model: imagined regret on the x axis, real regret on the y axis."""
    names = list(dict.fromkeys(agent for one, _ in pairs.values() for agent in one))
    styles = looks(dict.fromkeys(names, False))
    figure, panels = canvas(len(pairs), (5.4 * len(pairs), 4.4))
    for panel, (model, (imagined, real)) in zip(panels, pairs.items(), strict=True):
        one, other = _means(imagined), _means(real)
        for agent in one:
            (x, dx), (y, dy) = ((each[agent]["mean"], each[agent]["se"]) for each in (one, other))
            panel.errorbar(x, y, dy, dx, color=styles[agent].color, marker="o", linestyle="", label=agent)
        panel.axline((0, 0), slope=1, color=MUTED, linewidth=0.8)
        finish(panel, "imagined: expected regret ± 1 s.e.", "real", model)
    return to_bytes(figure)
