"""Writes an evaluation's pictures into its folder, and returns figures as bytes."""

from collections.abc import Sequence
from pathlib import Path

from gents_gym.drawing.canvas import to_bytes
from gents_gym.evaluation.measures import Records
from gents_gym.evaluation.pictures import Looks, distribution_figure, regret_figure
from gents_gym.evaluation.store import figure_name, load_results, write_made


def write_regret(out: str | Path, regrets: Sequence[str] = (), agents: Sequence[str] | None = None) -> tuple[Path, ...]:
    """Draw the regrets of an evaluation into its folder, a PNG per environment, and return their paths.

    Args:
        out: The folder.
        regrets: A panel for each of these, or ("all",); empty: the one that matters most.
        agents: The agents to show; None: all that have played all their tasks.
    """
    found = load_results(out)
    shown = found if agents is None else found.only(agents)
    paths = {env: Path(out) / figure_name(env, found.manifest) for env in shown.records}
    for env, path in paths.items():
        write_made(path, draw_regret(shown.records[env], env, regrets=regrets, styles=found.looks))
    return tuple(paths.values())


def draw_regret(
    records: Records,
    title: str,
    form: str = "png",
    regrets: Sequence[str] = (),
    styles: Looks | None = None,
) -> bytes:
    """Return :func:`regret_figure` as "png", "svg" or "pdf"."""
    return to_bytes(regret_figure(records, title, regrets, styles), form)


def draw_distribution(
    records: Records,
    title: str,
    form: str = "png",
    regrets: Sequence[str] = (),
    styles: Looks | None = None,
) -> bytes:
    """Return :func:`distribution_figure` as "png", "svg" or "pdf"."""
    return to_bytes(distribution_figure(records, title, regrets, styles), form)
