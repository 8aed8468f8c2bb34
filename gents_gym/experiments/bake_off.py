"""Plays all agents on all bundled data sets and ranks them by reward."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.measures import Records
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import summarize
from gents_gym.experiments.ranks import Rank, average_ranks
from gents_gym.experiments.studies import open_study, wrap
from gents_gym.files import write_whole
from gents_gym.report.tables import escape

NAME, TITLE = "bake-off", "A bake-off on data sets"
SETS = {"iris": "", "wine": "", "breast_cancer": "", "digits": "", "diabetes": ", bins=4"}  # with further options
TEST = 0.8  # share of the rows that is played; no agent learns from the labels of the others
BLOCK = 10  # tasks side by side
REFERENCE = "oracle"  # it has seen the labels, so it is not ranked
VW = {  # by display name; costs are negated rewards
    "vw: ε-greedy": "vw(args='--cb_explore_adf -q ca -b 14')",
    "vw: SquareCB": "vw(args='--cb_explore_adf --squarecb -q ca -b 14')",
    "vw: RegCB": "vw(args='--cb_explore_adf --regcbopt --cb_type mtr --cb_min_cost -1 --cb_max_cost 0 -q ca -b 14')",
}
LABELS = {spec: label for label, spec in VW.items()}
AGENTS = (
    "random",
    "linucb(intercept=True)",
    "linucb(alpha=1, intercept=True)",
    "lints(intercept=True)",
    "greedy(model=untrained)",
    "epsilon-greedy(model=untrained)",
    "softmax(model=untrained)",
    "neural-linear-ts(model=untrained)",
    "ts-gen(model=untrained, m=64)",
    "ts-gen(model=untrained, m=64, samples=8)",
    "gen-ucb(model=untrained)",
    "bayes-ucb(model=untrained)",
    "online",
    *VW.values(),
)
NOTES = f"""\
Each task is a data set whose rows come in random order. The agent sees a row, names a class, and learns only
whether that was right, which is worth 1. All agents get the same rows in the same order. `diabetes` is divided into
four classes by quantiles.

**What agents know beforehand.** Contexts are standardised by {100 * (1 - TEST) * 0.8:.0f} % of the rows, which are not
played. Nobody sees the labels of those rows: models are `untrained`, a `filter` with the prior N(0, I), and no prior is
fitted. The oracle is a logistic policy fitted to all labels of the rows that are played; it is shown, but not ranked.

**Agents left out.** `lints(prior=fitted)` and trained models learn from labelled rows. `exact` and `exact-twin` need a
known p*. `sb3` needs a trained policy, `per-task` and `callable` need an agent of the user. `mabwiser`'s linear
policies are the same as `linucb` and `lints`.

**Options.** Agents play with their defaults, except for an intercept, the imputed rows `m`, and a second α of LinUCB.
Vowpal Wabbit's RegCB is the only agent whose arguments were changed after a first run. Its costs are negated rewards;
without their range, -1 to 0, it played almost at random. The better of its two forms was kept, by a trial on rows that
are partly those played here. In full, the agents of Vowpal Wabbit are {", ".join(f"`{spec}`" for spec in VW.values())}.
"""
READING = """\
Ranks are by total reward, 1 for the highest, averaged over all orders of all sets; equal rewards share their rank.
Intervals come from a bootstrap over pairs of set and order. They cover other orders of these sets, not other sets. The
column of each set has the share of right classes over the whole task, mean ± 1 s.e. Times are the agent's own, while
other work ran on the same machine.
"""


@dataclass(frozen=True)
class Size:
    """How much is played."""

    shuffles: int  # orders of each data set
    longest: int  # most decisions of a task
    agents: tuple[str, ...] = AGENTS
    sets: tuple[str, ...] = tuple(SETS)


SIZES = {
    "tiny": Size(2, 12, ("random", "linucb(intercept=True)", "greedy(model=untrained)"), ("iris", "wine")),
    "small": Size(20, 300),
    "full": Size(20, 2000),
}


def bake_off(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Play the bake-off, and return the page that reports it; existing results are not played again.

    Args:
        out: The folder for ``run``, an evaluation, and for the page and its figure.
        scale: "small", tasks of at most 300 decisions; "full", at most 2,000; "tiny", a trial of seconds.
        seed: Seed of the orders and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with the progress.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    out = open_study(out, NAME, TITLE)
    started = time.perf_counter()
    envs = {name: _env(name, size) for name in size.sets}
    agents = (*size.agents, REFERENCE)
    config = EvaluationConfig(
        agents, tuple(envs.values()), size.shuffles, seed=check_integer("seed", seed, 0), block=10
    )
    found = evaluate(config, out / "run", workers=workers, on_progress=on_progress)
    if found.failures:
        raise InputError(f"every agent must play to its end: {found.failures[0]}")
    records = {name: found.records[env] for name, env in envs.items()}
    ranked = {name: {a: part[a] for a in size.agents} for name, part in records.items()}
    ranks = average_ranks(ranked, seed)
    command = f"gents-gym study {NAME} --scale {scale}" + (f" --seed {seed}" if seed else "")
    page = _page(command, size, records, ranks, time.perf_counter() - started)
    for file, data in {f"{NAME}.png": _draw(ranks), f"{NAME}.md": page.encode()}.items():
        write_whole(out / file, data)
    return out / f"{NAME}.md"


def _env(name: str, size: Size) -> str:
    """Return the environment of a data set, with all its rows or only the first."""
    options = f"dataset={name}, test={TEST}{SETS[name]}"
    length = env_distribution(f"gents_gym/Classification-v0({options})").sample(0, [0]).horizon
    return f"gents_gym/Classification-v0({options}, horizon={min(length, size.longest)})"


def _page(command: str, size: Size, records: Mapping[str, Records], ranks: Mapping[str, Rank], seconds: float) -> str:
    """Return the page as Markdown."""
    first = {name: next(iter(part.values())) for name, part in records.items()}
    lengths = ", ".join(f"{name} {record.actions.shape[1]}" for name, record in first.items())
    own = sum(record.seconds for part in records.values() for record in part.values())
    how = f"{size.shuffles} orders of each of {len(records)} data sets, decisions per task: {lengths}"
    took = f"The agents' own time is {own / 60:.1f} minutes in all; this call took {seconds / 60:.1f} minutes"
    heads = ["agent", "average rank", "95 %", *records, "ms per decision"]
    lines = [f"# {TITLE}", "", wrap(f"`{command}`: {how}. {took} and played what was not there yet."), ""]
    lines += [wrap(NOTES), "", wrap(_finding(ranks)), "", f"![Average ranks]({NAME}.png)", ""]
    lines += [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for agent in (*ranks, REFERENCE):
        rank = ranks.get(agent)
        cells = ["–", ""] if rank is None else [f"{rank.mean:.2f}", f"{rank.low:.2f} to {rank.high:.2f}"]
        cells += [_share(part[agent].rewards.mean(axis=1)) for part in records.values()]
        spent = sum(part[agent].seconds for part in records.values())
        decisions = sum(part[agent].actions.size for part in records.values())
        privileged = " (privileged)" if rank is None else ""
        lines.append(
            f"| {escape(LABELS.get(agent, agent))}{privileged} | {' | '.join(cells)} | {1e3 * spent / decisions:.2f} |"
        )
    return "\n".join([*lines, "", wrap(READING), ""])


def _share(values: np.ndarray) -> str:
    found = summarize(values)
    return f"{found['mean']:.3f} ± {found['se']:.3f}"


def _finding(ranks: Mapping[str, Rank]) -> str:
    """Return which agent leads, and whose intervals overlap with its own."""
    (leader, lead), *others = ranks.items()
    near = [agent for agent, rank in others if rank.low <= lead.high]
    close = (
        f"The intervals of {', '.join(f'`{LABELS.get(agent, agent)}`' for agent in near)} reach its own."
        if near
        else ""
    )
    alone = "" if near else "No other agent's interval reaches its own."
    return (
        f"`{LABELS.get(leader, leader)}` has the lowest average rank, {lead.mean:.2f} of {len(ranks)}. {close}{alone}"
    )


def _draw(ranks: Mapping[str, Rank]) -> bytes:
    """Return a PNG of the average ranks with their intervals, the best at the top."""
    figure, (panel,) = canvas(1, (9, 1.2 + 0.32 * len(ranks)), dpi=130)
    styles = looks(dict.fromkeys(ranks, False))
    for row, (agent, rank) in enumerate(ranks.items()):
        bars = [[rank.mean - rank.low], [rank.high - rank.mean]]
        panel.errorbar(rank.mean, row, xerr=bars, color=styles[agent].color, marker="o", capsize=3)
    panel.set_yticks(range(len(ranks)), [LABELS.get(agent, agent) for agent in ranks], fontsize=8)
    panel.invert_yaxis()
    finish(panel, "average rank by reward, 1 is best, with 95 % intervals", "")
    return to_bytes(figure)
