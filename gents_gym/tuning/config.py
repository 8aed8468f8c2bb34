"""Defines what is tuned: a model, the future tasks, and the agents that compete."""

from dataclasses import dataclass
from typing import Any

from gents_gym import registry
from gents_gym.checks import InputError, check_integer, check_number
from gents_gym.construct import agent_ids, agent_options, make_agent
from gents_gym.evaluation.environments import find_distribution
from gents_gym.specs import check_registered, parse_spec, write_spec


@dataclass(frozen=True)
class TuneConfig:
    """What is tuned, and how thoroughly."""

    model: str = "synthetic-filter"
    """A bundled model or a model's folder; the agents act on it, and it imagines the tasks."""
    env: str | None = None
    """Environment that defines the future tasks' horizon, number of actions and context_spread; none of its tasks is
    used."""
    horizon: int | None = None
    """Decisions per future task; none: the environment's."""
    n_actions: int | None = None
    """Actions per future task; none: the environment's."""
    contexts: float | str | None = None
    """Future contexts: bank, seen, or a number from 0 (all contexts of a task are equal) to 1 (independent). None: the
    environment's context_spread, or the model's own urn."""
    candidates: tuple[str, ...] = ()
    """Agents that compete, each an id with options but without a model; none: a default grid."""
    tasks: int = 200
    """Imagined tasks that the last two candidates play; earlier rounds play half as many, and so on, rounded up
    to whole blocks."""
    risk: float = 0.0
    """Weight of the quantile in the score, (1 - risk) · mean + risk · quantile of the tasks' regrets."""
    quantile: float = 0.95
    """The quantile in the score."""
    seed: int = 0
    """Seed of the imagined tasks."""
    block: int = 25
    """Tasks played side by side, by one worker."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("horizon", "n_actions"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        for name, minimum in (("tasks", 2), ("seed", 0), ("block", 1)):
            check_integer(name, getattr(self, name), minimum)
        for name in ("risk", "quantile"):
            if check_number(name, getattr(self, name), 0) > 1:
                raise InputError(f"{name} must be at most 1, got {getattr(self, name)}")


def choose_candidates(config: TuneConfig, model: str) -> dict[str, str]:
    """Return the specs of the agents that compete, without and with the model. Raises if one cannot be made.

    A tuned file names the chosen agent, and files cannot name code, so all agents must be registered.
    """
    known = agent_ids()
    specs = config.candidates or tuple(spec for spec in registry.TUNED if parse_spec(spec)[0] in known)
    found = {}
    for spec in specs:
        name, options = parse_spec(check_registered("candidate", spec, known))
        if "model" in options:
            raise InputError(f"candidates must not name a model, which is the tuned one, got {spec!r}")
        if "model" not in agent_options(name):
            raise InputError(f"candidates must be agents on a model, got {spec!r}")
        make_agent(spec, model=model)
        found[spec] = write_spec(name, {**options, "model": model})
    if len(found) < len(specs):
        raise InputError(f"candidates must differ from each other, got {' '.join(specs)}")
    return found


def tasks_to_come(config: TuneConfig) -> dict[str, Any]:
    """Return the sizes and the law of contexts of the future tasks, as options of imagined tasks."""
    found = {name: getattr(config, name) for name in ("horizon", "n_actions", "contexts")}
    if config.env is not None:
        distribution = find_distribution(config.env)
        for name, public in (("horizon", "horizon"), ("n_actions", "n_actions"), ("contexts", "context_spread")):
            if found[name] is None:
                found[name] = getattr(distribution, public, None)
    for name in ("horizon", "n_actions"):
        if found[name] is None:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{name} must be given ({flag}), or known from an environment (--env), got none")
    return {name: value for name, value in found.items() if value is not None}
