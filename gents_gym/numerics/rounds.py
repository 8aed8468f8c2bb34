"""Splits entries of many tasks into rounds; in each round, a task has at most one entry."""

from collections.abc import Iterator

import numpy as np


def is_rising(numbers: np.ndarray) -> bool:
    """Whether each of the numbers (n,) is larger than the previous one."""
    return np.count_nonzero(numbers[1:] <= numbers[:-1]) == 0


def rounds(task: np.ndarray) -> Iterator[np.ndarray | slice]:
    """Yield positions such that each part names a task at most once, in order."""
    if is_rising(task):
        yield slice(None)
        return
    order = np.argsort(task, kind="stable")
    _, first, counts = np.unique(task[order], return_index=True, return_counts=True)
    rank = np.empty(len(task), np.int64)  # how many entries of the task came before
    rank[order] = np.arange(len(task)) - np.repeat(first, counts)
    yield from np.split(np.argsort(rank, kind="stable"), np.cumsum(np.bincount(rank))[:-1])
