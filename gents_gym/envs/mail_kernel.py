"""The mail, compiled: sorts decisions by when they are shown, and hands out those that are due."""

import numpy as np
from numba import njit


@njit(cache=True)
def sort_decisions(
    slots: np.ndarray,  # (n,)
    shown: np.ndarray,  # (B, size): the step in which a decision is shown
    order: np.ndarray,  # (B, size): decisions, sorted by that step; those beyond the last step by their number
    starts: np.ndarray,  # (B, size + 1): how many are shown before a step
    kept: np.ndarray,  # (B,): how many are not lost
) -> None:
    """Fill the rows of ``slots`` in ``order``, ``starts`` and ``kept``."""
    size = shown.shape[1]
    for b in slots:
        count = np.zeros(size + 3, np.int64)  # of each step, of later ones, of never
        for t in range(size):
            step = shown[b, t]
            count[(step if step < size else size + (step == np.iinfo(np.int64).max)) + 1] += 1
        kept[b] = size - count[size + 2]
        count = count.cumsum()
        starts[b] = count[: size + 1]
        for t in range(size):
            step = shown[b, t]
            step = step if step < size else size + (step == np.iinfo(np.int64).max)
            order[b, count[step]] = t
            count[step] += 1


@njit(cache=True)
def exchange(
    action: np.ndarray,  # (B,)
    outcome: np.ndarray,  # (B,)
    reward: np.ndarray,  # (B,)
    playing: np.ndarray,  # (B,)
    ended: np.ndarray,  # (B,)
    time: np.ndarray,  # (B,): decisions so far
    order: np.ndarray,  # (B, size)
    starts: np.ndarray,  # (B, size + 1)
    kept: np.ndarray,  # (B,): how many are not lost
    letters: np.ndarray,  # (B, size, 3): actions, outcomes and rewards, next to each other for the cache
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Keep a decision of every slot that is playing; return rewards (B,), decisions, actions and outcomes (B, K)."""
    n_slots, width = len(action), 1
    for b in range(n_slots):
        if playing[b]:
            t = time[b]
            letters[b, t, 0], letters[b, t, 1], letters[b, t, 2] = action[b], outcome[b], reward[b]
            time[b] += 1
            count = starts[b, t + 1] - starts[b, t]  # none of them is of a decision to come
            if ended[b]:
                count = 0
                for i in range(starts[b, t], kept[b]):
                    count += order[b, i] <= t
            width = max(width, count)
    decision, played = np.full((n_slots, width), -1), np.full((n_slots, width), -1)
    seen, paid = np.zeros((n_slots, width)), np.zeros(n_slots)
    for b in range(n_slots):
        if playing[b]:
            t, k = time[b] - 1, 0
            for i in range(starts[b, t], kept[b] if ended[b] else starts[b, t + 1]):
                d = order[b, i]
                if d <= t:  # without a known horizon, decisions to come are sorted too
                    decision[b, k], played[b, k], seen[b, k] = d, np.int64(letters[b, d, 0]), letters[b, d, 1]
                    paid[b] += letters[b, d, 2]
                    k += 1
    return paid, decision, played, seen
