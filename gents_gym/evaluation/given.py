"""Accepts agents given as classes or objects: names them by an equivalent spec, or keeps them to send to workers."""

import dataclasses
import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.construct import agent_ids, get_agent, make_agent, parse_spec
from gents_gym.evaluation.sources import code_hashes
from gents_gym.types import Agent

AgentLike = str | type | Agent
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Given:
    """An agent that no spec describes: it is sent to the workers as it is."""

    agent: Agent
    code: Mapping[str, str]  # sha256 of what it is made of, for the names of results


def name_agents(agents: Sequence[AgentLike] | Mapping[str, AgentLike]) -> tuple[tuple[str, ...], dict[str, Given]]:
    """Return the agents' names in results, and those among them that no spec describes.

    A class or object that a spec describes, such as ``LinUCB(alpha=2.0)`` for "linucb(alpha=2.0)", becomes that spec.
    Others, such as classes of a notebook, are named after their class; a mapping gives them other names.

    Args:
        agents: Ids, classes and objects; or a mapping from names to classes and objects, and from ids to themselves.
    """
    entries: list[tuple[str | None, AgentLike]]
    if isinstance(agents, Mapping):
        entries = list(agents.items())
    elif isinstance(agents, Sequence) and not isinstance(agents, str):
        entries = [(None, agent) for agent in agents]
    else:
        raise InputError(f"agents must be several ids, classes or objects, got {agents!r}")
    names, given = [], {}
    for name, agent in entries:
        spec = _spec(agent) if name is None or (isinstance(agent, str) and name == agent) else None
        if spec is None:
            name = _check_name(type_name(agent) if name is None else name)
            if name in given:
                raise InputError(f"agents must differ by name, got {name!r} twice: give names, as in {{'mine': agent}}")
            given[name] = _keep(name, agent)
        names.append(spec or str(name))
    return tuple(names), given


def type_name(agent: Any) -> str:
    """Return the name of a class, or of an object's class."""
    return str((agent if isinstance(agent, type) else type(agent)).__name__)


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w .+-]*", name) or name in agent_ids():
        raise InputError(
            f"an agent's name must have only letters, digits and ' _.+-' and must not be a known id, got {name!r}"
        )
    return name


def _keep(name: str, agent: Any) -> Given:
    if isinstance(agent, str):
        rule = "agents must map names to classes or objects, and ids to themselves"
        raise InputError(f"{rule}, got {agent!r} for {name!r}: write {{{agent!r}: {agent!r}}}")
    made = get_agent(f"agent {name!r}", agent)
    try:
        content = cloudpickle.dumps(made)
    except Exception as error:
        raise InputError(f"agent {name!r} must be picklable, to be sent to workers: {error}") from error
    source = f"{type(made).__module__}:{type(made).__qualname__}"
    modules = code_hashes(source) if _is_importable(type(made)) else {}
    return Given(made, {f"object {name}": hashlib.sha256(content).hexdigest(), **modules})


def _spec(agent: AgentLike) -> str | None:
    """Return a spec that makes an agent of the same class and options; None if there is none."""
    if isinstance(agent, str) or not callable(getattr(agent, "act", None)):
        return agent if isinstance(agent, str) else None
    kind = agent if isinstance(agent, type) else type(agent)
    if not _is_importable(kind):
        return None
    target = f"{kind.__module__}:{kind.__qualname__}"
    name = next((name for name, known in registry.AGENTS.items() if known == target), target)
    if isinstance(agent, type):
        return name
    if not dataclasses.is_dataclass(agent):
        return None
    chosen = [field for field in dataclasses.fields(agent) if field.init and not _is_default(field, agent)]
    options = {field.name: getattr(agent, field.name) for field in chosen}
    if not all(type(value) in PLAIN for value in options.values()):
        return None
    text = ", ".join(f"{option}={value!r}" for option, value in options.items())
    spec = f"{name}({text})" if text else name
    if parse_spec(spec)[1] != options:
        return None
    try:
        return spec if vars(make_agent(spec)) == vars(agent) else None  # a fitted agent holds more than its options
    except ValueError:  # arrays
        return None


def _is_default(field: "dataclasses.Field[Any]", agent: Any) -> bool:
    default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    value = getattr(agent, field.name)
    return type(value) is type(default) and bool(value == default)


def _is_importable(kind: type) -> bool:
    """Return whether a worker process finds the class by its name."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return kind.__module__ != "__main__" and found is kind
