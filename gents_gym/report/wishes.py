"""Holds what the user may change in a report: title, names, selection of agents, baseline and regrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gents_gym.checks import InputError, check_choice
from gents_gym.drawing.style import Look
from gents_gym.evaluation.measures import Records
from gents_gym.evaluation.store import Evaluation
from gents_gym.report.analysis import choose_baseline


@dataclass(frozen=True)
class Wishes:
    """How a report is shown."""

    title: str | None = None  # title of the page and the figures; None: the environment
    names: Mapping[str, str] | Sequence[str] = field(default_factory=dict)  # display names by spec, or each "SPEC=NAME"
    only: Sequence[str] = ()  # specs of the agents to show, in this order; empty: all
    baseline: str | None = None  # the agent that lifts are relative to, by spec or name; None: see choose_baseline
    regrets: Sequence[str] = ()  # panels of the figures; empty: the regret that matters most


@dataclass(frozen=True, eq=False)
class Shown:
    """What a report shows, by display names of agents."""

    found: Evaluation
    records: Mapping[str, Records]  # by environment and name
    specs: Mapping[str, str]  # by name
    looks: Mapping[str, Look]  # by name
    wishes: Wishes

    def title(self, env: str) -> str:
        """Return the title of an environment's figures."""
        return self.wishes.title or env

    def baseline(self, env: str) -> str:
        """Return the agent that lifts are relative to in an environment."""
        records, wanted = self.records[env], self.wishes.baseline
        name = next((name for name, spec in self.specs.items() if wanted in (name, spec)), None)
        return name if name is not None and name in records else choose_baseline(records)


def apply(found: Evaluation, wishes: Wishes) -> Shown:
    """Return what to show of an evaluation. Raises if a wish cannot be fulfilled."""
    if wishes.title is not None and (not isinstance(wishes.title, str) or not wishes.title.strip()):
        raise InputError(f"title must be a text that is not empty, got {wishes.title!r}")
    chosen = found.only(wishes.only) if wishes.only else found
    if not chosen.records:
        raise InputError("results must hold an agent that has played all its tasks to be shown, got none")
    specs = list(wishes.only or found.manifest["agents"])
    names = read_names(wishes.names, found.manifest["agents"])
    called = {spec: names.get(spec, spec) for spec in specs}
    if len({*called.values()}) < len(called):
        twice = next(name for name in called.values() if [*called.values()].count(name) > 1)
        raise InputError(f"names must differ from each other, got {twice!r} for two agents")
    if wishes.baseline is not None:
        check_choice("baseline", wishes.baseline, [*called, *called.values()])
    looks = found.looks
    return Shown(
        chosen,
        {env: {called[agent]: record for agent, record in each.items()} for env, each in chosen.records.items()},
        {name: spec for spec, name in called.items()},
        {name: looks[spec] for spec, name in called.items()},
        wishes,
    )


def read_names(names: Mapping[str, str] | Sequence[str], agents: Sequence[str]) -> dict[str, str]:
    """Return display names by spec, from a mapping or from texts "SPEC=NAME"; a spec may contain "="."""
    if isinstance(names, Mapping):
        pairs = dict(names)
    else:
        pairs = dict(_split(text, agents) for text in ([names] if isinstance(names, str) else names))
    for spec, name in pairs.items():
        check_choice("agent", spec, agents)
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"names must be texts that are not empty, got {name!r} for {spec!r}")
    return {spec: " ".join(name.split()) for spec, name in pairs.items()}


def _split(text: str, agents: Sequence[str]) -> tuple[str, str]:
    fitting = [agent for agent in agents if text.startswith(f"{agent}=")]
    if not fitting:
        spec, _, name = text.rpartition("=")
        if not spec:
            raise InputError(f"names must look like AGENT=NAME, got {text!r}")
        check_choice("agent", spec, agents)
        return spec, name
    spec = max(fitting, key=len)
    return spec, text[len(spec) + 1 :]
