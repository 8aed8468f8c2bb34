"""Successive halving: all candidates play a few tasks, the better half plays twice as many, and so on."""

import math
from collections.abc import Mapping, Sequence

import numpy as np


def plan_rungs(n_candidates: int, n_tasks: int, block: int) -> list[tuple[int, int]]:
    """Return how many candidates play how many tasks in each rung, all of them in the first.

    The last rung has two candidates and ``n_tasks``; each one before has twice the candidates and half the tasks,
    rounded up to whole blocks, so that the next rung can reuse them.
    """
    n_rungs = max(1, math.ceil(math.log2(n_candidates)))
    counts = [math.ceil(n_candidates / 2**rung) for rung in range(n_rungs)]
    blocks = [math.ceil(n_tasks / 2 ** (n_rungs - 1 - rung) / block) for rung in range(n_rungs)]
    return [(count, min(n_blocks * block, n_tasks)) for count, n_blocks in zip(counts, blocks, strict=True)]


def judge(regrets: Mapping[str, np.ndarray], risk: float, quantile: float) -> dict[str, dict[str, float]]:
    """Summarise each candidate's regrets on the same tasks, (B,) each.

    The score is (1 - risk) · mean + risk · quantile; lower is better. ``behind`` is the mean of the paired differences
    from the candidate with the best score.
    """
    found = {}
    for spec, own in regrets.items():
        mean, tail = float(own.mean()), float(np.quantile(own, quantile))
        score = (1 - risk) * mean + risk * tail
        found[spec] = {"mean": mean, "se": _error(own), "quantile": tail, "score": score}
    leader = regrets[best(found, 1)[0]]
    for spec, own in regrets.items():
        found[spec] |= {"behind": float((own - leader).mean()), "behind_se": _error(own - leader)}
    return found


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def best(found: Mapping[str, Mapping[str, float]], count: int) -> Sequence[str]:
    """Return the ``count`` candidates with the lowest scores, the best first; ties go to the one named first."""
    return sorted(found, key=lambda spec: found[spec]["score"])[:count]
