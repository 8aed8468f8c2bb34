"""Collects the contexts that a context model picks from a model's bank and a task's ledger, with known entries."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gents_gym.models.contexts import CONTEXT_MODELS, Rngs, Sources, default_contexts
from gents_gym.models.ledger import Ledger


class Bank(NamedTuple):
    """A model's training contexts."""

    contexts: np.ndarray  # (n, D)
    rows: np.ndarray  # the same in the form that the model reads, (n, K)
    alpha: float  # mass of the bank in the urn, as a number of contexts


def imagine(
    ledger: Ledger, bank: Bank, contexts: str | None, count: int, draws: int, rngs: Rngs, kept: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return own contexts followed by imagined ones, and their rows, (B, M, T', D) and (B, M, T', K).

    Args:
        ledger: The ledger of B tasks.
        bank: The model's bank.
        contexts: The context model; None: the default one.
        count: The number of imagined contexts, for the decisions after the current one.
        draws: M.
        rngs: One generator per task.
        kept: The number of own contexts before them.
    """
    ahead = ledger.time + 1
    there = Sources(len(bank.contexts), ahead, ledger.n_known, bank.alpha, ledger.known is not None)
    source = contexts or default_contexts(there)
    picks = CONTEXT_MODELS[source](there, count, draws, rngs)
    imagined, mapped = _gather(((ledger.contexts, bank.contexts), (ledger.rows, bank.rows)), picks, kept)
    if source == "given" and ledger.insert_known(imagined[:, :, kept:], ahead):
        mapped[:, :, kept:] = ledger.map_contexts(imagined[:, :, kept:])
    return imagined, mapped


def _gather(sources: Sequence[tuple[np.ndarray, np.ndarray]], picks: np.ndarray, t: int) -> Iterator[np.ndarray]:
    """Yield the first t of the own rows followed by the picked ones, from own rows and a bank's, (B, M, T', ...)."""
    n_tasks, draws, count = picks.shape
    some_own = np.count_nonzero(picks < 0) > 0
    for own, bank in sources:
        found = np.empty((n_tasks, draws, t + count, own.shape[2]), np.float32)
        found[:, :, :t] = own[:, None, :t]
        if some_own:
            mine = own[np.arange(n_tasks)[:, None, None], np.maximum(-1 - picks, 0)]
            theirs = bank[np.maximum(picks, 0)] if len(bank) else mine
            found[:, :, t:] = np.where((picks < 0)[..., None], mine, theirs)
        elif count:
            found[:, :, t:] = bank.take(picks, axis=0)
        yield found
