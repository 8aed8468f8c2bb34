"""Context models say where imagined contexts come from: a bank, the task's own contexts, or known future ones.

Each returns picks, whole numbers (B, M, n): i ≥ 0 is context i of the model's bank, and -1 - i is context i of the task
itself. So a context is mapped to features once, however often it is picked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.checks import InputError, check_choice

OWN_ALPHA = 8.0  # mass of the bank in the urn of the context model "own", in contexts


@dataclass(frozen=True)
class Sources:
    """The contexts that can be drawn from at one moment."""

    n_bank: int  # contexts in the model's bank; 0: it has none
    n_seen: int  # contexts of the task that were seen, including the current one
    n_known: int  # number of first contexts of the task that were fully known from the start; 0: none
    alpha: float  # mass of the bank in the urn, as a number of contexts
    in_part: bool = False  # whether some entries of contexts were known from the start


Rngs = Sequence[np.random.Generator]


def stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the arrays of B tasks as one; the array of a single task is not copied."""
    return parts[0][None] if len(parts) == 1 else np.stack(parts)


def pick_bank(sources: Sources, count: int, draws: int, rngs: Rngs) -> np.ndarray:
    """Pick training contexts uniformly."""
    if not sources.n_bank:
        raise InputError("contexts must be 'seen' or 'given' for a model without a bank, got 'bank'")
    return stack([rng.integers(sources.n_bank, size=(draws, count)) for rng in rngs])


def pick_seen(sources: Sources, count: int, draws: int, rngs: Rngs) -> np.ndarray:
    """Pick from an urn of the bank and the task's own contexts.

    After t contexts, a pick is one of the task's own with probability t / (α + t).
    """
    n_seen = sources.n_seen
    share = n_seen / (sources.alpha + n_seen) if sources.n_bank else 1.0
    picks = stack([-1 - rng.integers(n_seen, size=(draws, count)) for rng in rngs])
    if share == 1:
        return picks
    for task, rng in zip(picks, rngs, strict=True):
        other = rng.random(task.shape) >= share
        task[other] = rng.integers(sources.n_bank, size=int(other.sum()))
    return picks


def pick_own(sources: Sources, count: int, draws: int, rngs: Rngs) -> np.ndarray:
    """Pick as :func:`pick_seen` does with a small mass of the bank, however similar contexts were in training."""
    return pick_seen(replace(sources, alpha=OWN_ALPHA), count, draws, rngs)


def pick_given(sources: Sources, count: int, draws: int, rngs: Rngs) -> np.ndarray:
    """Take the next known contexts; those beyond the last known one are picked from the bank or the urn.

    Contexts known only in some entries are picked in the same way, and their known entries are filled in afterwards.
    """
    if sources.in_part:
        return CONTEXT_MODELS[_default_picks(sources)](sources, count, draws, rngs)
    if not sources.n_known:
        raise InputError("contexts must be 'bank' or 'seen' for tasks without known contexts, got 'given'")
    known = -1 - np.arange(sources.n_seen, min(sources.n_seen + count, sources.n_known))
    picks = np.broadcast_to(known, (len(rngs), draws, len(known)))
    if len(known) == count:
        return picks
    others = CONTEXT_MODELS[_default_picks(sources)](sources, count - len(known), draws, rngs)
    return np.concatenate([picks, others], axis=2)


CONTEXT_MODELS: dict[str, Callable[[Sources, int, int, Rngs], np.ndarray]] = {
    "bank": pick_bank,
    "seen": pick_seen,
    "own": pick_own,
    "given": pick_given,
}


def default_contexts(sources: Sources) -> str:
    """Return the context model that is used by default.

    It is the bank, or the task's own contexts if there is no bank; with partly known contexts, such as time, it is
    "given".
    """
    return "given" if sources.in_part else _default_picks(sources)


def _default_picks(sources: Sources) -> str:
    return "bank" if sources.n_bank else "seen"


def check_contexts(name: str | None) -> None:
    """Raise unless ``name`` is the name of a context model, or None."""
    if name is not None:
        check_choice("context model", name, CONTEXT_MODELS)
