"""Defines what a calibration measures, and on how much data."""

from dataclasses import dataclass
from typing import Literal

from gents_gym.checks import InputError, check_choice, check_integer

STEPS = (0, 10, 50, 200)


@dataclass(frozen=True)
class CalibrationConfig:
    """What is measured, all on the test split."""

    actions: int = 500
    """Number of single actions whose rows are predicted, each in its own task."""
    tasks: int = 50
    """Number of tasks whose tables are completed, for the fitted policy's value."""
    draws: int = 39
    """Completed tables per interval. With fewer than 39, 95 % intervals reach beyond the outermost tables, so
    their coverage is partly random."""
    steps: tuple[int, ...] | None = None
    """Numbers of observed rows after which to measure: of an action, or of a task with random actions. None:
    0, 10, 50 and 200, as far as they are below the horizon."""
    rows: int = 100
    """Rows that an action's mean reward is averaged over, both held-out and imputed ones."""
    group: int = 10
    """Number of rows in a group, whose outcomes are predicted jointly."""
    policy: str | None = None
    """Policy class that is fitted to tables. None: logistic, or least-squares if outcomes are not 0 and 1."""
    contexts: str | None = None
    """Where imagined contexts come from: bank, seen or given (the task's own). None: the model's default, as for
    agents."""
    sbc: Literal["auto", "yes", "no"] = "auto"
    """Whether to test that ranks are uniform (simulation-based calibration), which needs a setting with a known p*.
    auto: if it is known."""
    seed: int = 0
    """Seed of rows, tasks and draws."""

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("actions", "tasks"):
            check_integer(name, getattr(self, name), 2)
        for name in ("draws", "rows", "group"):
            check_integer(name, getattr(self, name), 1)
        check_integer("seed", self.seed, 0)
        check_choice("answer to sbc:", self.sbc, ("auto", "yes", "no"))
        steps = [check_integer("steps", step, 0) for step in self.steps or ()]
        if self.steps is not None and (not steps or steps != sorted({*steps})):
            raise InputError(f"steps must rise, and be at least one, got {self.steps}")

    def steps_below(self, horizon: int) -> tuple[int, ...]:
        """Check that all steps are below the horizon; return them."""
        if self.steps is None:
            return tuple(step for step in STEPS if step < horizon)
        if self.steps[-1] >= horizon:
            raise InputError(f"steps must lie below the horizon, {horizon}, got {self.steps[-1]}")
        return self.steps
