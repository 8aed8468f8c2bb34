"""Tests claims of the paper: each has one contrast that is measured on records or losses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gents_gym.evaluation.measures import Records, totals
from gents_gym.report.comparison import mean_interval
from gents_gym.training.losses import Losses

VERDICTS = {1: "shown", 0: "not shown", -1: "the other way round"}
UNDIRECTED = {1: "more", 0: "no difference shown", -1: "less"}  # if no direction is expected
# Which measures are judged: realised outcomes and true means. A higher reward counts as a lower regret.
MEASURES = {"regret": (("oracle", 1), ("expected", 1)), "reward": (("reward", 1), ("expected", -1))}


@dataclass(frozen=True)
class Claim:
    """A sentence, and the weighted sum over agents, or over models for losses, whose sign tests it, task by task."""

    says: str  # the paper's sentence in our words
    section: str  # section of the paper; "": it is not in the paper
    tested: str  # the sum, in words
    weights: Mapping[str, float]  # weights of each agent's total, or of each model's loss per step
    measure: str = "regret"  # regret, reward or loss
    sign: int = -1  # sign of the sum if the claim holds; 0: no direction is expected

    @property
    def source(self) -> str:
        """The place of the claim."""
        return f"The paper, {self.section}" if self.section else "Not in the paper"


@dataclass(frozen=True)
class Finding:
    """The sum's mean over tasks, or over actions for losses, with its 95 % interval and the verdict."""

    mean: float
    low: float
    high: float
    verdict: str


def before(says: str, section: str, better: str, worse: str, measure: str = "regret") -> Claim:
    """Return the claim that one agent or model is better than another: less regret or loss, or more reward."""
    sign = 1 if measure == "reward" else -1
    return Claim(says, section, f"`{better}` minus `{worse}`", {better: 1.0, worse: -1.0}, measure, sign)


def falls(says: str, section: str, places: Mapping[str, float], step: float, unit: str, measure: str) -> Claim:
    """Return the claim that regret or loss falls along an axis: the least-squares slope on log x is negative.

    Args:
        says: The paper's sentence.
        section: The paper's section.
        places: The value of x, by agent or model.
        step: The factor in x that the slope is reported for.
        unit: That factor, in words.
        measure: regret or loss.
    """
    x = np.log(list(places.values())) / math.log(step)
    slopes = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    tested = f"slope for {unit}: {', '.join(f'`{name}`' for name in places)}"
    return Claim(says, section, tested, dict(zip(places, slopes.tolist(), strict=True)), measure)


def judge(claim: Claim, records: Records, losses: Losses | None) -> list[Finding]:
    """Return the findings: for realised outcomes and for true means; for losses, one finding."""
    if claim.measure == "loss":
        assert losses is not None
        length = losses.prefixes[-1]
        return [_find(claim, {name: losses.sums[name][:, -1] / length for name in claim.weights})]
    return [
        _find(claim, {agent: side * totals(records[agent], measure) for agent in claim.weights})
        for measure, side in MEASURES[claim.measure]
    ]


def _find(claim: Claim, values: Mapping[str, np.ndarray]) -> Finding:
    mean, low, high = mean_interval(np.sum([weight * values[name] for name, weight in claim.weights.items()], axis=0))
    side = int(low > 0) - int(high < 0)
    return Finding(mean, low, high, VERDICTS[side * claim.sign] if claim.sign else UNDIRECTED[side])
