"""Compares Theorem 1 and related bounds with the regret of TS-Gen on p*, by horizon and number of actions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from gents_gym.checks import InputError, check_integer
from gents_gym.models.load import resolve_model
from gents_gym.models.sequence import SequenceModel
from gents_gym.theory.bounds import entropy_bound, horizon_that_bites, linear_bound, perfect_bound
from gents_gym.theory.estimates import Estimate, estimate
from gents_gym.theory.histories import known_info, play, random_regret
from gents_gym.types import TaskDistribution, Tasks


@dataclass(frozen=True)
class Point:
    """Bounds and regret per period at one horizon and number of actions, TS-Gen on p* and logistic policies."""

    horizon: int
    n_actions: int
    dimension: int
    entropy: float  # Proposition 2's bound
    perfect: float  # Theorem 1's
    linear: float  # that for linear policies
    bites: int  # the horizon from which on Theorem 1 is below 1
    bites_random: int | None  # and below the regret of random play; None if not measured
    random: float | None = None  # expected regret per period of random play
    regret: Estimate | None = None  # measured regret per period


def bound_point(horizon: int, n_actions: int, dimension: int, tasks: Tasks | None = None, seed: int = 0) -> Point:
    """Return the bounds at a point, and the regret of TS-Gen on p* if there are tasks to play.

    Args:
        horizon: T.
        n_actions: A.
        dimension: d, the policy class's Natarajan dimension.
        tasks: B tasks of these sizes; None: only the formulas.
        seed: Seed of the agent.
    """
    if check_integer("horizon", horizon, 1) <= dimension:
        rule = f"horizon must be above the dimension d={dimension}, up to which Proposition 2 counts every labeling"
        raise InputError(f"{rule}, got {horizon}")
    entropy = entropy_bound(horizon, n_actions, dimension)
    bounds = (entropy, perfect_bound(horizon, n_actions, entropy), linear_bound(horizon, n_actions, dimension))
    bites = horizon_that_bites(n_actions, dimension)
    if tasks is None:
        return Point(horizon, n_actions, dimension, *bounds, bites, None)
    chance = random_regret(tasks)
    found = estimate(play(tasks, seed=seed).mean(axis=1))
    below = horizon_that_bites(n_actions, dimension, chance) if chance > 0 else None
    return Point(horizon, n_actions, dimension, *bounds, bites, below, chance, found)


def resize(distribution: Any, horizon: int, n_actions: int) -> TaskDistribution:
    """Return the task distribution with another horizon and number of actions."""
    names = {field.name for field in fields(distribution)} if is_dataclass(distribution) else set()
    if not {"horizon", "n_actions"} <= names:
        raise InputError(f"env must have the options horizon and n_actions to vary them, got {distribution!r}")
    found: TaskDistribution = replace(distribution, horizon=horizon, n_actions=n_actions)
    return found


def find_models(names: Sequence[str], tasks: Tasks) -> dict[str, SequenceModel]:
    """Return the trained models with these names. Raises at the first that does not fit these tasks."""
    found: dict[str, SequenceModel] = {}
    for name in names:
        model = resolve_model(name, known_info(tasks))
        if not isinstance(model, SequenceModel):
            raise InputError(f"models must be trained models, whose loss is measured, got {name!r}")
        model.check_space(tasks.space)
        found[name] = model
    return found
