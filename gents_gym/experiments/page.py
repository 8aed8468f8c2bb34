"""Writes the page of an experiment as Markdown, from claims, records, losses and times."""

from collections.abc import Mapping

import numpy as np

from gents_gym.evaluation.measures import Records, totals
from gents_gym.experiments.catalogue import Experiment
from gents_gym.experiments.claims import Claim, Finding, judge
from gents_gym.experiments.pictures import Found, paired_gaps, regret_views
from gents_gym.experiments.places import Scale, training_label
from gents_gym.experiments.studies import wrap
from gents_gym.experiments.timing import Times
from gents_gym.report.tables import to_markdown
from gents_gym.training.losses import Losses

BLOCKS = ("|", "#", "!", "```", "gents-gym ")  # starts of lines that are not wrapped: tables, figures, the command


def make_page(
    name: str,
    command: str,
    size: Scale,
    seed: int,
    where: str,
    experiment: Experiment,
    found: Found,
    seconds: float,
) -> str:
    """Return the page of an experiment as Markdown.

    Args:
        name: The experiment's name.
        command: The command that made it.
        size: How much was played.
        seed: Seed of the tasks.
        where: A description of the headlines, shown next to every verdict.
        experiment: What it plays and what the paper says.
        found: The results.
        seconds: How long the command took; less if it continued an earlier one.
    """
    first = next(iter(found.records.values()))
    own = sum(record.seconds for record in first.values())
    head = [
        f"# {experiment.title}",
        "",
        experiment.paper,
        "",
        "```",
        command,
        "```",
        "",
        f"{size.horizon} decisions per task, seed {seed}, test split{f', {where}' if where else ''}. The "
        f"agents' own time is {own / 60:.1f} minutes in all; this call took {seconds / 60:.1f} minutes and played what "
        "was not there yet.",
        "",
    ]
    lines = [
        *([experiment.notes, ""] if experiment.notes else []),
        *_figures(name, experiment, found.records),
        *_pair_table(experiment, found),
        *_claims(experiment, first, found.losses, where),
        *_time_table(found.times),
    ]
    for title, part in found.records.items():
        lines += [to_markdown(title, part).rstrip(), ""]
    lines += _loss_table(found.losses) if found.losses is not None else []
    lines = [*head, *experiment.shorten("\n".join(lines)).split("\n")]
    return "\n".join(line if line.startswith(BLOCKS) else wrap(line) for line in lines)


def _figures(name: str, experiment: Experiment, records: Mapping[str, Records]) -> list[str]:
    if experiment.timed:
        return [f"![Milliseconds per decision]({name}.png)", ""]
    lines = []
    if experiment.losses:
        lines += [f"![Loss by step, and regret]({name}-loss.png)", ""]
    for file, (title, _) in regret_views(name, experiment, records).items():
        lines += [f"![Cumulative regret, {title}]({file})", ""]
    if experiment.against:
        lines += [f"![Regret against {experiment.axis}]({name}-against.png)", ""]
    if experiment.pairs:
        lines += [f"![What sampling costs, against the loss]({name}-gap.png)", ""]
    return lines


def _pair_table(experiment: Experiment, found: Found) -> list[str]:
    """Return, by model, its loss above p*'s next to the expected regret of TS-Gen and of greedy, and the difference."""
    if not experiment.pairs:
        return []
    records = next(iter(found.records.values()))
    lines = [
        "| model | training | loss above p* | TS-Gen | greedy | TS-Gen − greedy |",
        "|---|---|---:|---:|---:|---:|",
    ]
    gaps = paired_gaps(experiment, found).items()
    for (name, (above, mean, low, high)), (model, pair) in zip(gaps, experiment.pairs.items(), strict=True):
        regrets = (f"{totals(records[agent], 'expected').mean():.1f}" for agent in pair)
        cells = (name, training_label(model), f"{above:.5f}", *regrets, f"{mean:+.1f} ({low:+.1f} to {high:+.1f})")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _claims(experiment: Experiment, records: Records, losses: Losses | None, where: str) -> list[str]:
    """Return a table for each tested sentence, with a line for each test."""
    lines: list[str] = []
    if experiment.claims:
        lines += ["## What is tested", "", "Means over the same tasks, or actions for losses, with 95 % intervals.", ""]
    for source, says in dict.fromkeys((claim.source, claim.says) for claim in experiment.claims):
        lines += [f"**{source}:** {says}", ""]
        lines += ["| tested | as outcomes fell | | by true means | |", "|---|---:|---|---:|---|"]
        for claim in (each for each in experiment.claims if each.says == says):
            found = judge(claim, records, losses)
            cells = [cell for each in found for cell in _cells(claim, each, where)] + ["", ""] * (2 - len(found))
            lines.append(f"| {claim.measure}: {claim.tested} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _cells(claim: Claim, found: Finding, where: str) -> list[str]:
    digits = 5 if claim.measure == "loss" else 1
    mean, low, high = (f"{value:+.{digits}f}" for value in (found.mean, found.low, found.high))
    return [f"{mean} ({low} to {high})", f"{found.verdict} ({where})" if where else found.verdict]


def _time_table(times: Mapping[str, Times]) -> list[str]:
    """Return the seconds of a decision, mean ± standard deviation over decisions, as in the paper."""
    if not times:
        return []
    decisions = len(next(iter(times.values())).total)
    lines = [f"Milliseconds, mean ± standard deviation over {decisions} decisions, one task at a time:", ""]
    lines += ["| agent | generation | fitting | in all |", "|---|---:|---:|---:|"]
    for agent, found in times.items():
        parts = [_spread(part) for part in (found.generation, found.fit, found.total)]
        lines.append(f"| {agent} | {' | '.join(parts)} |")
    return [*lines, ""]


def _spread(seconds: np.ndarray | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds.mean():.3g} ± {1e3 * seconds.std(ddof=1):.2g}"


def _loss_table(losses: Losses) -> list[str]:
    """Return the models' losses in nats per step over whole sequences, and above the exact model's."""
    length = losses.prefixes[-1]
    lines = ["### Sequence loss", "", "| model | nats per step | above exact |", "|---|---:|---:|"]
    for name in losses.sums:
        above = "" if name == "exact" else "{:.5f} ± {:.5f}".format(*losses.gap(name, "exact", length))
        lines.append(f"| {name} | {'{:.4f} ± {:.4f}'.format(*losses.mean(name, length))} | {above} |")
    return [*lines, ""]
