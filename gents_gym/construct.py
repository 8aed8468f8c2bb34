"""From an id and options to an object: agents, policy classes and task distributions."""

import ast
import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from gents_gym import registry
from gents_gym.checks import InputError, check_choice
from gents_gym.likelihoods import Likelihood
from gents_gym.types import Agent, PolicyClass, RewardFn, TaskDistribution, identity

SPEC = re.compile(r"(?P<name>[\w.:/-]+)\s*(?:\((?P<options>.*)\))?", re.DOTALL)
OPTION = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>.*)", re.DOTALL)
BARE_WORD = re.compile(r"[\w.:/~-]+")


def make_agent(agent: str, /, **options: Any) -> Agent:
    """Make an agent.

    Args:
        agent: A registered id ("linucb"), one of the entry-point group ``gents_gym.agents``, or
            ``package.module:Class``; options may stand behind it, as in "lints(prior=fitted)".
        **options: The agent's own options; they win over those in ``agent``.
    """
    made = make_object("agent", agent, agent_ids(), options)
    if not isinstance(made, Agent):
        rule = "must have reset, act and observe (for one with act(observation) alone: per-task(agent=...))"
        raise InputError(f"agent {agent!r} {rule}, got {made!r}")
    return made


def make_policy(policy: str, /, reward_fn: RewardFn = identity, **options: Any) -> PolicyClass:
    """Make a policy class.

    Args:
        policy: A registered id ("logistic") or ``package.module:Class``, options behind it.
        reward_fn: R; handed to a class that takes it. Others see outcomes alone.
        **options: The class's own options; they win over those in ``policy``.
    """
    name, _ = parse_spec(policy)
    if "reward_fn" in _parameters("policy class", name, find("policy class", name, registry.POLICIES)):
        options["reward_fn"] = reward_fn
    made: PolicyClass = make_object("policy class", policy, registry.POLICIES, options)
    if not hasattr(made, "fit"):
        raise InputError(f"policy class {policy!r} must have fit, got {made!r}")
    return made


def get_policy(
    name: str, policy: Any, reward_fn: RewardFn = identity, likelihood: Likelihood | None = None
) -> PolicyClass:
    """Return the policy class that ``policy`` is or names, or raise; ``name`` is the argument's, for the errors.

    An object brings its own R where it has one, and it must be the task's. A class that says which ``likelihoods`` it
    takes must take the task's ``likelihood``, if that is given.
    """
    made = make_policy(policy, reward_fn=reward_fn) if isinstance(policy, str) else policy
    taken = getattr(made, "likelihoods", None)
    if likelihood is not None and taken is not None and not isinstance(likelihood, taken):
        rule = f"{name} must be a policy class for {likelihood} outcomes, such as least-squares"
        raise InputError(f"{rule}, got {policy!r}")
    if isinstance(policy, str):
        return made
    if isinstance(policy, type) or not hasattr(policy, "fit"):
        raise InputError(f"{name} must be a policy class with fit, or its id, got {policy!r}")
    if getattr(policy, "reward_fn", reward_fn) is not reward_fn:
        raise InputError(f"{name} must have the task's reward_fn, {reward_fn!r}, got {policy.reward_fn!r}")
    return policy


def make_tasks(tasks: str, /, **options: Any) -> TaskDistribution:
    """Make a task distribution from a registered id ("synthetic") or ``package.module:Class``.

    ``reward_fn`` may be given by id ("identity") or as ``package.module:function``, so that all
    options are plain values.
    """
    if isinstance(reward := options.get("reward_fn"), str):
        options["reward_fn"] = find("reward function", reward, registry.REWARDS)
    made = make_object("task distribution", tasks, registry.TASKS, options)
    if not isinstance(made, TaskDistribution):
        raise InputError(f"task distribution {tasks!r} must have sample and sample_actions, got {made!r}")
    return made


def agent_ids() -> dict[str, str]:
    """Return all agent ids with the constructors they stand for, those of other distributions included."""
    from importlib.metadata import entry_points  # slow to import, and importing the package needs no ids

    theirs = {point.name: point.value for point in entry_points(group="gents_gym.agents")}
    return {**theirs, **registry.AGENTS}


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split "name(option=value, …)" into the name and its options.

    Values are Python literals, bare words or such specs themselves; nothing is ever evaluated as code.
    """
    match = SPEC.fullmatch(spec.strip()) if isinstance(spec, str) else None
    if match is None:
        raise InputError(f"a spec must look like name or name(option=value, ...), got {spec!r}")
    options: dict[str, Any] = {}
    pending = ""
    for piece in (match["options"] or "").split(",") if (match["options"] or "").strip() else []:
        pending += piece
        option = OPTION.fullmatch(pending.strip())
        if option is None or option["name"] in options:
            raise InputError(f"options must be named, as in name(option=value), each once, got {spec!r}")
        try:
            options[option["name"]] = _literal(option["value"])
            pending = ""
        except ValueError:
            pending += ","  # the comma may stand inside a list or a quoted text: try again with the next piece
    if pending:
        raise InputError(f"an option's value must be a literal or a word, got {pending.strip(' ,')!r} in {spec!r}")
    return match["name"], options


def _literal(text: str) -> Any:
    """Return the literal or bare word that ``text`` is, or raise a ValueError."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: signs or brackets without end
        if BARE_WORD.fullmatch(text) or _is_spec(text):
            return text
        raise ValueError(text) from None


def _is_spec(text: str) -> bool:
    """Return whether ``text`` is itself a name with options, as in ts-gen(model=mine:Model(rate=2))."""
    try:
        return bool(parse_spec(text)[1])
    except (InputError, RecursionError):
        return False


def find(kind: str, name: str, known: Mapping[str, str]) -> Any:
    """Return what ``name`` stands for among ``known`` ids or as ``package.module:attribute``."""
    target = known.get(name, name)
    if ":" not in target:
        check_choice(kind, name, known)
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever a user's module raises at import is the user's to read
        what = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise InputError(f"cannot import {kind} {name!r}: {what}{error}") from error
    return found


def _parameters(kind: str, name: str, constructor: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(constructor).parameters
    except (TypeError, ValueError):  # some builtins have no signature, and what is no callable has none either
        raise InputError(f"{kind} {name!r} must name a class or function, got {constructor!r}") from None


def make_object(kind: str, spec: str, known: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    """Make what ``spec`` names among ``known`` ids or as ``package.module:Class``; ``kind`` is for the errors."""
    name, given = parse_spec(spec)
    options = {**given, **options}
    constructor = find(kind, name, known)
    parameters = _parameters(kind, name, constructor)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for option in options:
            check_choice(f"option of {kind} {name!r}:", option, parameters)
    required = [p.name for p in parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    for option in required:
        if option not in options:
            raise InputError(f"{kind} {name!r} needs the option {option!r}")
    try:
        return constructor(**options)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{kind} {name!r} cannot be made: {type(error).__name__}: {error}") from error
