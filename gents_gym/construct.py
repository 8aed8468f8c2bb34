"""Makes agents, policy classes and task distributions from an id and options.

``package.module:Class`` imports the module, so it is only for what the user types or passes. Specs read from a file
first go through :func:`gents_gym.specs.check_registered`.
"""

import difflib
import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from gents_gym import registry
from gents_gym.checks import InputError, check_choice, check_option
from gents_gym.likelihoods import Likelihood
from gents_gym.modules import import_named
from gents_gym.specs import parse_spec as parse_spec
from gents_gym.types import Agent, PolicyClass, RewardFn, TaskDistribution, identity

METHODS = {  # a class must have one of these sets of methods before it is called for a spec
    "agent": (("act",),),
    "estimator": (("fit",), ("partial_fit",)),
    "model": (("begin",), ("start", "predict", "append")),
    "policy class": (("fit",),),
    "task distribution": (("sample",),),
}


def make_agent(agent: str, /, **options: Any) -> Agent:
    """Make an agent.

    Args:
        agent: A registered id ("linucb"), one of the entry-point group ``gents_gym.agents``, or
            ``package.module:Class``; optionally with options, as in "lints(prior=fitted)".
        **options: The agent's own options; they override those in ``agent``.
    """
    made: Agent = check_is_agent(f"agent {agent!r}", make_object("agent", agent, agent_ids(), options))
    return made


def check_is_agent(name: str, agent: Any) -> Any:
    """Check that an agent has the three methods of an agent that plays B tasks at once; return it."""
    lacking = [verb for verb in ("reset", "act", "observe") if not callable(getattr(agent, verb, None))]
    if lacking:
        single = "; one for a single task, with act(observation), is played by per-task(agent=...) or PerTask(MyAgent)"
        hint = single if "reset" in lacking else ""
        raise InputError(f"{name} must have reset, act and observe; it lacks {', '.join(lacking)}{hint}")
    return agent


def get_agent(name: str, agent: Any) -> Agent:
    """Return the agent that ``agent`` is, names, or, as a class, makes without arguments; ``name`` is for errors."""
    if isinstance(agent, str):
        return make_agent(agent)
    try:
        made = agent() if isinstance(agent, type) else agent
    except Exception as error:
        raise InputError(f"{name} cannot be made: {type(error).__name__}: {error}") from error
    checked: Agent = check_is_agent(name, made)
    return checked


def agent_options(agent: str) -> list[str]:
    """Return the names of the options that an agent's constructor takes; ``agent`` is an id without options."""
    return list(_parameters("agent", agent, find("agent", agent, agent_ids())))


def make_policy(policy: str, /, reward_fn: RewardFn = identity, **options: Any) -> PolicyClass:
    """Make a policy class.

    Args:
        policy: A registered id ("logistic") or ``package.module:Class``, optionally with options.
        reward_fn: R; passed to a class that accepts it. Others only see outcomes.
        **options: The class's own options; they override those in ``policy``.
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
    """Return the policy class that ``policy`` is or names; ``name`` is the argument's name, for errors.

    If an object has its own R, it must be the task's. A class that declares ``likelihoods`` must include the task's
    ``likelihood``, if that is given.
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
    options are plain values. A class without this option is refused with advice.
    """
    if "reward_fn" in options:
        _check_reward_option(tasks)
    if isinstance(reward := options.get("reward_fn"), str):
        options["reward_fn"] = find("reward function", reward, registry.REWARDS)
    made = make_object("task distribution", tasks, registry.TASKS, options)
    if not isinstance(made, TaskDistribution):
        raise InputError(f"task distribution {tasks!r} must have sample and sample_actions, got {made!r}")
    return made


def _check_reward_option(tasks: str) -> None:
    """Raise unless a task distribution accepts R."""
    name, _ = parse_spec(tasks)
    parameters = _parameters("task distribution", name, find("task distribution", name, registry.TASKS)).values()
    if not any(p.name == "reward_fn" or p.kind is p.VAR_KEYWORD for p in parameters):
        rule = "give its class the option, and pass it on to Tasks and ActionRows"
        raise InputError(f"task distribution {tasks!r} takes no reward_fn: {rule}")


def agent_ids() -> dict[str, str]:
    """Return all agent ids with their constructors, including those of other distributions."""
    from importlib.metadata import entry_points  # slow to import, and importing the package needs no ids

    theirs = {point.name: point.value for point in entry_points(group="gents_gym.agents")}
    return {**theirs, **registry.AGENTS}


def find(kind: str, name: str, known: Mapping[str, str]) -> Any:
    """Return the object that ``name`` refers to: a ``known`` id or ``package.module:attribute``; not for files."""
    target = known.get(name, name)
    if ":" not in target:
        module, _, attribute = name.rpartition(".")
        check_choice(kind, name, [*known, *([f"{module}:{attribute}"] if module else [])])
    module, _, attribute = target.partition(":")
    try:
        found: Any = import_named(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever a user's module raises at import is the user's to read
        what = "" if isinstance(error, ImportError | AttributeError | InputError) else f"{type(error).__name__}: "
        near = (
            difflib.get_close_matches(str(error.name), dir(error.obj), 1) if isinstance(error, AttributeError) else []
        )
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"cannot import {kind} {name!r}: {what}{error}{hint}") from error
    if name not in known and _is_builtin(found):
        raise InputError(f"{kind} {name!r} must be defined outside the standard library, got {found!r}")
    return found


def _is_builtin(found: Any) -> bool:
    """Return whether an object belongs to Python itself, by whatever name it was reached."""
    while isinstance(found, functools.partial):
        found = found.func
    return str(getattr(found, "__module__", "")).partition(".")[0] in sys.stdlib_module_names


def _parameters(kind: str, name: str, constructor: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(constructor).parameters
    except (TypeError, ValueError):  # builtins and objects that are not callable may lack a signature
        raise InputError(f"{kind} {name!r} must name a class or function, got {constructor!r}") from None


def _check_callable(kind: str, name: str, constructor: Any) -> None:
    """Raise, before it is called, unless a target without an id can make what is requested.

    A class must have the methods of its kind. What a function returns is unknown before it is called, so it must be the
    user's own, not Python's or this package's.
    """
    if isinstance(constructor, type):
        wanted = METHODS.get(kind, ())
        if wanted and not any(all(hasattr(constructor, verb) for verb in verbs) for verbs in wanted):
            rule = " or ".join(", ".join(verbs) for verbs in wanted)
            raise InputError(f"{kind} {name!r} must be a class with {rule}, got {constructor!r}")
    elif str(getattr(constructor, "__module__", None)).partition(".")[0] in ("None", "gents_gym"):
        raise InputError(f"{kind} {name!r} must name a class, or your own function, got {constructor!r}")


def make_object(kind: str, spec: str, known: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    """Make the object that ``spec`` names by a ``known`` id or as ``package.module:Class``; ``kind`` is for errors."""
    name, given = parse_spec(spec)
    options = {**given, **options}
    constructor = find(kind, name, known)
    parameters = _parameters(kind, name, constructor)
    if name not in known:
        _check_callable(kind, name, constructor)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for option in options:
            check_option(f"{kind} {name!r}", option, parameters)
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
