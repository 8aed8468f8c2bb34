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

    def warnings(self) -> list[str]:
        """Return what speaks against the estimates that divide by propensities, a sentence each."""
        found = []
        if not self.enough:
            found.append(f"only {self.effective:.0f} of {self.rows} rows count by effective sample size")
        if self.largest > LARGEST:
            found.append(f"one row has {100 * self.largest:.0f} % of all weight")
        if abs(self.weight - 1) > DEVIATIONS * self.error:
            found.append(f"weights average {self.weight:.2g} instead of 1, so the propensities cannot be right")
        if self.accepted < LEAST:
            found.append(f"replay accepted only {self.accepted:.0f} rows")
        if self.rare > RARE:
            found.append(f"{100 * self.rare:.0f} % of its plays are of actions with fewer than {FEW_ROWS} logged rows")
        return found


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
