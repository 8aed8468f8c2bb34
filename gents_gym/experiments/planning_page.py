"""Writes the page of the study of planning: a table and verdicts for each regime, and a figure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.drawing.canvas import FONT, filled_canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.measures import CONFIDENCE, poor_yardstick, totals
from gents_gym.evaluation.rollout import Rollout
from gents_gym.experiments.gaps import Gap, mean_gap, paired
from gents_gym.experiments.regimes import CHEAP, RIVALS, Regime, Size
from gents_gym.experiments.studies import wrap
from gents_gym.report.comparison import mean_interval
from gents_gym.report.tables import escape
from gents_gym.words import count

NAME, TITLE = "planning", "Planning with the model"
RESAMPLES = 4000  # resamples of the bootstrap
TAIL = 0.95  # the quantile that is compared
FEW = 20  # with fewer common tasks there is no verdict: at most one of them is beyond the quantile
HEADS = ("agent", "tasks", "expected regret", "95 %", "99 %", "{} − agent", "best regret", "ms per decision")
GOALS = (  # what each goal says, and the columns of the two sides that it compares
    ("No more regret than the best rival", "auto", "rival"),
    ("At most half of TS-Gen's regret", "auto", "half of TS-Gen's"),
    ("A 95 % quantile no worse than TS-Gen's", "auto", "TS-Gen"),
)
PAPER = "ts-gen, as in the paper"  # its display name, whichever policy class it fits
NOTES = f"""\
Eight regimes, named by setting, contexts and length: the synthetic and the news setting; contexts that vary
(`context_spread` 1) or are all the same in a task (0); short tasks and long ones. All are tasks of the test split.
Agents act on the setting's bundled `filter`.

**How `auto` was chosen.** `gents-gym tune` played candidates on tasks that the same model imagined, with the regime's
horizon and law of contexts, and `auto` plays the best of them by mean regret. It looked at no real task. There are 8
candidates, which neither complete tables nor fit policies: {", ".join(f"`{spec}`" for spec in CHEAP)}. At the scale
`full`, those of short tasks are all of `registry.TUNED`.

**TS-Gen** in the goals is the paper's: `ts-gen(policy=logistic)` in the synthetic setting and `ts-gen(policy=mlp)` in
news, with one table. `ts-gen` in the tables is the default, whose policy is fitted on the model's features of contexts
if it has learned any.

**When the model is wrong**, in the blocks named after a model, agents act on the paper's own model: trained as printed
(`literal`) or as we train it (`paper`). `auto` was not tuned for these models, so `gen-kg` is the one that plans.
`bayes-ucb` cannot play, because these models give no variance of a mean reward.
"""
READING = f"""\
Differences and both sides of a goal are on the tasks that both agents have played. Intervals are at 95 %: Student's for
means, percentiles of a paired bootstrap over tasks for quantiles. A goal is *met* if the whole interval is at or below
zero, and *not met* if all of it is above; else it is *not shown* either way. The first goal asks for no more regret
within Monte-Carlo error, so there an interval with zero in it is *level*. Fewer than {FEW} common tasks are *too few*
for a verdict: regrets have long tails. Intervals are for one comparison, not for all of them together.

The rivals are {", ".join(f"`{agent}`" for agent in RIVALS)} and the paper's TS-Gen. The best one is the one with the
largest mean difference to `auto`; picking it afterwards favours the rival, most of all one with few tasks.
"""
TABLES = """\
Expected regret is against the setting's oracle, mean ± 1 s.e. over an agent's own tasks. Slow agents play only the
first tasks, so means in different rows can be of different tasks: compare agents by the paired differences, which are
on common tasks and order the rows, best first. Best regret is against the best action of each decision. † marks a
quantile that is nearly the largest of so few tasks. Times are the agents' own, in evaluations at different times,
while other work ran on the same machine: they show orders of magnitude.
"""


@dataclass(frozen=True)
class Block:
    """The results of one regime."""

    regime: Regime
    records: dict[str, Rollout]  # by agent, all on the first tasks of the same stream
    tuned: dict[str, Any] | None  # what was chosen as ``auto``


@dataclass(frozen=True)
class Result:
    """How ``auto`` compares with a rival in one regime, by one of the goals."""

    goal: int  # its place in GOALS
    rival: str
    sides: tuple[float, float]  # what the goal compares, of ``auto`` and the rival, on common tasks
    gap: Gap

    @property
    def verdict(self) -> str:
        """What the difference says of the goal."""
        if self.gap.tasks < FEW:
            return "too few"
        return "level" if self.goal == 0 and self.gap.verdict == "not shown" else self.gap.verdict


def results(block: Block, seed: int = 0) -> list[Result]:
    """Return how ``auto`` compares to the goals, for the rivals that have been played."""
    records, paper = block.records, block.regime.paper
    if "auto" not in records:
        return []
    pairs = {agent: paired(records["auto"], records[agent]) for agent in (paper, *RIVALS) if agent in records}
    found = list[Result]()
    if pairs:
        best = max(pairs, key=lambda agent: float((pairs[agent][0] - pairs[agent][1]).mean()))
        missing = "" if len(pairs) == 1 + len(RIVALS) else " (not all have played)"
        own, theirs = pairs[best]
        found.append(Result(0, f"{best}{missing}", _means(own, theirs), mean_gap("", own - theirs)))
    if paper in pairs:
        own, theirs = pairs[paper]
        found.append(Result(1, paper, _means(own, theirs / 2), mean_gap("", own - theirs / 2)))
        tails = (float(np.quantile(own, TAIL)), float(np.quantile(theirs, TAIL)))
        found.append(Result(2, paper, tails, _tail_gap(own, theirs, seed)))
    return found


def _means(own: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    return float(own.mean()), float(theirs.mean())


def _tail_gap(own: np.ndarray, theirs: np.ndarray, seed: int) -> Gap:
    """Return the difference of two quantiles, (B,) each, with a bootstrap over the tasks."""
    picked = np.random.default_rng(seed).integers(len(own), size=(RESAMPLES, len(own)))
    drawn = np.quantile(own[picked], TAIL, axis=1) - np.quantile(theirs[picked], TAIL, axis=1)  # (resamples,)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Gap("", float(np.quantile(own, TAIL) - np.quantile(theirs, TAIL)), float(low), float(high), len(own))


def make_page(command: str, size: Size, blocks: Sequence[Block]) -> str:
    """Return the page as Markdown.

    Args:
        command: The command that makes it.
        size: How much is played.
        blocks: The results, by regime.
    """
    own = sum(record.seconds for block in blocks for record in block.records.values())
    missing = [name for name in size.regimes if name not in {block.regime.name for block in blocks}]
    short = [block.regime.name for block in blocks if _shortage(block, size)]
    left = f" Not played yet: {', '.join(missing)}." if missing else ""
    left += f" With less than this scale plays, as their sections say: {', '.join(short)}." if short else ""
    took = f"The agents' own time is {own / 60:.1f} minutes in all."
    lines = [f"# {TITLE}", "", wrap(f"`{command}`. {took}{left}"), ""]
    lines += [wrap(NOTES), "", f"![Regret by regime]({NAME}.png)", "", *_goals(blocks)]
    lines += ["## Regimes", "", wrap(TABLES), ""]
    for block in blocks:
        lines += _table(block, _shortage(block, size))
    return "\n".join(lines)


def _shortage(block: Block, size: Size) -> str:
    """Return a sentence on what a regime lacks of what the scale plays; empty if it lacks nothing."""
    counts = {agent: len(record.actions) for agent, record in block.records.items()}
    plan = size.plan(block.regime)
    fewer = [f"`{agent}` {counts[agent]} of {n}" for agent, n in plan.items() if counts.get(agent, n) < n]
    missing = [f"`{agent}`" for agent in plan if agent not in counts]
    parts = [("Fewer tasks than at this scale", fewer), ("Not played yet", missing)]
    return " ".join(f"{what}: {', '.join(agents)}." for what, agents in parts if agents)


def _goals(blocks: Sequence[Block]) -> list[str]:
    """Return a table for each goal, of all regimes, with a count of the verdicts."""
    rows = [(block.regime.name, result) for block in blocks for result in results(block)]
    if not rows:
        return []
    lines = ["## Goals", "", wrap(READING), ""]
    for goal, (title, *sides) in enumerate(GOALS):
        mine = [(name, result) for name, result in rows if result.goal == goal]
        if not mine:
            continue
        counts = Counter(result.verdict for _, result in mine)
        lines += [f"### {title}", "", f"{'; '.join(f'{verdict}: {n}' for verdict, n in counts.items())}.", ""]
        lines += [f"| regime | rival | {' | '.join(sides)} | difference | 95 % interval | tasks | verdict |"]
        lines += ["|---|---|---:|---:|---:|---|---:|---|"]
        lines += [_goal_row(name, result) for name, result in mine]
        lines.append("")
    return lines


def _goal_row(regime: str, result: Result) -> str:
    gap, sides = result.gap, [f"{value:.1f}" for value in result.sides]
    cells = [regime, escape(result.rival), *sides, f"{gap.mean:+.1f}", f"{gap.low:.1f} to {gap.high:.1f}"]
    return f"| {' | '.join([*cells, str(gap.tasks), result.verdict])} |"


def _table(block: Block, shortage: str) -> list[str]:
    """Return a regime's heading, what was chosen there, and its table, the best agent on common tasks first."""
    title = block.regime.title
    lines = [f"### {title[0].upper()}{title[1:]}: `{block.regime.name}`", ""]
    if block.tuned is not None:
        lines += [wrap(_choice(block.tuned)), ""]
    lines += [wrap(shortage), ""] if shortage else []
    if (warning := poor_yardstick(block.records)) is not None:
        lines += [wrap(f"**{escape(warning)}**"), ""]
    planner = "auto" if "auto" in block.records else "gen-kg"
    lines += [f"| {' | '.join(HEADS).format(planner)} |", f"|---|{'---:|' * (len(HEADS) - 1)}"]
    apart = {}
    if planner in block.records:
        pairs = {agent: paired(block.records[planner], record) for agent, record in block.records.items()}
        apart = {agent: mean_gap("", own - theirs) for agent, (own, theirs) in pairs.items()}
    order = sorted(block.records, key=lambda agent: -apart[agent].mean if apart else 0)
    return [
        *lines,
        *(_row(agent, block.records[agent], None if agent == planner else apart.get(agent)) for agent in order),
        "",
    ]


def _choice(tuned: dict[str, Any]) -> str:
    """Return a sentence on what ``auto`` plays, and how it compared with the other candidates in imagination."""
    last, agent = tuned["rungs"][-1], tuned["agent"]
    own = last["agents"][agent]
    others = {spec: one for spec, one in last["agents"].items() if spec != agent}
    second = "".join(
        f"; `{spec}` had {one['behind']:.1f} ± {one['behind_se']:.1f} more" for spec, one in others.items()
    )
    tried = f"the best of {len(tuned['rungs'][0]['agents'])} candidates"
    imagined = f"{own['mean']:.1f} ± {own['se']:.1f} expected regret on {count(last['tasks'], 'imagined task')}"
    return f"`auto` plays `{agent}`, {tried}: {imagined}{second}."


def _row(agent: str, record: Rollout, gap: Gap | None) -> str:
    found, n_tasks = {name: totals(record, name) for name in ("expected", "best")}, len(record.actions)
    error = {
        name: float(values.std(ddof=1) / np.sqrt(n_tasks)) if n_tasks > 1 else np.nan for name, values in found.items()
    }
    means = {name: f"{values.mean():.1f} ± {error[name]:.1f}" for name, values in found.items()}
    tails = [f"{np.quantile(found['expected'], q):.1f}{'†' if n_tasks * (1 - q) < 0.999 else ''}" for q in (0.95, 0.99)]
    apart = "–" if gap is None else f"{gap.mean:+.1f} ({gap.low:.1f} to {gap.high:.1f})"
    cells = [escape(agent), str(n_tasks), means["expected"], *tails, apart, means["best"]]
    return f"| {' | '.join(cells)} | {1e3 * record.seconds_per_decision:.3f} |"


def draw(blocks: Sequence[Block]) -> bytes:
    """Return a PNG with a panel for each regime: each agent's mean with its interval, and its 95 % quantile."""
    styles = looks({_styled(block.regime, agent): False for block in blocks for agent in block.records})
    figure, panels = filled_canvas(len(blocks), 3, (4.6, 2.7), 0.4)
    for panel, block in zip(panels, blocks, strict=True):
        agents = list(block.records)
        for at, agent in enumerate(agents):
            values, color = totals(block.records[agent], "expected"), styles[_styled(block.regime, agent)].color
            mean, low, high = mean_interval(values)
            if len(values) > 1:
                panel.errorbar(mean, at, xerr=[[mean - low], [high - mean]], color=color, marker="o")
            panel.plot(np.quantile(values, TAIL), at, color=color, marker="d", fillstyle="none", linestyle="")
        counts = [len(block.records[agent].actions) for agent in agents]
        names = [PAPER if agent == block.regime.paper else agent for agent in agents]
        labels = [name if n == max(counts) else f"{name} ({n})" for name, n in zip(names, counts, strict=True)]
        panel.set_yticks(range(len(agents)), labels, fontsize=FONT - 1)
        panel.invert_yaxis()
        where, _, length = block.regime.title.rpartition(", ")
        finish(panel, "expected regret", "", f"{where}\n{length}, {count(max(counts), 'task')}")
    figure.supxlabel(
        "dots: mean with 95 % interval; diamonds: 95 % quantile of the tasks; (n): of the first n tasks", fontsize=FONT
    )
    return to_bytes(figure)


def _styled(regime: Regime, agent: str) -> str:
    """Return the spec that an agent's color depends on: the paper's TS-Gen has one, whichever policy class it fits."""
    return "ts-gen(policy=paper)" if agent == regime.paper else agent
