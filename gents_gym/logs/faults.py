"""Finds everything that keeps a log from being used; reading it stops at the first."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice
from gents_gym.logs.encoding import encode, numbers
from gents_gym.logs.record import check_constant, join_features, number_actions, read_propensities, read_times
from gents_gym.logs.roles import NEEDED, SINGLE, UNIFORM, Roles, check_single, expand
from gents_gym.logs.table import LogTable


class Faults(list[str]):
    """The messages of what went wrong, each once."""

    def attempt(self, call: Callable[..., Any], *given: Any) -> Any:
        """Return what the call returns, or None if it raises."""
        try:
            return call(*given)
        except InputError as error:
            if str(error) not in self:
                self.append(str(error))
            return None


def find_faults(table: LogTable, roles: Roles, of_actions: LogTable | None = None) -> list[str]:
    """Return all reasons why a log cannot be used, a line each; columns are looked at one by one.

    Args:
        table: The log.
        roles: The columns by their roles; unknown ones are faults.
        of_actions: A table with the action features; None: the log has them.
    """
    faults, features_from = Faults(), table if of_actions is None else of_actions
    missing = [role for role in NEEDED if not getattr(roles, role)]
    faults += [f"{role} must name a column of the log, got none; it has {', '.join(table.columns)}" for role in missing]
    single = _single(faults, roles, table)
    context = _expand(faults, "context", roles.context, table)
    features = _expand(faults, "action_features", roles.action_features, features_from)
    here = features if of_actions is None else ()
    owners = {role: (name,) for role, name in single.items()}
    faults.attempt(check_single, {**owners, "context": context, "action_features": here})
    faults.attempt(table.check_complete, list(dict.fromkeys([*single.values(), *context, *here])))
    for name in context:
        faults.attempt(encode, _complete(table, [name]), [name])
    for role, read in (("outcome", numbers), ("propensity", read_propensities), ("time", read_times)):
        if role in single:
            faults.attempt(read, _complete(table, [single[role]]), single[role])
    if "action" in single:
        keys = [single[role] for role in ("task", "action") if role in single]
        for columns in [[], *([name] for name in features)]:
            faults.attempt(_check_features, table, columns, of_actions, keys)
    return faults


def _single(faults: Faults, roles: Roles, table: LogTable) -> dict[str, str]:
    """Return the columns of roles that take one, if the log has them."""
    given = {role: name for role in SINGLE if (name := getattr(roles, role)) is not None}
    if given.get("propensity") == UNIFORM and UNIFORM not in table.columns:
        del given["propensity"]
    for role, name in given.items():
        faults.attempt(check_choice, f"column for {role}:", name, table.columns)
    return {role: name for role, name in given.items() if name in table.columns}


def _expand(faults: Faults, role: str, names: Sequence[str], table: LogTable) -> tuple[str, ...]:
    """Return the columns that names stand for, without unknown ones."""
    found = [faults.attempt(expand, role, [name], table.columns) or () for name in names]
    return tuple(dict.fromkeys(name for part in found for name in part))


def _complete(table: LogTable, columns: Sequence[str]) -> LogTable:
    """Return the rows with a value in all columns."""
    gaps = np.zeros(len(table), np.bool_)
    for column in columns:
        gaps[table.missing(column)] = True
    return table.take(np.flatnonzero(~gaps)) if gaps.any() else table


def _check_features(table: LogTable, columns: Sequence[str], of_actions: LogTable | None, keys: Sequence[str]) -> None:
    """Raise unless actions have an id each, and these features."""
    if of_actions is not None:
        ids, _, _ = number_actions(_complete(table, keys), keys)
        join_features(of_actions, keys, columns, ids, None)
        return
    whole = _complete(table, [*keys, *columns])
    ids, actions, first = number_actions(whole, keys)
    check_constant(whole, columns, actions, first, ids)
    encode(whole.take(first), columns)
