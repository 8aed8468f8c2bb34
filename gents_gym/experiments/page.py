"""What an experiment found, in words and pictures: records in, Markdown and PNG out."""

import io
from collections.abc import Mapping

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gents_gym.evaluation.rollout import summarize
from gents_gym.experiments.catalogue import Experiment, Scale
from gents_gym.report.analysis import Records, totals
from gents_gym.report.comparison import compare
from gents_gym.report.figures import METADATA, PALETTE, draw_regret
from gents_gym.report.tables import to_markdown
from gents_gym.training.losses import Losses

Figures = dict[str, bytes]
VERDICTS = {1: "shown", 0: "not shown", -1: "the other way round"}


def make_page(
    name: str,
    command: str,
    size: Scale,
    experiment: Experiment,
    records: Mapping[str, Records],
    losses: Losses | None,
    seconds: float,
) -> str:
    """Return the page of an experiment as Markdown.

    Args:
        name: The experiment's.
        command: What made it.
        size: How many decisions were played.
        experiment: What it plays and what the paper says.
        records: By title, what was found, by agent.
        losses: Of the experiment's models.
        seconds: How long the command took; less where it went on from an earlier one.
    """
    own = sum(record.seconds for part in _runs(experiment, records) for record in part.values())
    lines = [
        f"# {experiment.title}",
        "",
        experiment.paper,
        "",
        f"`{command}`: {size.horizon} decisions per task, seed 0, test split. The agents' own time is {own / 60:.0f} "
        f"minutes in all; this call took {seconds / 60:.1f} minutes and played what was not there yet.",
        "",
    ]
    if experiment.timed:
        lines += [f"![Milliseconds per decision]({name}.png)", ""]
    else:
        for i, title in enumerate(records):
            lines += [f"![Cumulative regret, {title}]({name}{'' if i == 0 else f'-{i + 1}'}.png)", ""]
    if experiment.against:
        lines += [f"![Regret against {experiment.axis}]({name}-against.png)", ""]
    if experiment.claims:
        lines += _claims(experiment, records)
    for title, part in records.items():
        lines += [to_markdown(title, part).rstrip(), ""]
    return "\n".join(lines + (_loss_table(losses) if losses is not None else []))


def _runs(experiment: Experiment, records: Mapping[str, Records]) -> list[Records]:
    """Return the records without those of the same run against another oracle."""
    return list(records.values())[:: len(experiment.oracles)]


def _claims(experiment: Experiment, records: Mapping[str, Records]) -> list[str]:
    """Return a table of the claims, each with its paired difference in expected and in oracle regret."""
    lines = ["Less regret, task by task: the first agent's less the second's, mean and 95 % interval.", ""]
    lines += ["| first before second | expected regret | | oracle regret | |", "|---|---:|---|---:|---|"]
    for part in _runs(experiment, records):  # in a difference, what regret is measured against falls out
        for better, worse in experiment.claims:
            cells = [f"`{better}` before `{worse}`"]
            for measure in ("expected", "oracle"):
                found = compare(part, better, worse, measure)
                cells += [f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})", VERDICTS[found.verdict]]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _loss_table(losses: Losses) -> list[str]:
    """Return the models' losses in nats per step over whole sequences, and above the exact model's."""
    length = losses.prefixes[-1]
    lines = ["### Sequence loss", "", "| model | nats per step | above exact |", "|---|---:|---:|"]
    for name in losses.sums:
        above = "" if name == "exact" else "{:.5f} ± {:.5f}".format(*losses.gap(name, "exact", length))
        lines.append(f"| {name} | {'{:.4f} ± {:.4f}'.format(*losses.mean(name, length))} | {above} |")
    return [*lines, ""]


def draw_figures(name: str, env: str, experiment: Experiment, records: Mapping[str, Records], horizon: int) -> Figures:
    """Return the experiment's pictures as PNG, by the name of the file that its page shows."""
    if experiment.timed:
        return {f"{name}.png": _draw_times(records)}
    files = {
        f"{name}{'' if i == 0 else f'-{i + 1}'}.png": draw_regret(part, f"{env}, {title.partition(',')[0]}")
        for i, (title, part) in enumerate(records.items())
    }
    if experiment.against:
        files[f"{name}-against.png"] = _draw_against(experiment, next(iter(records.values())), horizon)
    return files


def _draw_times(records: Mapping[str, Records]) -> bytes:
    """Return a PNG of the time per decision, a bar for each agent and title."""
    agents = list(next(iter(records.values())))
    figure = Figure(figsize=(9, 1.2 + 0.5 * len(agents)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    thick = 0.8 / len(records)
    for i, (title, part) in enumerate(records.items()):
        places = [a + (i - (len(records) - 1) / 2) * thick for a in range(len(agents))]
        bars = panel.barh(
            places,
            [1e3 * part[agent].seconds_per_decision for agent in agents],
            thick,
            label=title.partition(", ")[2],
            color=PALETTE[i],
        )
        panel.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
    panel.set_yticks(range(len(agents)), agents)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.margins(x=0.12)
    panel.set_xlabel("milliseconds per decision and task, on one core")
    panel.grid(axis="x", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=METADATA["png"])
    return buffer.getvalue()


def _draw_against(experiment: Experiment, records: Records, horizon: int) -> bytes:
    """Return a PNG of expected regret, mean ± 1 s.e., against what the experiment varies."""
    figure = Figure(figsize=(6.4, 4.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for agent, (curve, x) in experiment.against.items():
        found = summarize(totals(records[agent], "expected"))
        curves.setdefault(curve, []).append((horizon if x is None else x, found["mean"], found["se"]))
    for color, (curve, points) in zip(PALETTE, curves.items(), strict=False):
        places, means, errors = zip(*sorted(points), strict=True)
        panel.errorbar(places, means, errors, label=curve, color=color, marker="o", capsize=3)
    if max(x for points in curves.values() for x, _, _ in points) > 20:
        panel.set_xscale("log")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_xlabel(experiment.axis)
    panel.set_ylabel("expected regret at the end, mean ± 1 s.e.")
    panel.grid(alpha=0.25)
    panel.legend(frameon=False)
    return _png(figure)
