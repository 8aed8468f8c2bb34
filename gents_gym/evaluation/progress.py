"""Reports the progress of an evaluation: its phase, and the share of the work done, weighted by the agents' costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.evaluation.grid import Cell

PHASES = {  # what a phase is called in a line
    "checking": "checking agents, environments and the folder",
    "starting": "starting workers, which load models and compile",
    "playing": "playing",
    "writing": "writing the results",
    "timing": "timing single decisions",
}
Pair = tuple[str, str]  # environment and agent
MODEL_COST = 50.0  # guessed cost of an agent on a model, relative to one without, until they are timed


@dataclass(frozen=True)
class Progress:
    """The progress of an evaluation."""

    phase: str  # one of PHASES
    over: int = 0  # cells that are done or failed; agents that are timed
    total: int = 0  # cells or agents in total
    share: float = 0.0  # share of the work done, by the agents' costs

    def __str__(self) -> str:
        if self.phase == "timing":
            return f"{PHASES[self.phase]}: agent {self.over + 1} of {self.total}"
        if self.phase != "playing":
            return PHASES[self.phase]
        return f"playing: {100 * self.share:.0f} % ({self.over} of {self.total} blocks of tasks)"


class Costs:
    """Estimates the share of the work done from the seconds that finished cells took."""

    def __init__(self, grid: Sequence[Cell]) -> None:
        """Start without timings; ``grid`` is all the work."""
        self._total, self._n_over = len(grid), 0
        self._guess = {cell.pair: MODEL_COST if cell.weights is not None else 1.0 for cell in grid}
        self._tasks = Counter[Pair]()
        for cell in grid:
            self._tasks[cell.pair] += cell.stop - cell.first
        self._over, self._timed = Counter[Pair](), Counter[Pair]()
        self._seconds: dict[Pair, float] = dict.fromkeys(self._tasks, 0.0)

    def add(self, cell: Cell, seconds: float) -> None:
        """Count a cell as finished; NaN means that its seconds are not known."""
        n_tasks = cell.stop - cell.first
        self._n_over += 1
        self._over[cell.pair] += n_tasks
        if np.isfinite(seconds):
            self._timed[cell.pair] += n_tasks
            self._seconds[cell.pair] += seconds

    def now(self, phase: str) -> Progress:
        """Return the progress."""
        if self._n_over == self._total:
            return Progress(phase, self._n_over, self._total, 1.0)
        costs = self._costs()
        over, work = (sum(costs[pair] * n for pair, n in tasks.items()) for tasks in (self._over, self._tasks))
        return Progress(phase, self._n_over, self._total, over / work if work else 0.0)

    def _costs(self) -> dict[Pair, float]:
        """Return agents' seconds per task; for those not timed yet, a guess from the others."""
        known = {pair: self._seconds[pair] / n_tasks for pair, n_tasks in self._timed.items()}
        rate = float(np.median([cost / self._guess[pair] for pair, cost in known.items()])) if known else 1.0
        return {pair: known.get(pair, rate * guess) for pair, guess in self._guess.items()}
