"""Says in words what is odd about a log: duplicates, gaps, constants, leaks, few rows, propensities that do not fit."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gents_gym.checks import InputError
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.logs.describe import describe
from gents_gym.logs.encoding import is_number, is_text
from gents_gym.logs.faults import find_faults
from gents_gym.logs.record import Logs, read_logs
from gents_gym.logs.roles import Roles
from gents_gym.logs.table import LogTable, read_table

FEW_ROWS = 20  # of an action: with fewer, little can be said about it
FEW_LEVELS = 10  # outcomes of so many whole numbers from 0 on may be categories
LEAK = 0.9  # share of the outcomes' variance that one context column explains: more is too good to be true
LEAST_ROWS = 50  # for a leak to be looked for
BINS = 20  # most groups that a column of numbers is cut into
DEVIATIONS = 4.0  # standard errors between propensities and frequencies that are reported
SHOWN = 3  # actions that a sentence names


class Checked(NamedTuple):
    """What was found in a log, a line each."""

    has: list[str]  # what is there
    odd: list[str]  # what is odd about it
    fatal: list[str]  # why it cannot be used; empty: it can


def check_data(data: Any, roles: Roles, action_table: Any = None) -> Checked:
    """Return what a log has and what is odd about it; without roles, the columns alone are looked at.

    Args:
        data: A CSV or Parquet file, a pyarrow table or a pandas data frame.
        roles: The columns of action, outcome, context and so on.
        action_table: A table with the action features, as in :func:`gents_gym.read_logs`.
    """
    ids = (roles.action, roles.task)
    table = read_table("data", data, ids)
    table.check_rows()
    title = f"{table.name}: {len(table)} rows".replace("'", "")
    odd = list(_table_oddities(table, roles))
    if not roles:
        texts = read_table("data", data, table.columns) if table.is_csv else table
        return Checked([title, *(f"  {name:<16} {_kind(table, texts, name)}" for name in table.columns)], odd, [])
    try:
        logs = read_logs(data, roles, action_table=action_table)
    except InputError as error:
        of_actions = None if action_table is None else read_table("action_table", action_table, ids)
        return Checked([title], odd, find_faults(table, roles, of_actions) or [str(error)])
    return Checked(describe(logs), [*odd, *_log_oddities(logs)], [])


def _kind(table: LogTable, texts: LogTable, name: str) -> str:
    """Return what a column holds, in a few words; ``texts`` has the columns of a CSV file as they are written."""
    values = table.column(name)
    if pa.types.is_nested(values.type):
        return str(values.type)
    if values.null_count == len(values):
        return "no values"
    written = texts.column(name)
    if pa.types.is_integer(values.type) and is_text(written) and _has_zeros(written):
        distinct = f"{pc.count_distinct(written).as_py()} distinct"
        span = f"{pc.min(written).as_py()} to {pc.max(written).as_py()}"
        return f"texts, because of leading zeros, {distinct}, {span}; numbers unless --action or --task"
    distinct = f"{pc.count_distinct(values).as_py()} distinct"  # a missing value is none of them
    if is_number(values):
        found = values.cast(pa.float64(), safe=False)
        return f"numbers, {distinct}, {pc.min(found).as_py():g} to {pc.max(found).as_py():g}"
    return f"{'texts' if is_text(values) else values.type}, {distinct}"


def _has_zeros(written: pa.ChunkedArray) -> bool:
    """Return whether some whole numbers are written with leading zeros, as ids are."""
    return bool(pc.any(pc.match_substring_regex(written, r"^[+-]?0\d")).as_py())


def _table_oddities(table: LogTable, roles: Roles) -> Iterator[str]:
    """Yield what can be seen without knowing what the columns mean."""
    for name in table.columns:
        gaps = table.missing(name)
        if len(gaps):
            yield f"Column {name!r} has no value in {len(gaps)} of {len(table)} rows ({table.where(gaps)})."
    flat = [name for name in table.columns if not pa.types.is_nested(table.column(name).type)]
    distinct = table.table.select(flat).group_by(flat).aggregate([]).num_rows if flat else len(table)
    if distinct < len(table):
        yield f"{len(table) - distinct} of {len(table)} rows repeat another row in every column."
    for name in flat:
        values = pc.unique(table.column(name).drop_null())
        if name not in (roles.task, roles.propensity) and len(table) > 1 and len(values) == 1:
            yield f"Column {name!r} is constant, {values[0].as_py()!r}: nothing can be learned from it."


def _log_oddities(logs: Logs) -> Iterator[str]:
    """Yield what is odd about outcomes, contexts, actions and propensities."""
    levels = np.unique(logs.outcomes)
    if logs.likelihood == GAUSSIAN and len(levels) <= FEW_LEVELS and np.array_equal(levels, np.arange(len(levels))):
        yield (
            f"The outcomes are 0 to {len(levels) - 1} and are taken as amounts: if they are categories, "
            f'train with --likelihood "categorical({len(levels)})".'
        )
    yield from _leaks(logs)
    counts = np.bincount(logs.actions, minlength=len(logs.action_ids))
    few = np.flatnonzero(counts < FEW_ROWS)
    if len(few):
        shown = ", ".join(f"{logs.action_ids[a]!r} {counts[a]}" for a in few[np.argsort(counts[few])][:SHOWN])
        yield f"{len(few)} of {len(counts)} actions have fewer than {FEW_ROWS} rows ({shown})."
    if logs.propensities is not None:
        yield from _propensities(logs)


def _leaks(logs: Logs) -> Iterator[str]:
    """Yield context entries that explain the outcomes almost perfectly: they may have been logged after them."""
    assert logs.encoding is not None
    names = [entry for column in logs.encoding.contexts for entry in column.entries]
    if len(logs) < LEAST_ROWS or np.ptp(logs.outcomes) == 0:
        return
    for name, values in zip(names, logs.contexts.T, strict=True):
        share = explained(values, logs.outcomes)
        if share > LEAK:
            yield (
                f"Context {name!r} alone explains {100 * share:.0f} % of the outcomes' variance: "
                "it leaks the outcome if it was logged after the decision."
            )


def explained(values: np.ndarray, outcomes: np.ndarray) -> float:
    """Return the share of the outcomes' variance, (n,), between groups of equal or neighbouring values, (n,).

    The share is adjusted for the number of groups, so that pure noise gives 0 on average.
    """
    _, groups = np.unique(values, return_inverse=True)
    if groups.max() >= BINS:
        edges = np.quantile(values, np.linspace(0, 1, min(BINS, len(values) // 10) + 1)[1:-1])
        _, groups = np.unique(np.searchsorted(edges, values), return_inverse=True)
    outcomes = outcomes.astype(np.float64)
    counts = np.bincount(groups)
    means = np.bincount(groups, outcomes) / counts
    within = ((outcomes - means[groups]) ** 2).sum() / max(len(outcomes) - len(counts), 1)
    return float(1 - within / outcomes.var(ddof=1))


def _propensities(logs: Logs) -> Iterator[str]:
    """Yield actions that were played more or less often than their propensities say.

    An action that may be played in every row of its task has 1{A = a} / p of mean 1 over these rows.
    """
    assert logs.propensities is not None
    odd: list[tuple[int, float]] = []
    total = 0
    for rows, _ in logs.streams():
        actions, owners, counts = np.unique(logs.actions[rows], return_inverse=True, return_counts=True)
        inverse = 1 / logs.propensities[rows]
        shares = np.bincount(owners, inverse) / len(rows)
        spread = np.bincount(owners, inverse**2) / len(rows) - shares**2
        # Of few rows, the spread of the weights says little: what the propensities themselves imply counts too.
        implied = np.bincount(owners, inverse) / counts - 1
        errors = np.sqrt(np.maximum(spread, implied) / len(rows))
        far = np.abs(shares - 1) > DEVIATIONS * errors + 1e-6
        odd += list(zip(actions[far], shares[far], strict=True))
        total += len(actions)
    if odd:
        shown = ", ".join(f"{logs.action_ids[action]!r} {ratio:.2g}" for action, ratio in odd[:SHOWN])
        yield (
            f"The propensities of {len(odd)} of {total} actions do not fit how often they were played ({shown} times "
            "as often as the propensities say): answers that divide by them would be wrong. This is also seen if not "
            "every action could be played in every row."
        )
