"""Holds the record of a calibration: what was measured, and the summary numbers."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.positions import LEVELS, coverage, joint_p, uniform_p
from gents_gym.calibration.reliability import Reliability

ALPHA = 0.01  # level of the joint test


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far a model's posterior can be trusted, after S numbers of observed rows.

    Attributes:
        steps: The numbers of observed rows, S of them.
        reliability: Reliability of one-step predictions in the group of rows after each step.
        losses: Nats per row of groups of rows, (N, S): "marginal", each row predicted on its own, and "joint".
        positions: Positions of the true value among those of completed tables, (n, S), for "mean reward" and "policy
            value".
        widths: The mean width of the central 80 % intervals, (S,), by the same names.
        tested: Whether p* is known, so that positions are tested.
        config: The options.
    """

    steps: tuple[int, ...]
    reliability: tuple[Reliability, ...]
    losses: dict[str, np.ndarray]
    positions: dict[str, np.ndarray]
    widths: dict[str, np.ndarray]
    tested: bool
    config: CalibrationConfig

    def loss(self, name: str, at: int) -> tuple[float, float]:
        """Return the mean of the "marginal" or "joint" loss at step number ``at``, and its standard error."""
        values = self.losses[name][:, at]
        with np.errstate(invalid="ignore"):  # an outcome with predicted probability 0 has an infinite loss
            return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

    def coverage(self, name: str, at: int) -> dict[float, tuple[float, float, float]]:
        """Return the shares that the 50, 80 and 95 % intervals of a quantity cover, each with its 95 % interval."""
        return {level: coverage(self.positions[name][:, at], level) for level in LEVELS}

    def p_values(self, name: str) -> np.ndarray:
        """Return the p values of the test that a quantity's positions are uniform, (S,)."""
        return np.array([uniform_p(column) for column in self.positions[name].T])

    @property
    def joint_p(self) -> float | None:
        """The p value of all tests together; None if p* is not known."""
        return joint_p(np.stack([self.p_values(name) for name in self.positions])) if self.tested else None

    @property
    def verdict(self) -> str:
        """The verdict of the joint test."""
        if self.joint_p is None:
            return "p* is not known: ranks are not tested"
        n_tests = len(self.positions) * len(self.steps)
        what = "refuted at 1 %" if self.joint_p < ALPHA else "not refuted"
        return f"uniform ranks are {what}: joint p {self.joint_p:.2g} of {n_tests} tests"

    def numbers(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; numbers that are not finite are texts."""
        steps = [self._numbers_at(at) for at in range(len(self.steps))]
        return _plain({"config": asdict(self.config), "steps": steps, "joint_p": self.joint_p})

    def _numbers_at(self, at: int) -> dict[str, Any]:
        def told(name: str) -> dict[str, Any]:
            found: dict[str, Any] = {f"{level:g}": shares for level, shares in self.coverage(name, at).items()}
            tested = {"p": self.p_values(name)[at]} if self.tested else {}
            return {"coverage": found, "width": self.widths[name][at], **tested}

        return {
            "observed": self.steps[at],
            "reliability": asdict(self.reliability[at]),
            "loss": {name: self.loss(name, at) for name in self.losses},
            **{name: told(name) for name in self.positions},
        }


def _plain(value: Any) -> Any:
    """Return ``value`` with arrays and tuples as lists, and with numbers that JSON can hold."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
