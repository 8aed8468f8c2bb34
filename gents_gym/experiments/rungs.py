"""Lists the steps from the paper's printed model to ours, one change at a time, as data."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Rung(NamedTuple):
    """A change to the previous rung."""

    model: Mapping[str, Any]  # sizes and choices of the model
    training: Mapping[str, Any]  # options of its training


RUNGS = {
    # Fewer entries of each sequence in the loss, and fewer validation actions, make it ten times cheaper. Rates are the
    # paper's.
    "cheap": Rung({}, {"steps": 50, "validation_actions": 2000, "memory": 0.1, "learning_rates": (0.01, 0.001)}),
    "bounded": Rung({"raw": False}, {}),
    "scaled": Rung({}, {"scaling": True}),
    "scheduled": Rung({}, {"schedule": "one-cycle", "learning_rates": (0.01,)}),  # the paper's choice
    "intercept": Rung({"intercept": True}, {}),
    "mapped": Rung({"plain_context": False}, {}),
    "started": Rung({}, {"first_fit": True}),
    "small": Rung({"context_features": 4}, {}),
}
WITHOUT_FEATURES = ("cheap", "bounded", "scaled", "scheduled", "intercept")  # the rest concerns φ̂


def climb(rung: str) -> Rung:
    """Return all changes to ``literal`` up to a rung."""
    names = list(RUNGS)[: list(RUNGS).index(rung) + 1]
    model = {name: value for each in names for name, value in RUNGS[each].model.items()}
    training = {name: value for each in names for name, value in RUNGS[each].training.items()}
    return Rung(model, training)
