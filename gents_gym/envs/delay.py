"""How late outcomes are: plain options in, the step in which each decision's outcome is shown out."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.checks import InputError, InputTypeError, check_integer, check_number, check_option

LONGEST = 10**9  # decisions; later than any task's end
NEVER = np.iinfo(np.int64).max  # the step in which a lost outcome is shown
KINDS = ("constant", "geometric", "values", "probabilities", "lost")
RULE = "delay must be a whole number, or a dict such as {'geometric': 0.1, 'lost': 0.2}"


@dataclass(frozen=True, eq=False)
class Delay:
    """How many decisions later an outcome is shown: 0 is in time, that is before the next decision."""

    values: np.ndarray  # (n,) delays; unused if there is a rate
    bounds: np.ndarray  # (n,) their cumulative probabilities
    rate: float | None = None  # of a geometric delay: P(d) = rate (1 - rate)^d
    lost: float = 0.0  # probability that an outcome never arrives
    batch: int = 1  # decisions that are made before any of their outcomes is shown

    @property
    def is_random(self) -> bool:
        """Whether delays are drawn at all."""
        return self.rate is not None or len(self.values) > 1 or self.lost > 0

    def shown(self, uniform: np.ndarray | None, first: int, count: int) -> np.ndarray:
        """Return the steps in which decisions ``first`` to ``first + count - 1`` are shown, (..., count).

        Args:
            uniform: A delay and a loss for each, (..., count, 2) in [0, 1); None if nothing is drawn.
            first: The number of the first decision.
            count: How many.
        """
        decision = np.arange(first, first + count)
        if uniform is None:
            return self._end_of_batch(decision + self.values[0])
        if self.rate is not None:
            late = np.log1p(-uniform[..., 0])
            with np.errstate(over="ignore"):  # of a rate next to 0
                late /= math.log1p(-self.rate)
            late = np.minimum(late, LONGEST, out=late).astype(np.int64)
        elif len(self.values) > 1:
            late = self.values[np.minimum(np.searchsorted(self.bounds, uniform[..., 0], "right"), len(self.values) - 1)]
        else:
            late = np.full(uniform.shape[:-1], self.values[0])
        steps = self._end_of_batch(late + decision)
        steps[uniform[..., 1] < self.lost] = NEVER
        return steps

    def _end_of_batch(self, step: np.ndarray) -> np.ndarray:
        return step if self.batch == 1 else step + (self.batch - 1 - step % self.batch)


def make_delay(delay: Any, batch: Any = 1) -> Delay | None:
    """Check ``delay`` and ``batch`` and return what they say; None if every outcome is in time.

    Args:
        delay: A whole number; or a dict with one of "constant" (a whole number), "geometric" (a probability) or
            "values" and "probabilities" (lists), and "lost" (a probability) beside it or alone.
        batch: Decisions that are made before any of their outcomes is shown.
    """
    batch = min(check_integer("batch", batch, 1), LONGEST)
    options = delay if isinstance(delay, dict) else {"constant": delay}
    for name in options:
        check_option("delay", name, KINDS)
    kinds = [name for name in KINDS[:3] if name in options]
    if len(kinds) > 1 or not options or ("probabilities" in options) != ("values" in options):
        raise InputError(f"{RULE}: one of constant, geometric, or values with probabilities, got {delay!r}")
    lost = check_number("delay's 'lost'", options.get("lost", 0.0), 0)
    if lost > 1:
        raise InputError(f"delay's 'lost' must be a probability, at most 1, got {lost:g}")
    values, bounds, rate = np.zeros(1, np.int64), np.ones(1), None
    if "geometric" in options:
        rate = check_number("delay's 'geometric'", options["geometric"], 0, above=True)
        if rate > 1:
            raise InputError(f"delay's 'geometric' must be a probability, at most 1, got {rate:g}")
        rate = None if rate == 1 else rate
    elif "values" in options:
        values, bounds = _distribution(options["values"], options["probabilities"])
    elif "constant" in options:
        values = np.array([_whole(options["constant"])])
    if rate is None and not values.any() and lost == 0 and batch == 1:
        return None
    return Delay(values, bounds, rate, lost, batch)


def _whole(value: Any) -> int:
    """Check that a delay is a whole number of decisions; return it, at most LONGEST."""
    if isinstance(value, float) and math.isinf(value):
        raise InputError(f"delay must be finite ({{'lost': p}} is for outcomes that never arrive), got {value}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{RULE}, got {value!r}")
    return min(check_integer("delay", value, 0), LONGEST)


def _distribution(values: Any, probabilities: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check that delays have a distribution; return them and their cumulative probabilities, (n,) each."""
    lists = isinstance(values, list | tuple | np.ndarray) and isinstance(probabilities, list | tuple | np.ndarray)
    if not lists or not len(values) or len(values) != len(probabilities):
        rule = "delay's 'values' and 'probabilities' must be lists of the same length, at least 1"
        raise InputError(f"{rule}, got {values!r} and {probabilities!r}")
    chances = [check_number("delay's 'probabilities'", chance, 0) for chance in probabilities]
    if not math.isclose(sum(chances), 1, abs_tol=1e-6):
        raise InputError(f"delay's 'probabilities' must sum to 1, got {sum(chances):g}")
    kept = [(_whole(value), chance) for value, chance in zip(values, chances, strict=True) if chance > 0]
    late, shares = zip(*kept, strict=True)
    return np.array(late), np.cumsum(shares)
