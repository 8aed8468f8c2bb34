"""The report of off-policy answers: one page that is read offline, and the table as CSV."""

import html
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gents_gym.files import new_folder, write_whole
from gents_gym.offline.answers import Answers
from gents_gym.offline.verdicts import METHODS, caveats, conclude, sorted_answers
from gents_gym.report.tables import to_csv
from gents_gym.report.template import wrap_page

DEVIATIONS = 3.0  # standard errors between what is imagined of the logged policy and the log that are reported
HEADS = ("agent", "method", "value", "95 % interval", "lift over the log", "95 % interval", "decisions")

TITLE = "Off-policy answers"
IMAGINED = "logged policy, imagined"  # what lifts of imagined values are over


def table_rows(found: Answers) -> list[tuple[str, ...]]:
    """Return the table as texts, under HEADS: the logged policy first, then agents with their methods by trust."""
    logged = found.logged
    rows: list[tuple[str, ...]] = [
        ("logged policy", "mean", f"{logged.value:.4f}", _span(*logged.interval), "", "", str(len(logged.influence)))
    ]
    played = [answer.decisions for answer in found.answers if answer.method == "imagined"]
    if played and (imagined := found.imagined_logged) is not None:
        count = str(played[0])
        rows.append((IMAGINED, "imagined", f"{imagined.value:.4f}", _span(*imagined.interval), "", "", count))
    for answer in sorted_answers(found.answers):
        value = (f"{answer.value:.4f}", _span(answer.low, answer.high))
        lift = (f"{answer.lift:+.4f}", _span(answer.lift_low, answer.lift_high, "+"))
        rows.append((answer.agent, answer.method, *value, *lift, str(answer.decisions)))
    return rows


def conclusions(found: Answers) -> list[str]:
    """Return a sentence per agent on what can be concluded."""
    agents = dict.fromkeys(answer.agent for answer in found.answers)
    return [
        conclude(agent, found.answers, found.overlaps.get(agent), found.trained_on, agent in found.on_model)
        for agent in agents
    ]


def warnings(found: Answers) -> list[str]:
    """Return what speaks against the answers: agents with little overlap, and a model that misjudges the log."""
    said = [f"{agent}: {text}." for agent, overlap in found.overlaps.items() for text in overlap.warnings()]
    imagined = found.imagined_logged
    if imagined is not None:
        error = (imagined.error**2 + found.logged.error**2) ** 0.5
        if abs(imagined.value - found.logged.value) > DEVIATIONS * error:
            said.append(
                f"The model imagines {imagined.value:.4f} per decision for the logged policy, the log has "
                f"{found.logged.value:.4f}: what it imagines of agents is off by as much."
            )
    return said


def limits(found: Answers) -> list[str]:
    """Return what cannot be concluded."""
    config, known = found.config, found.logs.propensities is not None
    n_agents = len({answer.agent for answer in found.answers})
    return caveats(config.fixed, n_agents, known, config.n_orders, found.model, found.trained_on, bool(found.on_model))


def write_answers(found: Answers, out: str | Path) -> Path:
    """Write ``offline.html`` and ``table.csv`` into a new folder, and return the page."""
    folder = new_folder("out", out)
    write_whole(folder / "table.csv", to_csv([asdict(answer) for answer in sorted_answers(found.answers)]).encode())
    return write_whole(folder / "offline.html", page(found).encode())


def page(found: Answers) -> str:
    """Return the whole page, with its style in it."""
    used = [method for method in METHODS if any(answer.method == method for answer in found.answers)]
    model = "" if found.model is None else f"; model {found.model}"
    title = f"{found.logs.name}: {len(found.logs)} rows, {len(found.logs.action_ids)} actions{model}"
    rows = [_row("th", HEADS), *(_row("td", row) for row in table_rows(found))]
    parts = [
        f"<header><h1>{TITLE}</h1><p id='subtitle'>{html.escape(title)}</p></header>",
        "<section><h2>What can be concluded</h2>",
        _list(conclusions(found)),
        *(f"<p class='warning'>{html.escape(text)}</p>" for text in warnings(found)),
        "</section><section><h2>What cannot</h2>",
        _list(limits(found)),
        "</section><section><h2>Table</h2><p class='note'>Mean reward per decision.</p>",
        f"<div class='scroll'><table>{''.join(rows)}</table></div>",
        _list([f"{method}: {METHODS[method]}." for method in used]),
        "</section>",
    ]
    return wrap_page(TITLE, "\n".join(parts))


def _row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(text)}</{cell}>' for text in texts)}</tr>"


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


def _span(low: float, high: float, sign: str = "") -> str:
    return f"{low:{sign}.4f} to {high:{sign}.4f}"
