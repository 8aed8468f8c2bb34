"""Says how far an evaluation is: its phase, and the share of the work that is over, weighed by what agents cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.evaluation.grid import Cell

PHASES = {  # what a phase is called in a line
    "checking": "checking agents, environments and the folder",
    "starting": "starting workers, which load models and compile",
    "playing": "playing",
    "writing": "writing the results",
}
MODEL_COST = 50.0  # an agent that acts on a model, in units of one that does not, until they are timed


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    phase: str  # one of PHASES
    over: int = 0  # cells that are done or failed
    total: int = 0  # cells in all
    share: float = 0.0  # of the work that is over, by the agents' costs

    def __str__(self) -> str:
        if self.phase != "playing":
            return PHASES[self.phase]
        return f"playing: {100 * self.share:.0f} % ({self.over} of {self.total} blocks of tasks)"


class Costs:
    """Estimates the share of the work that is over from the seconds of what is over."""

    def __init__(self, grid: Sequence[Cell]) -> None:
        """Begin with nothing timed; ``grid`` is all the work."""
        self._grid, self._over = grid, set[str]()
        self._seconds: dict[tuple[str, str], list[float]] = {}  # per task, by environment and agent

    def add(self, cells: Iterable[Cell], seconds: Iterable[float]) -> None:
        """Count cells as over; NaN seconds are not known."""
        for cell, spent in zip(cells, seconds, strict=True):
            self._over.add(cell.name)
            if np.isfinite(spent):
                self._seconds.setdefault(cell.pair, []).append(spent / (cell.stop - cell.first))

    def now(self, phase: str) -> Progress:
        """Return how far it is."""
        n_over, total = len(self._over), len(self._grid)
        costs = {cell.name: (cell.stop - cell.first) * self._cost(cell) for cell in self._grid}
        over = sum(cost for name, cost in costs.items() if name in self._over)
        return Progress(phase, n_over, total, 1.0 if n_over == total else over / (sum(costs.values()) or 1.0))

    def _cost(self, cell: Cell) -> float:
        """Return an agent's seconds per task; of one that is not timed yet, a guess from the others'."""
        if cell.pair in self._seconds:
            return float(np.mean(self._seconds[cell.pair]))
        rates = [np.mean(self._seconds[each.pair]) / _guess(each) for each in self._grid if each.pair in self._seconds]
        return _guess(cell) * float(np.median(rates)) if rates else _guess(cell)


def _guess(cell: Cell) -> float:
    return MODEL_COST if cell.weights is not None else 1.0
