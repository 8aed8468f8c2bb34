"""The page of the study of settings: goals, a table and paired changes for each axis, and a figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from gents_gym.drawing.board import Sheet
from gents_gym.drawing.canvas import FONT, to_bytes
from gents_gym.drawing.names import Name
from gents_gym.drawing.style import Look, looks
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
    took = f"The agents' own time is {own / 60:.1f} minutes in all"
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
    """Return a PNG with a panel for each axis: the mean regret of agents on models, by level, with its interval.

    An agent has one style in all panels: the color shows the agent, the dash its model.
    """
    styles = looks({agent: False for one in found for agent in _drawn(one.axis)})
    played = [one for one in found if one.levels]
    means = [{agent: _means(one, agent) for agent in _drawn(one.axis)} for one in played]
    names = [[Name(a, styles[a], [*at.values()][-1][0]) for a, at in own.items() if at] for own in means]
    note = "mean with 95 % interval; linear agents are only in the tables"
    sheet = Sheet(names, [one.axis.title for one in played], note)
    for panel, one, own in zip(sheet.panels, played, means, strict=True):
        _draw_axis(panel, one, own, styles)
    return to_bytes(sheet.finish())


def _drawn(axis: Axis) -> list[str]:
    """Return the agents on models."""
    return [agent for agent in axis.agents if agent.startswith(PLANNING)]


def _means(found: Found, agent: str) -> dict[int, tuple[float, float, float]]:
    """Return an agent's mean regret and its interval at the levels that it has played, by their positions."""
    known = {at: found.values(level, agent) for at, level in enumerate(found.levels)}
    return {at: mean_interval(values) for at, values in known.items() if values is not None}


def _draw_axis(
    panel: Axes,
    found: Found,
    means: Mapping[str, Mapping[int, tuple[float, float, float]]],
    styles: Mapping[str, Look],
) -> None:
    """Draw the agents of one axis, side by side at each level; levels that are numbers are joined by lines."""
    levels = list(found.levels)
    numbers = [at for at, level in enumerate(levels) if level.replace(".", "").isdigit()]
    for i, (agent, own) in enumerate(means.items()):
        shift = 0.04 * (i - (len(means) - 1) / 2)
        for at, (mean, low, high) in own.items():
            bar = [[mean - low], [high - mean]]
            panel.errorbar(at + shift, mean, bar, color=styles[agent].color, marker="o", markersize=3)
        joined = [at for at in numbers if at in own]
        panel.plot([at + shift for at in joined], [own[at][0] for at in joined], **styles[agent].style)
    panel.set_xticks(range(len(levels)), levels)
    panel.set_xlim(-0.35, len(levels) - 0.65)
    panel.set_ylim(bottom=0)
    panel.set_xlabel(found.axis.name, fontsize=FONT)
    panel.set_ylabel(f"{found.axis.measure} regret", fontsize=FONT)
