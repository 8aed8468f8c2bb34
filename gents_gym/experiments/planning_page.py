"""Writes the page of the study of planning: a table and verdicts for each regime, and a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.drawing.canvas import FONT, canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.measures import CONFIDENCE, poor_yardstick, totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.gaps import GOAL_HEADS, Gap, mean_gap, paired
from gents_gym.experiments.regimes import CHEAP, RIVALS, Regime, Size
from gents_gym.experiments.studies import wrap
from gents_gym.report.comparison import mean_interval
from gents_gym.report.tables import escape

NAME, TITLE = "planning", "Planning with the model"
RESAMPLES = 4000  # resamples of the bootstrap
TAIL = 0.95  # the quantile that is compared
HEADS = ("agent", "tasks", "expected regret", "95 %", "99 %", "best regret", "ms per decision")
PAPER = "ts-gen, as in the paper"  # its display name, whichever policy class it fits
NOTES = f"""\
Eight regimes: the synthetic and the news setting; contexts that vary (`context_spread` 1) or are all the same in a
task (0); short tasks and long ones. All are tasks of the test split. Agents act on the setting's bundled `filter`.

**How `auto` was chosen.** `gents-gym tune` played candidates on tasks that the same model imagined, with the regime's
horizon and law of contexts, and `auto` plays the best of them by mean regret. It looked at no real task. The
candidates neither complete tables nor fit policies: {", ".join(f"`{spec}`" for spec in CHEAP)}. At the scale `full`,
those of short tasks are all of `registry.TUNED`.

**The paper's TS-Gen** is `ts-gen(policy=logistic)` in the synthetic setting and `ts-gen(policy=mlp)` in news, with one
table. `ts-gen` is the default, whose policy is fitted on the model's features of contexts if it has learned any.

**When the model is wrong**, in the blocks named after a model, agents act on the paper's own model: trained as printed
(`literal`) or as we train it (`paper`). `bayes-ucb` is not there, because that model has no variance of a mean reward,
and so `auto`, which plays it, is not.
"""
READING = """\
Expected regret is against the setting's oracle, mean ± 1 s.e. over tasks. Best regret is against the best action of
each decision. † marks a quantile that is nearly the largest of so few tasks. Slow agents play only the
first tasks, so compare agents by the differences, which are on common tasks. Times are the agents' own, while other
work ran on the same machine.

The best rival is the agent with the largest mean paired difference to `auto`; picking it afterwards favours the rival.
Intervals are at 95 %: Student's for means, percentiles of a paired bootstrap over tasks for quantiles. A goal is met if
the whole interval is at or below zero, not met if all of it is above, else not shown either way. For the first goal
"not shown" means that `auto` is level with the best rival within Monte-Carlo error.
"""


@dataclass(frozen=True)
class Block:
    """The results of one regime."""

    regime: Regime
    records: dict[str, Rollout]  # by agent, all on the first tasks of the same stream
    tuned: dict[str, Any] | None  # what was chosen as ``auto``


def gaps(block: Block, seed: int = 0) -> list[Gap]:
    """Return how ``auto`` compares to the goals, for the rivals that have been played."""
    records, paper = block.records, block.regime.paper
    if "auto" not in records:
        return []
    auto, found = records["auto"], list[Gap]()
    pairs = {agent: paired(auto, records[agent]) for agent in (paper, *RIVALS) if agent in records}
    if pairs:
        best = max(pairs, key=lambda agent: float((pairs[agent][0] - pairs[agent][1]).mean()))
        missing = "" if len(pairs) == 1 + len(RIVALS) else ", of those that have played"
        found.append(mean_gap(f"auto − {best} (the best rival{missing}) ≤ 0", pairs[best][0] - pairs[best][1]))
    if paper in pairs:
        own, theirs = pairs[paper]
        found.append(mean_gap(f"auto − ½ · {paper} ≤ 0", own - theirs / 2))
        found.append(_tail_gap(f"95 % quantile of auto − that of {paper} ≤ 0", own, theirs, seed))
    return found


def _tail_gap(goal: str, own: np.ndarray, theirs: np.ndarray, seed: int) -> Gap:
    """Return the difference of two quantiles, (B,) each, with a bootstrap over the tasks."""
    picked = np.random.default_rng(seed).integers(len(own), size=(RESAMPLES, len(own)))
    drawn = np.quantile(own[picked], TAIL, axis=1) - np.quantile(theirs[picked], TAIL, axis=1)  # (resamples,)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Gap(goal, float(np.quantile(own, TAIL) - np.quantile(theirs, TAIL)), float(low), float(high), len(own))


def make_page(command: str, size: Size, blocks: Sequence[Block], seconds: float) -> str:
    """Return the page as Markdown.

    Args:
        command: The command that makes it.
        size: How much is played.
        blocks: The results, by regime.
        seconds: How long this call took.
    """
    own = sum(record.seconds for block in blocks for record in block.records.values())
    missing = [name for name in size.regimes if name not in {block.regime.name for block in blocks}]
    left = f" Not played yet: {', '.join(missing)}." if missing else ""
    took = f"The agents' own time is {own / 60:.1f} minutes in all; this call took {seconds / 60:.1f} minutes"
    lines = [f"# {TITLE}", "", wrap(f"`{command}`: {took} and played what was not there yet.{left}"), ""]
    lines += [wrap(NOTES), "", f"![Regret by regime]({NAME}.png)", "", *_goals(blocks), wrap(READING), ""]
    for block in blocks:
        lines += _table(block)
    return "\n".join(lines)


def _goals(blocks: Sequence[Block]) -> list[str]:
    """Return the table of the goals in all regimes."""
    rows = [(block.regime.name, gap) for block in blocks for gap in gaps(block)]
    if not rows:
        return []
    lines = [
        "## Goals",
        "",
        f"| regime {GOAL_HEADS}",
        "|---|---|---:|---|---:|---|",
    ]
    for name, gap in rows:
        lines.append(f"| {name} {gap.row}")
    return [*lines, ""]


def _table(block: Block) -> list[str]:
    """Return a regime's heading, what was chosen there, and its table, with the least expected regret first."""
    lines = [f"## {block.regime.name}", ""]
    if block.tuned is not None:
        evidence = block.tuned["rungs"][-1]
        chosen = evidence["agents"][block.tuned["agent"]]
        imagined = f"{chosen['mean']:.1f} ± {chosen['se']:.1f} expected regret on {evidence['tasks']} imagined tasks"
        lines += [wrap(f"`auto` plays `{block.tuned['agent']}`: {imagined}."), ""]
    if (warning := poor_yardstick(block.records)) is not None:
        lines += [wrap(f"**{escape(warning)}**"), ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|---|{'---:|' * (len(HEADS) - 1)}"]
    order = sorted(block.records.items(), key=lambda item: float(totals(item[1], "expected").mean()))
    return [*lines, *(_row(agent, record) for agent, record in order), ""]


def _row(agent: str, record: Rollout) -> str:
    found, n_tasks = {name: totals(record, name) for name in ("expected", "best")}, len(record.actions)
    error = {
        name: float(values.std(ddof=1) / np.sqrt(n_tasks)) if n_tasks > 1 else np.nan for name, values in found.items()
    }
    means = {name: f"{values.mean():.1f} ± {error[name]:.1f}" for name, values in found.items()}
    tails = [f"{np.quantile(found['expected'], q):.1f}{'†' if n_tasks * (1 - q) < 0.999 else ''}" for q in (0.95, 0.99)]
    cells = [escape(agent), str(n_tasks), means["expected"], *tails, means["best"]]
    return f"| {' | '.join(cells)} | {1e3 * record.seconds_per_decision:.3f} |"


def draw(blocks: Sequence[Block]) -> bytes:
    """Return a PNG with a panel for each regime: each agent's mean with its interval, and its 95 % quantile."""
    names = list(dict.fromkeys(agent for block in blocks for agent in block.records))
    styles = looks(dict.fromkeys(names, False))
    columns = min(3, len(blocks))
    rows = -(-len(blocks) // columns)
    figure, panels = canvas(columns, (4.6 * columns, 0.9 + 2.6 * rows), rows)
    for panel, block in zip(panels, blocks, strict=False):
        agents = list(block.records)
        for at, agent in enumerate(agents):
            values, color = totals(block.records[agent], "expected"), styles[agent].color
            mean, low, high = mean_interval(values)
            if len(values) > 1:
                panel.errorbar(mean, at, xerr=[[mean - low], [high - mean]], color=color, marker="o")
            panel.plot(np.quantile(values, TAIL), at, color=color, marker="d", fillstyle="none", linestyle="")
        labels = [PAPER if agent == block.regime.paper else agent for agent in agents]
        panel.set_yticks(range(len(agents)), labels, fontsize=FONT - 1)
        panel.invert_yaxis()
        finish(panel, "expected regret", "", block.regime.name)
    for panel in panels[len(blocks) :]:
        panel.set_visible(False)
    figure.supxlabel("dots: mean with 95 % interval; diamonds: 95 % quantile of the tasks", fontsize=FONT)
    return to_bytes(figure)
