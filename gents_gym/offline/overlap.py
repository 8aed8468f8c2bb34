"""How far the plays of an agent overlap with those in a log, and what that means, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.logs.record import Logs
from gents_gym.offline.estimators import effective_size, mean
from gents_gym.offline.play import Played

LEAST = 100  # effective rows, or accepted ones, for a conclusion
LARGEST = 0.1  # share of all weight in one row that is reported
RARE = 0.05  # share of plays of actions with few rows that is reported
FEW_ROWS = 20  # of an action
DEVIATIONS = 4.0  # standard errors between the mean weight and 1 that are reported


@dataclass(frozen=True)
class Overlap:
    """Weights of n rows in numbers."""

    rows: int  # n
    effective: float  # effective sample size
    largest: float  # share of the largest weight in their sum
    weight: float  # their mean, 1 in expectation
    error: float  # its standard error
    accepted: float  # rows that replay accepted
    rare: float  # share of plays of actions with fewer than FEW_ROWS logged rows

    @property
    def enough(self) -> bool:
        """Whether weighted rows are enough for a conclusion."""
        return self.effective >= LEAST

    def faults(self) -> dict[str, str]:
        """Return what speaks against the estimates that divide by propensities, and how much of it there is."""
        found = {}
        if not self.enough:
            found["few rows count by effective sample size"] = f"{self.effective:.0f} of {self.rows}"
        if self.largest > LARGEST:
            found["one row has much of all weight"] = f"{100 * self.largest:.0f} %"
        if abs(self.weight - 1) > DEVIATIONS * self.error:
            found["weights do not average 1, so the propensities cannot be right"] = f"{self.weight:.2g}"
        if self.accepted < LEAST:
            found["replay accepted few rows"] = f"{self.accepted:.0f}"
        if self.rare > RARE:
            found[f"many plays are of actions with fewer than {FEW_ROWS} logged rows"] = f"{100 * self.rare:.0f} %"
        return found

    def warnings(self) -> list[str]:
        """Return what speaks against the estimates that divide by propensities, a line each."""
        return [f"{fault}: {amount}" for fault, amount in self.faults().items()]


def measure_overlap(plays: Sequence[Played], logs: Logs) -> Overlap:
    """Return how an agent's plays overlap with the log's, averaged over orders of the rows."""
    assert logs.propensities is not None
    weights = [played.target / logs.propensities[played.rows] for played in plays]
    counts = np.bincount(logs.actions, minlength=len(logs.action_ids))
    shares = np.mean([played.plays / played.plays.sum() for played in plays], axis=0)
    return Overlap(
        rows=len(weights[0]),
        effective=float(np.mean([effective_size(one) for one in weights])),
        largest=float(np.mean([one.max() / one.sum() if one.any() else 1.0 for one in weights])),
        weight=float(np.mean([one.mean() for one in weights])),
        error=mean(weights[0]).error,
        accepted=float(np.mean([played.accepted.sum() for played in plays])),
        rare=float(shares[counts < FEW_ROWS].sum()),
    )
