"""Says what can and what cannot be concluded from the answers of a log."""

from collections.abc import Sequence
from dataclasses import dataclass

from gents_gym.offline.overlap import Overlap

METHODS = {  # in the order of trust, and what each relies on
    "doubly robust": "right if the propensities are, or if the model's predictions are",
    "SNIPS": "right if the propensities are; weighted mean of logged rewards, slightly biased in short logs",
    "replay": "right if the propensities are; mean of the rows that the agent would have met itself",
    "IPS": "right if the propensities are; unbiased, and noisy",
    "imagined": "as good as the model: agents play in tables that it draws given the log",
    "direct": "as good as the model's predictions; its interval leaves their error out",
}
TRUSTED = ("doubly robust", "SNIPS", "replay")  # what conclusions are drawn from, with propensities
UNSEEN = "train with --split time, and evaluate with --last 0.2 on rows that it has not learned from"
BY_MODEL = ("doubly robust", "imagined", "direct")  # what uses the model


@dataclass(frozen=True)
class Answer:
    """One estimate for one agent, per decision, with 95 % intervals."""

    agent: str
    method: str
    value: float
    low: float
    high: float
    lift: float  # over the logged policy; for imagined answers, over what is imagined of it
    lift_low: float
    lift_high: float
    decisions: int  # rows behind it; for replay and imagined answers, decisions of the agent


def sorted_answers(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers agent by agent, the most trusted method first."""
    agents, methods = list(dict.fromkeys(answer.agent for answer in answers)), list(METHODS)
    return sorted(answers, key=lambda answer: (agents.index(answer.agent), methods.index(answer.method)))


def conclude(
    agent: str, answers: Sequence[Answer], overlap: Overlap | None, trained_on: bool = False, on_model: bool = False
) -> str:
    """Return one sentence on an agent against the logged policy.

    Args:
        agent: Its name.
        answers: All estimates, of other agents too.
        overlap: How its plays overlap with the log's; None: not known.
        trained_on: Whether the model learned from rows that evaluate; what uses it then concludes nothing.
        on_model: Whether the agent uses the model.
    """
    own = {answer.method: answer for answer in answers if answer.agent == agent}
    methods = [method for method in METHODS if method in own]
    if trained_on:
        methods = [] if on_model else [method for method in methods if method not in BY_MODEL]
        if not methods:
            return f"{agent}: no conclusion, because the model learned from these rows: {UNSEEN}."
    if overlap is not None and not overlap.enough:
        return f"{agent}: no conclusion, because {overlap.warnings()[0]}."
    if not methods:
        return f"{agent}: no conclusion, because the log allows no estimate."
    best = own[methods[0]]
    by = best.method if best.method in TRUSTED else f"{best.method}, by the model alone"
    size = f"{best.lift:+.4f} per decision, 95 % interval {best.lift_low:+.4f} to {best.lift_high:+.4f} ({by})"
    if best.lift_low > 0:
        return f"{agent} would have earned more than the logged policy: {size}."
    if best.lift_high < 0:
        return f"{agent} would have earned less than the logged policy: {size}."
    return f"{agent} cannot be told apart from the logged policy: {size}."


def caveats(
    fixed: float | None,
    n_agents: int,
    propensities: bool,
    orders: int,
    model: str | None,
    trained_on: bool,
    on_model: bool,
) -> list[str]:
    """Return what the answers do not say, a sentence each."""
    found = ["Answers hold for the logged actions, and for contexts like the logged ones."]
    if propensities:
        found.append("They rely on the logged propensities, and on every action being available in every row.")
    else:
        found.append("The log has no propensities: nothing corrects the model's errors, so these are its opinions.")
    if fixed is None:
        start = "Agents start without knowledge and learn as they go."
        if on_model:
            start = (
                "Agents on the model start with the model alone, and with none of these rows; others start without "
                "knowledge. They learn as they go."
            )
        found.append(
            f"{start} Replay shows them as many decisions as it accepts; "
            "IPS, SNIPS and doubly robust average over the states that an agent passes through on the way."
        )
    else:
        found.append(
            f"Agents learn from the first {100 * fixed:g} % of the rows, then no more; the rest evaluates them."
        )
    if orders > 1:
        found.append("Random orders of the rows assume that neither nature nor the logged policy changes over time.")
    if n_agents > 1:
        found.append("Each interval is for one agent: the best of several looks better than it is.")
    if trained_on:
        rule = f"The model '{model}' learned from rows that evaluate here"
        found.append(f"{rule}: agents on it, and answers by it, know their outcomes.")
    return found
