"""How agents are evaluated on a log, as data."""

from dataclasses import dataclass

from gents_gym.checks import InputError, check_integer, check_number

ORDERS = 4  # that agents which learn play by default: one run says little about a learner's average


@dataclass(frozen=True)
class OfflineConfig:
    """How agents are evaluated on a log."""

    last: float = 1.0
    """Share of the rows, the latest ones, that agents play. A model of `train --split time` did not learn from the
    latest fifth: 0.2."""
    fixed: float | None = None
    """Evaluate fixed policies: agents watch this share of the rows, the earliest, then learn no more; the other
    rows evaluate them. None: agents start with none of the rows, and learn from those that replay accepts."""
    orders: int | None = None
    """Orders of the rows that agents play: the log's own, then random ones; the answers are averaged. None: 4 for
    agents that learn, 1 for fixed policies."""
    tables: int = 20
    """Tables that the model imagines, if there is one; 0: none."""
    seed: int = 0
    """Seed of agents, orders and tables."""

    def __post_init__(self) -> None:
        """Check the options."""
        if self.fixed is not None and check_number("fixed", self.fixed, 0) >= 1:
            raise InputError(f"fixed must be below 1, so that rows are left to evaluate on, got {self.fixed}")
        if check_number("last", self.last, 0, above=True) > 1:
            raise InputError(f"last must be at most 1, got {self.last}")
        if self.orders is not None:
            check_integer("orders", self.orders, 1)
        if check_integer("tables", self.tables, 0) == 1:
            raise InputError("tables must be 0 or at least 2, for an interval, got 1")
        check_integer("seed", self.seed, 0)

    @property
    def n_orders(self) -> int:
        """The number of orders, the default filled in."""
        if self.orders is not None:
            return self.orders
        return ORDERS if self.fixed is None else 1
