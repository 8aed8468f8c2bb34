"""Turns a store of decisions into a log: a table with one row for each decision."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from gents_gym.checks import InputError
from gents_gym.live.store import Store, unpack


def read_decisions(store: str | Path, *, pending: bool = False) -> pa.Table:
    """Return the decisions of a store as a table; the store may be in use.

    Columns: ``stream``, ``decision`` (its id), ``time``, ``action``, ``outcome``, ``propensity``, the context as
    ``x_0``, ``x_1``, …, the action's features as ``z_0``, …; so ``gents-gym train --data`` reads it with the roles
    of these names.

    Args:
        store: The file.
        pending: Whether decisions without an outcome are in it too, with a null.
    """
    opened = Store(store, readonly=True)
    try:
        features: dict[tuple[str, str | None], np.ndarray] = {}
        made, outcomes = [], {}
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
    columns |= {f"x_{i}": pa.array(column) for i, column in enumerate(contexts.T)}
    columns |= {f"z_{i}": pa.array(column) for i, column in enumerate(of_actions.T)}
    return pa.table(columns)
