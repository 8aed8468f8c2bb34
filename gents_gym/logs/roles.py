"""Roles say which columns of a log are what; nothing is taken that is not named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gents_gym.checks import InputError, check_choice

UNIFORM = "uniform"  # as a propensity: every action was played with the same probability
NEEDED = ("action", "outcome", "context")  # roles that every log must have
SINGLE = ("action", "outcome", "time", "propensity", "task")  # roles of one column


@dataclass(frozen=True)
class Roles:
    """The columns of a log by their role; roles that take several columns accept wildcards."""

    action: str | None = None
    """Column of the action that was played: an id, a number or a text."""
    outcome: str | None = None
    """Column of what came of it, a number."""
    context: tuple[str, ...] = ()
    """Columns of the context; "u_*" takes all that begin with u_. Columns of texts are categories, one entry for each
    level."""
    action_features: tuple[str, ...] = ()
    """Columns of the action's features, the same in every row of an action; wildcards as above."""
    time: str | None = None
    """Column of the time of the decision, a number or a date; rows are sorted by it."""
    propensity: str | None = None
    """Column of the probability with which the logged action was played, or "uniform" if all were equal."""
    task: str | None = None
    """Column of the task, if there are several: streams of decisions, each with actions of its own."""

    def __bool__(self) -> bool:
        """Return whether any role is named."""
        return self != Roles()


@dataclass(frozen=True)
class Found:
    """The columns of one table that play a role, wildcards resolved, and those that play none."""

    action: str
    outcome: str
    context: tuple[str, ...]
    action_features: tuple[str, ...]
    time: str | None
    propensity: str | None
    task: str | None
    unused: tuple[str, ...]

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that are read, but for those of action features, which may be in another table."""
        single = (self.action, self.outcome, self.time, self.propensity, self.task)
        return (*(name for name in single if name is not None), *self.context)


def find_columns(roles: Roles, columns: Sequence[str], features_from: Sequence[str] | None = None) -> Found:
    """Return the columns that play each role. Raises if one is missing or plays two.

    Args:
        roles: The names.
        columns: The columns of the log.
        features_from: The columns of a table of actions, which then has the action features; None: the log has them.
    """
    for name in NEEDED:
        if not getattr(roles, name):
            raise InputError(f"{name} must name a column of the log, got none; it has {', '.join(columns)}")
    single = {name: getattr(roles, name) for name in SINGLE}
    if single["propensity"] == UNIFORM and UNIFORM not in columns:
        single["propensity"] = None
    for role, name in single.items():
        if name is not None:
            check_choice(f"column for {role}:", name, columns)
    context = expand("context", roles.context, columns)
    features = expand("action_features", roles.action_features, columns if features_from is None else features_from)
    here = features if features_from is None else ()
    check_single(
        {
            **{role: (name,) for role, name in single.items() if name is not None},
            "context": context,
            "action_features": here,
        }
    )
    taken = {*single.values(), *context, *here}
    unused = tuple(name for name in columns if name not in taken)
    return Found(**single, context=context, action_features=features, unused=unused)


def expand(role: str, names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that ``names`` stand for, each once, in the order of the names."""
    found: list[str] = []
    for name in names:
        matches = [name] if name in columns else [column for column in columns if fnmatchcase(column, name)]
        if not matches:
            check_choice(f"column for {role}:", name, columns)
        found += matches
    return tuple(dict.fromkeys(found))


def check_single(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise if a column plays two roles."""
    owners: dict[str, str] = {}
    for role, names in columns.items():
        for name in names:
            if name in owners:
                raise InputError(f"column {name!r} must have one role, got {owners[name]} and {role}")
            owners[name] = role
