"""Ranks agents by reward over several environments, and reports the ranks with a page and a figure."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError, check_integer
from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.style import looks
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.measures import Records
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import Rollout, summarize
from gents_gym.experiments.ranks import Rank, average_ranks
from gents_gym.experiments.studies import Parts, open_study, wrap
from gents_gym.files import write_whole
from gents_gym.report.tables import escape

BLOCK = 10  # tasks side by side
REFERENCE = "oracle"  # it has seen the outcomes, so it is not ranked
OWN = "a model of the setting"  # agents that differ by environment, so they are not ranked


@dataclass(frozen=True)
class Contest:
    """A study whose result is the average rank of agents."""

    name: str
    title: str
    tasks: str  # what the tasks of an environment are called
    places: str  # what the environments are called
    notes: str
    reading: str
    specs: Mapping[str, str]  # agents by display name, if they have one
    own: Mapping[str, str] = field(default_factory=dict)  # an unranked agent of some environments, by their name
    favourite: str | None = None  # the agent that others are compared with, environment by environment
    rival: str | None = None  # the agent whose rank is subtracted from the others', pair by pair

    def hold(
        self,
        out: str | Path,
        scale: str,
        seed: int,
        envs: Mapping[str, str],
        agents: Sequence[str],
        n_tasks: int,
        workers: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Path:
        """Play all agents in all environments, and return the page; existing results are not played again."""
        out, seed = open_study(out, self.name, self.title), check_integer("seed", seed, 0)
        started, own = time.perf_counter(), {name: spec for name, spec in self.own.items() if name in envs}
        parts = Parts(on_progress, [len(envs) * (1 + len(agents)), *[1] * len(own)])
        found = _play(out / "run", (*agents, REFERENCE), tuple(envs.values()), n_tasks, seed, workers, parts)
        records = {name: dict(found[env]) for name, env in envs.items()}
        for name, spec in own.items():
            found = _play(out / f"run-{name}", (spec,), (envs[name],), n_tasks, seed, workers, parts)
            records[name][OWN] = found[envs[name]][spec]
        ranked = {name: {agent: part[agent] for agent in agents} for name, part in records.items()}
        ranks = average_ranks(ranked, seed)
        gaps = {} if self.rival is None else average_ranks(ranked, seed, against=self.rival)
        command = f"gents-gym study {self.name} --scale {scale}" + (f" --seed {seed}" if seed else "")
        page = self._page(command, n_tasks, records, ranks, gaps, time.perf_counter() - started)
        for file, data in {f"{self.name}.png": self._draw(ranks), f"{self.name}.md": page.encode()}.items():
            write_whole(out / file, data)
        return out / f"{self.name}.md"

    def _label(self, agent: str) -> str:
        return next((label for label, spec in self.specs.items() if spec == agent), agent)

    def _page(
        self,
        command: str,
        n_tasks: int,
        records: Mapping[str, Records],
        ranks: Mapping[str, Rank],
        gaps: Mapping[str, Rank],
        seconds: float,
    ) -> str:
        """Return the page as Markdown."""
        first = {name: next(iter(part.values())) for name, part in records.items()}
        lengths = ", ".join(f"{name} {record.actions.shape[1]}" for name, record in first.items())
        own = sum(record.seconds for part in records.values() for record in part.values())
        how = f"{n_tasks} {self.tasks} of each of {len(records)} {self.places}, decisions per task: {lengths}"
        took = f"The agents' own time is {own / 60:.1f} minutes in all; this call took {seconds / 60:.1f} minutes"
        against = [] if self.rival is None else [f"minus `{escape(self._label(self.rival))}`, paired, 95 %"]
        heads = ["agent", "average rank", "95 %", *against, *records, "ms per decision"]
        lines = [f"# {self.title}", "", wrap(f"`{command}`: {how}. {took} and played what was not there yet."), ""]
        lines += [wrap(self.notes), "", wrap(self._finding(ranks)), "", f"![Average ranks]({self.name}.png)", ""]
        lines += _table(heads)
        others = [agent for agent in (REFERENCE, OWN) if any(agent in part for part in records.values())]
        for agent in (*ranks, *others):
            rank = ranks.get(agent)
            cells = ["–", ""] if rank is None else [f"{rank.mean:.2f}", f"{rank.low:.2f} to {rank.high:.2f}"]
            cells += [_difference(gaps.get(agent), agent == self.rival) for _ in against]
            cells += [_share(part[agent].rewards.mean(axis=1)) if agent in part else "" for part in records.values()]
            played = [part[agent] for part in records.values() if agent in part]
            pace = 1e3 * sum(record.seconds for record in played) / sum(record.actions.size for record in played)
            privileged = " (privileged)" if agent == REFERENCE else ""
            lines.append(f"| {escape(self._label(agent))}{privileged} | {' | '.join(cells)} | {pace:.2f} |")
        lines += ["", wrap(self.reading), ""]
        return "\n".join(lines if self.favourite is None else [*lines, *self._duels(records, ranks), ""])

    def _duels(self, records: Mapping[str, Records], ranks: Mapping[str, Rank]) -> list[str]:
        """Return a table of paired differences in reward between the favourite and the others."""
        assert self.favourite is not None
        intro = f"Total reward of `{self.favourite}` minus that of another agent on the same tasks, mean ± 1 s.e.; "
        lines = [
            wrap(f"{intro}the last column counts {self.places} where it is ahead, and behind, by two s.e.:"),
            "",
        ]
        lines += _table(["agent", *records, "ahead, behind"])
        for agent in (*ranks, *([OWN] if self.own else [])):
            gaps = {
                name: summarize(_gap(part[self.favourite], part[agent]))
                for name, part in records.items()
                if agent in part
            }
            cells = [f"{gaps[name]['mean']:+.1f} ± {gaps[name]['se']:.1f}" if name in gaps else "" for name in records]
            ahead, behind = (sum(sign * gap["mean"] > 2 * gap["se"] for gap in gaps.values()) for sign in (1, -1))
            if agent != self.favourite:
                lines.append(f"| {escape(self._label(agent))} | {' | '.join(cells)} | {ahead}, {behind} |")
        return lines

    def _finding(self, ranks: Mapping[str, Rank]) -> str:
        """Return which agent leads, and whose intervals overlap with its own."""
        (leader, lead), *others = ranks.items()
        near = [agent for agent, rank in others if rank.low <= lead.high]
        close = f"The intervals of {', '.join(f'`{self._label(agent)}`' for agent in near)} reach its own."
        close = close if near else "No other agent's interval reaches its own."
        return f"`{self._label(leader)}` has the lowest average rank, {lead.mean:.2f} of {len(ranks)}. {close}"

    def _draw(self, ranks: Mapping[str, Rank]) -> bytes:
        """Return a PNG of the average ranks with their intervals, the best at the top."""
        figure, (panel,) = canvas(1, (9, 1.2 + 0.32 * len(ranks)), dpi=130)
        styles = looks(dict.fromkeys(ranks, False))
        for row, (agent, rank) in enumerate(ranks.items()):
            bars = [[rank.mean - rank.low], [rank.high - rank.mean]]
            panel.errorbar(rank.mean, row, xerr=bars, color=styles[agent].color, marker="o", capsize=3)
        panel.set_yticks(range(len(ranks)), [self._label(agent) for agent in ranks], fontsize=8)
        panel.invert_yaxis()
        finish(panel, "average rank by reward, 1 is best, with 95 % intervals", "")
        return to_bytes(figure)


def _play(
    out: Path,
    agents: tuple[str, ...],
    envs: tuple[str, ...],
    n_tasks: int,
    seed: int,
    workers: int | None,
    parts: Parts,
) -> Mapping[str, Records]:
    """Return the records of agents by environment, or raise if one of them failed."""
    config = EvaluationConfig(agents, envs, n_tasks, seed=seed, block=BLOCK)
    found = evaluate(config, out, workers=workers, on_progress=parts.begin(out.name))
    if found.failures:
        raise InputError(f"every agent must play to its end: {found.failures[0]}")
    return found.records


def _table(heads: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]


def _difference(gap: Rank | None, own: bool) -> str:
    return "" if gap is None or own else f"{gap.mean:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})"


def _share(values: np.ndarray) -> str:
    found = summarize(values)
    return f"{found['mean']:.3f} ± {found['se']:.3f}"


def _gap(one: Rollout, other: Rollout) -> np.ndarray:
    """Return the differences in total reward, (B,)."""
    found: np.ndarray = one.rewards.sum(axis=1) - other.rewards.sum(axis=1)
    return found
