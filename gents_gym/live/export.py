"""Turns a store of decisions into a log: a table with one row for each decision."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gents_gym.checks import InputError
from gents_gym.live.store import Store, unpack
from gents_gym.logs.encoding import Column, Encoding


def read_decisions(store: str | Path, *, pending: bool = False) -> pa.Table:
    """Return the decisions of a store as a table; the store may be in use.

    Columns: ``stream``, ``decision`` (its id), ``time``, ``action``, ``outcome``, ``propensity``, then context and
    action features: under the names of the log that the model was trained on, categories as their levels, or else as
    ``x_0``, ``x_1``, … and ``z_0``, …; so ``gents-gym train --data`` reads it with the roles of these names.

    Args:
        store: The file.
        pending: Whether decisions without an outcome are in it too, with a null.
    """
    opened = Store(store, readonly=True)
    try:
        features: dict[tuple[str, str | None], np.ndarray] = {}
        made, outcomes = [], {}
        known = opened.facts().get("columns")
        for event in opened.events():
            if event.kind == "add":
                features[event.stream, event.action] = unpack(event.vector or b"", np.float32)
            elif event.kind == "decide":
                made.append(event)
            elif event.kind == "outcome":
                outcomes[event.decision] = event.value
    finally:
        opened.close()
    made = [event for event in made if pending or event.seq in outcomes]
    if not made:
        raise InputError(f"store must have decisions with outcomes to make a log of, got '{store}' without")
    columns = {
        "stream": pa.array([event.stream for event in made]),
        "decision": pa.array([event.seq for event in made]),
        "time": pa.array([event.time for event in made]),
        "action": pa.array([event.action for event in made]),
        "outcome": pa.array([outcomes.get(event.seq) for event in made], pa.float64()),
        "propensity": pa.array([event.probability for event in made], pa.float64()),
    }
    contexts = np.stack([unpack(event.vector or b"", np.float32) for event in made])  # (n, D)
    of_actions = np.stack([features[event.stream, event.action] for event in made])  # (n, F)
    encoding = None if known is None else Encoding.from_json(known)
    columns |= _decode("x", contexts, None if encoding is None else encoding.contexts, columns)
    columns |= _decode("z", of_actions, None if encoding is None else encoding.action_features, columns)
    return pa.table(columns)


def _decode(
    letter: str, vectors: np.ndarray, columns: Sequence[Column] | None, taken: Collection[str]
) -> dict[str, pa.Array]:
    """Return vectors (n, entries) as columns, by their names.

    Args:
        letter: Names that are not known or taken begin with it.
        vectors: The contexts, or the features.
        columns: How the model's log became entries; None: not known.
        taken: Names of other columns.
    """
    if columns is None:
        return {f"{letter}_{i}": pa.array(entry) for i, entry in enumerate(vectors.T)}
    found: dict[str, pa.Array] = {}
    start = 0
    for column in columns:
        part = vectors[:, start : start + len(column.entries)]
        start += len(column.entries)
        levels = part.argmax(axis=1)
        if column.levels is None:
            named = {column.name: pa.array(part[:, 0])}
        elif np.array_equal(part, np.eye(len(column.levels))[levels]):
            named = {column.name: pa.array([column.levels[level] for level in levels])}
        else:  # numbers were given in the place of a level
            named = {name: pa.array(entry) for name, entry in zip(column.entries, part.T, strict=True)}
        for name, values in named.items():
            while name in taken or name in found:
                name = f"{letter}_{name}"
            found[name] = values
    return found
