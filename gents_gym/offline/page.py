"""The report of off-policy answers: one page that is read offline, and the table as CSV."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from gents_gym.files import new_folder, write_whole
from gents_gym.offline.answers import Answers
from gents_gym.offline.verdicts import METHODS, caveats, conclude, sorted_answers
from gents_gym.report.tables import to_csv
from gents_gym.report.template import wrap_page

DEVIATIONS = 3.0  # standard errors between what is imagined of the logged policy and the log that are reported
HEADS = ("agent", "method", "value", "95 % interval", "lift over the log", "95 % interval", "decisions")

TITLE = "Off-policy answers"
STYLE = """
#answers { width: 100%; max-width: 800px; }
#answers th { white-space: normal; overflow-wrap: anywhere; }
#answers td { border: 0; padding: 2px 7px; white-space: normal; vertical-align: baseline; }
#answers td:first-child { padding-left: 18px; }
#answers tbody th { padding-top: 10px; font-weight: 600; text-align: left; }
#answers small { white-space: nowrap; color: var(--muted); }
li, .warning { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  #answers { font-size: 0.8rem; }
  #answers th, #answers td, #answers td:first-child { padding-left: 3px; padding-right: 3px; }
  #answers thead th { overflow-wrap: normal; }
  #answers small { display: block; }
  ul { padding-left: 22px; }
}
"""
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
    said = _grouped({agent: overlap.faults() for agent, overlap in found.overlaps.items()})
    said += [f"{agent}: {remark}." for agent, remarks in found.remarks.items() for remark in remarks]
    imagined = found.imagined_logged
    if imagined is not None:
        error = (imagined.error**2 + found.logged.error**2) ** 0.5
        if abs(imagined.value - found.logged.value) > DEVIATIONS * error:
            said.append(
                f"The model imagines {imagined.value:.4f} per decision for the logged policy, the log has "
                f"{found.logged.value:.4f}: what it imagines of agents is off by as much."
            )
    return said


def _grouped(faults: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a line for each fault, with its amounts and the agents that have it."""
    kinds = dict.fromkeys(fault for each in faults.values() for fault in each)
    lines = []
    for kind in kinds:
        agents: dict[str, list[str]] = {}
        for agent, each in faults.items():
            if kind in each:
                agents.setdefault(each[kind], []).append(agent)
        amounts = "; ".join(f"{amount} for {', '.join(names)}" for amount, names in agents.items())
        lines.append(f"{kind[:1].upper()}{kind[1:]}: {amounts}.")
    return lines


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
    parts = [
        f"<header><h1>{TITLE}</h1><p id='subtitle'>{html.escape(title)}</p></header>",
        "<section><h2>What can be concluded</h2>",
        _list(conclusions(found)),
        *(f"<p class='warning'>{html.escape(text)}</p>" for text in warnings(found)),
        "</section><section><h2>What cannot</h2>",
        _list(limits(found)),
        "</section><section><h2>Table</h2><p class='note'>Mean reward per decision.</p>",
        _table(table_rows(found)),
        _list([f"{method}: {METHODS[method]}." for method in used]),
        "</section>",
    ]
    return wrap_page(TITLE, "\n".join(parts), STYLE)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return the table with a group of rows for each agent, and intervals below their values."""
    heads = "".join(f"<th>{head}</th>" for head in (HEADS[1], *(f"{HEADS[i]}, {HEADS[3]}" for i in (2, 4)), HEADS[6]))
    groups = []
    for agent, own in groupby(rows, key=itemgetter(0)):
        lines = [f"<tr><th colspan='4' scope='rowgroup'>{html.escape(agent)}</th></tr>"]
        for _, method, value, span, lift, lift_span, decisions in own:
            cells = (method, f"{value} <small>{span}</small>", f"{lift} <small>{lift_span}</small>", decisions)
            lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        groups.append(f"<tbody>{''.join(lines)}</tbody>")
    return f"<table id='answers'><thead><tr>{heads}</tr></thead>{''.join(groups)}</table>"


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


def _span(low: float, high: float, sign: str = "") -> str:
    return f"{low:{sign}.4f} to {high:{sign}.4f}"
