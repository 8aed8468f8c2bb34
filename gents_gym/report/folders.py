"""Compares agents of two evaluation folders: paired on tasks with equal hashes in both, otherwise unpaired."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError, check_choice
from gents_gym.evaluation.measures import main_measure, measures, totals
from gents_gym.evaluation.store import Evaluation, load_results
from gents_gym.report.comparison import Difference, difference, unpaired_difference
from gents_gym.words import count

SHOWN = ("seed", "split", "block", "oracle", "commit", "versions")  # settings of a run that explain different tasks


def compare_folders(
    first: str | Path, second: str | Path, agents: Sequence[str] = (), measure: str | None = None
) -> list[str]:
    """Return lines that say how agents of two folders differ, by environment.

    Args:
        first: The folder of an evaluation.
        second: Another one.
        agents: One agent that is in both folders, or two: one of the first folder and one of the second. None: every
            agent in both or, if there is none, every pair.
        measure: A regret's name, or "reward"; None: the one that matters most.
    """
    found = load_results(first, "first"), load_results(second, "second")
    shared = [env for env in found[0].records if env in found[1].records]
    if not shared:
        got = " and ".join(", ".join(each.records) or "none that is played" for each in found)
        raise InputError(f"'{first}' and '{second}' must share an environment to be compared, got {got}")
    lines = []
    for env in shared:
        same = _same_tasks(*found, env)
        lines.append(_heading(found, env, same))
        for pair in _pairs(list(found[0].records[env]), list(found[1].records[env]), agents):
            lines.append(f"  {_compare(found, env, pair, (str(first), str(second)), same, measure)}")
    return lines


def _same_tasks(one: Evaluation, other: Evaluation, env: str) -> np.ndarray:
    """Return the indices of the tasks in blocks that have the same hash in both."""

    def blocks(found: Evaluation) -> dict[str, str]:
        record = next(iter(found.records[env].values()))
        return dict(zip(found.task_hashes[env], record.tasks, strict=True))

    theirs = blocks(other)
    same = [key.split("-") for key, value in blocks(one).items() if theirs.get(key) == value]
    return np.concatenate([np.arange(int(start), int(stop)) for start, stop in same] or [np.arange(0)])


def _heading(found: tuple[Evaluation, Evaluation], env: str, same: np.ndarray) -> str:
    counts = [len(next(iter(each.records[env].values())).indices) for each in found]
    if len(same):
        of = "" if counts == [len(same)] * 2 else f" of {counts[0]} and {counts[1]}"
        tasks, verb = count(len(same), "task"), "is" if len(same) == 1 else "are"
        return f"{env}: {tasks}{of} {verb} the same in both folders, so the comparison is paired"
    runs = [each.manifest["run"] for each in found]
    differ = [f"{name} {runs[0].get(name)} and {runs[1].get(name)}" for name in SHOWN if runs[0][name] != runs[1][name]]
    why = f" ({'; '.join(differ)})" if differ else ""
    return f"{env}: no task is the same in both folders{why}, so the comparison is unpaired, with wider intervals"


def _pairs(first: list[str], second: list[str], agents: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of agents that are compared."""
    if len(agents) > 2:
        raise InputError(f"agents must be one or two, the first folder's and the second's, got {len(agents)}")
    if agents:
        return [(check_choice("agent", agents[0], first), check_choice("agent", agents[-1], second))]
    both = [agent for agent in first if agent in second]
    return [(agent, agent) for agent in both] or [(one, other) for one in first for other in second]


def _compare(
    found: tuple[Evaluation, Evaluation],
    env: str,
    pair: tuple[str, str],
    folders: tuple[str, str],
    same: np.ndarray,
    measure: str | None,
) -> Difference:
    records = {side: each.records[env][agent] for side, each, agent in zip((0, 1), found, pair, strict=True)}
    by_side = {str(side): record for side, record in records.items()}
    known = measures(by_side)
    if found[0].manifest["run"]["oracle"] != found[1].manifest["run"]["oracle"]:
        known = tuple(name for name in known if name in ("best", "reward"))  # the others have different yardsticks
    chosen = main_measure(by_side) if measure is None else check_choice("measure", measure, known)
    chosen = chosen if chosen in known else known[0]
    labels = (f"{pair[0]} of {folders[0]}", f"{pair[1]} of {folders[1]}")
    sums = [totals(records[side], chosen) for side in (0, 1)]
    if not len(same):
        return unpaired_difference(labels, chosen, sums[0], sums[1])
    kept = [sums[side][np.isin(records[side].indices, same)] for side in (0, 1)]
    return difference(labels, chosen, kept[0], kept[1])
