"""Computes average ranks of agents over several environments, with bootstrap intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from gents_gym.evaluation.measures import CONFIDENCE, Records, totals

RESAMPLES = 4000


@dataclass(frozen=True)
class Rank:
    """An agent's average rank by reward among all agents, 1 for the highest, or a difference, with its interval."""

    mean: float
    low: float
    high: float


def average_ranks(records: Mapping[str, Records], seed: int = 0, against: str | None = None) -> dict[str, Rank]:
    """Return the average rank of each agent's total reward over all pairs of environment and task, the best first.

    Agents with the same reward share the average of their ranks. Intervals are percentiles of a bootstrap over the
    pairs.

    Args:
        records: The records by environment and agent; every environment has the same agents.
        seed: Seed of the bootstrap.
        against: The agent whose rank in the same pair is subtracted from every rank, if any.
    """
    agents = list(next(iter(records.values())))
    rewards = np.concatenate([[totals(part[agent], "reward") for agent in agents] for part in records.values()], axis=1)
    ranks = stats.rankdata(-rewards, axis=0)  # (agents, pairs)
    if against is not None:
        ranks = ranks - ranks[agents.index(against)]
    n_pairs = ranks.shape[1]
    counts = np.random.default_rng(seed).multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), size=RESAMPLES)
    resampled = counts @ ranks.T / n_pairs  # (resamples, agents)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    means = ranks.mean(axis=1)
    return {agents[i]: Rank(float(means[i]), float(low[i]), float(high[i])) for i in np.argsort(means, kind="stable")}
