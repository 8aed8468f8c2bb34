"""Holds what a calibration measures, and on how much data."""

from dataclasses import dataclass
from typing import Literal

from gents_gym.checks import InputError, check_choice, check_integer

STEPS = (0, 10, 50, 200)


@dataclass(frozen=True)
class CalibrationConfig:
    """What is measured, all on the test split."""

    actions: int = 500
    """Single actions whose rows are predicted, each in a task of its own."""
    tasks: int = 50
    """Tasks whose tables are completed, for the fitted policy's value."""
    draws: int = 39
    """Completed tables behind an interval. Fewer than 39 make 95 % intervals reach beyond the outermost tables, and
    cover by chance."""
    steps: tuple[int, ...] | None = None
    """Observed rows after which the model is asked: of an action, or of a task that plays all actions at random. None:
    those of 0, 10, 50 and 200 below the horizon."""
    rows: int = 100
    """Rows that an action's mean reward is over, held out and imputed ones alike."""
    group: int = 10
    """Rows of a group whose outcomes are predicted jointly."""
    policy: str | None = None
    """Policy class that is fitted to tables. None: logistic, or least-squares if outcomes are not 0 and 1."""
    contexts: str | None = None
    """Where imagined contexts come from: bank, seen or given (the task's own). None: the model's default, as agents
    have it."""
    sbc: Literal["auto", "yes", "no"] = "auto"
    """Whether to test that ranks are uniform (simulation-based calibration), which needs a setting that publishes p*.
    auto: if it does."""
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
        """Return the steps, or raise unless all lie below the horizon."""
        if self.steps is None:
            return tuple(step for step in STEPS if step < horizon)
        if self.steps[-1] >= horizon:
            raise InputError(f"steps must lie below the horizon, {horizon}, got {self.steps[-1]}")
        return self.steps
