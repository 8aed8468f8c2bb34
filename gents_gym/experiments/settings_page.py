"""The page of the study of settings: goals, a table and paired changes for each axis, and a figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from gents_gym.drawing.canvas import FONT, canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.measures import Records, totals
from gents_gym.evaluation.rollout import Rollout, summarize
from gents_gym.experiments.conditions import AVERAGED, LINEAR, PLANNING, Axis, Size, on_models
from gents_gym.experiments.gaps import GOAL_HEADS, Gap, mean_gap, paired
from gents_gym.experiments.studies import wrap
from gents_gym.report.comparison import mean_interval
from gents_gym.report.tables import escape

NAME, TITLE = "settings", "Settings as they are in practice"
NOTES = """\
The study varies four things that the paper's setting leaves out, one at a time. Tasks are of the test split and have 10
actions to choose from. The first level of each is the setting without the change. An agent without a named model uses
the bundled filter.

**delay**: outcomes of `gents_gym/Synthetic-v0` arrive this many decisions later, or 20 % of them never arrive.

**turnover**: a pool of 30 actions, 10 of them available at a time; each leaves with this probability per decision.

**drift**: coefficients of `gents_gym/Drifting-v0` with Gaussian outcomes walk at this rate. `forgetting` and `still`
are the same filter with and without a learned forgetting rate, both trained at this rate.

**correlation**: of the coefficients of two actions of `gents_gym/Correlated-v0`, with Gaussian outcomes. `joint` is
trained at this correlation. The bundled filter treats each action separately, and a single action has the same
distribution at every level.

`exact` is p* itself: in closed form for Gaussian outcomes, otherwise with a chain of 16 steps for each draw.
"""
READING = """\
Tables show regret per task, mean ± 1 s.e. Expected regret is against the setting's oracle, a policy fitted to the whole
table, which in turnover plays among the available actions. Drift is measured by best regret, against the best action
of each decision, because the oracle's policies do not follow a walk. Slow agents play only the first tasks; the column
`tasks` has the numbers, and goals compare agents on common tasks. Intervals are Student's at 95 % for each difference
alone. A goal is met if the whole interval is at or below zero, not met if all of it is above, and otherwise not shown.
"""
AXIS_NOTES = {
    "delay": """\
The goal, that TS-Gen degrades least, compares increases of regret: that of TS-Gen less the smallest increase of any
other agent on the filter, or of LinUCB. Choosing that rival afterwards favours the rival.""",
    "turnover": "No goal is set here.",
    "drift": """\
The goal is that forgetting lowers regret.
[Why one draw of TS-Gen does not gain, and eight do](../environments.md#ts-gen-in-drift).""",
    "correlation": """\
The goal is that the joint model closes half of the distance from the filter to `exact`: its regret is at most the mean
of the two.""",
}


@dataclass(frozen=True)
class Found:
    """What was played of an axis so far."""

    axis: Axis
    levels: Mapping[str, Records]  # by level and agent

    def values(self, level: str, agent: str) -> np.ndarray | None:
        """Return the regrets of an agent's tasks, (B,); None if it has not played there."""
        record = self.levels.get(level, {}).get(agent)
        return None if record is None else totals(record, self.axis.measure)

    def change(self, level: str, agent: str) -> np.ndarray | None:
        """Return by how much each task's regret is above that at the first level, (B,), in tasks played at both."""
        one, plain = (self.values(name, agent) for name in (level, next(iter(self.axis.levels))))
        if one is None or plain is None:
            return None
        n_tasks = min(len(one), len(plain))
        return one[:n_tasks] - plain[:n_tasks]


def goals(found: Found) -> list[Gap]:
    """Return the goals of an axis at the levels that have been played."""
    kinds = {"delay": _degrades_least, "drift": _beats_still, "correlation": _closes_half}
    if found.axis.name not in kinds:
        return []
    return [gap for level in list(found.axis.levels)[1:] for gap in kinds[found.axis.name](found, level)]


def _degrades_least(found: Found, level: str) -> Iterator[Gap]:
    own = found.change(level, "ts-gen")
    rivals = {agent: found.change(level, agent) for agent in (*PLANNING[1:], *LINEAR)}
    known = {agent: values for agent, values in rivals.items() if values is not None}
    if own is None or not known:
        return
    best = min(known, key=lambda agent: float(known[agent].mean()))
    n_tasks = min(len(own), len(known[best]))
    yield mean_gap(f"delay {level}: increase of ts-gen − that of {best} ≤ 0", own[:n_tasks] - known[best][:n_tasks])


def _beats_still(found: Found, level: str) -> Iterator[Gap]:
    for agent in (*PLANNING, AVERAGED):
        if pair := _records(found, level, on_models((agent,), "forgetting", "still")):
            one, other = paired(*pair, measure=found.axis.measure)
            yield mean_gap(f"drift {level}: {agent} on forgetting − on still ≤ 0", one - other)


def _closes_half(found: Found, level: str) -> Iterator[Gap]:
    for agent in ("ts-gen", "greedy"):
        if three := _records(found, level, [f"{agent}(model=joint)", agent, f"{agent}(model=exact)"]):
            joint, alone, exact = paired(*three, measure=found.axis.measure)
            goal = f"correlation {level}: {agent} on joint − ½ (on filter + on exact) ≤ 0"
            yield mean_gap(goal, joint - (alone + exact) / 2)


def _records(found: Found, level: str, agents: Sequence[str]) -> list[Rollout]:
    """Return the records of all agents; none unless all of them have played."""
    records = found.levels.get(level, {})
    return [records[agent] for agent in agents] if records.keys() >= {*agents} else []


def make_page(command: str, size: Size, found: Sequence[Found]) -> str:
    """Return the page as Markdown.

    Args:
        command: What makes it.
        size: How much is played.
        found: What was played, by axis.
    """
    own = sum(record.seconds for one in found for records in one.levels.values() for record in records.values())
    missing = [f"{one.axis.name} {level}" for one in found for level in one.axis.levels if level not in one.levels]
    left = f" Not played yet: {', '.join(missing)}." if missing else ""
    how = f"tasks of {size.horizon} decisions. The tables have the numbers of tasks, which may differ"
    took = f"The agents' own time is {own / 60:.0f} minutes in all"
    lines = [f"# {TITLE}", "", wrap(f"`{command}`: {how}. {took}.{left}"), ""]
    lines += [wrap(NOTES), "", f"![Regret by level]({NAME}.png)", ""]
    if rows := [gap.row for one in found for gap in goals(one)]:
        lines += ["## Goals", "", GOAL_HEADS, "|---|---:|---|---:|---|", *rows, ""]
    lines += [wrap(READING), ""]
    for one in found:
        lines += _section(one) if one.levels else []
    return "\n".join(lines)


def _section(found: Found) -> list[str]:
    """Return an axis's heading, its regrets, and its paired changes."""
    axis, levels = found.axis, list(found.levels)
    lines = [f"## {axis.title}", ""]
    if AXIS_NOTES[axis.name]:
        lines += [wrap(AXIS_NOTES[axis.name]), ""]
    heads = [f"{axis.name} {level}" for level in levels]
    lines += [f"| {axis.measure} regret | tasks | {' | '.join(heads)} |", f"|---|{'---:|' * (1 + len(heads))}"]
    agents = [agent for agent in axis.agents if any(agent in found.levels[level] for level in levels)]
    for agent in agents:
        values = [found.values(level, agent) for level in levels]
        numbers = " / ".join(dict.fromkeys(str(len(each)) for each in values if each is not None))
        lines.append(f"| {escape(agent)} | {numbers} | {' | '.join(map(_mean, values))} |")
    changed = [level for level in levels if level != next(iter(axis.levels))]
    lines += ["", f"| change against {heads[0]} | {' | '.join(f'{axis.name} {level}' for level in changed)} |"]
    lines += [f"|---|{'---:|' * len(changed)}"]
    lines += [
        f"| {escape(agent)} | {' | '.join(_interval(found.change(level, agent)) for level in changed)} |"
        for agent in agents
    ]
    return [*lines, ""]


def _mean(values: np.ndarray | None) -> str:
    if values is None:
        return "–"
    numbers = summarize(values)
    return f"{numbers['mean']:.1f} ± {numbers['se']:.1f}"


def _interval(differences: np.ndarray | None) -> str:
    if differences is None:
        return "–"
    mean, low, high = mean_interval(differences)
    return f"{mean:+.1f} ({low:.1f} to {high:.1f})"


def draw(found: Sequence[Found]) -> bytes:
    """Return a PNG with a panel for each axis: the mean regret of agents on models, by level, with its interval."""
    played = [one for one in found if one.levels]
    figure, panels = canvas(2, (11, 4.6 * -(-len(played) // 2)), -(-len(played) // 2))
    for panel, one in zip(panels, played, strict=False):
        _draw_axis(panel, one)
    for panel in panels[len(played) :]:
        panel.set_visible(False)
    figure.supxlabel("mean with 95 % interval; linear agents are in the tables alone", fontsize=FONT)
    return to_bytes(figure)


def _draw_axis(panel: Axes, found: Found) -> None:
    """Draw the agents on models of one axis; levels that are numbers are joined by lines."""
    axis, levels = found.axis, list(found.levels)
    agents = [agent for agent in axis.agents if agent.startswith(PLANNING)]
    styles = looks(dict.fromkeys(agents, False))
    for i, agent in enumerate(agents):
        known = {at: found.values(level, agent) for at, level in enumerate(levels)}
        moments = {at: mean_interval(values) for at, values in known.items() if values is not None}
        if not moments:
            continue
        at = np.array([*moments]) + 0.04 * (i - (len(agents) - 1) / 2)  # side by side
        means, lows, highs = np.array([*moments.values()]).T
        bars = np.array([means - lows, highs - means])
        panel.errorbar(at, means, bars, color=styles[agent].color, marker="o", markersize=3, linestyle="")
        joined = [levels[place].replace(".", "").isdigit() for place in moments]
        panel.plot(at[joined], means[joined], **styles[agent].style, label=agent)
    panel.set_xticks(range(len(levels)), levels)
    panel.set_ylim(bottom=0)
    finish(panel, axis.name, f"{axis.measure} regret", axis.title)
