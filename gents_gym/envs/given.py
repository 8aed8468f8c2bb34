"""Checks of what ``reset`` is given in its options: tasks, and the mask of the slots to reset."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gents_gym.checks import InputError, InputTypeError, check_choice
from gents_gym.types import Tasks

OPTIONS = ("task", "reset_mask")
BOUND = 1e6  # observations lie within ±BOUND


def check_options(options: Any) -> dict[str, Any]:
    """Check that the options of a reset are a mapping of known names; return them as a dict."""
    if not isinstance(options, Mapping | None):
        raise InputTypeError(f"options must be a dict, got {options!r}")
    options = dict(options or {})
    try:
        for key in options:
            check_choice("option of reset:", key, OPTIONS)
    except InputError as error:  # as for a keyword that a function does not have
        raise InputTypeError(str(error)) from None
    return options


def masked_slots(mask: Any, n_slots: int) -> np.ndarray:
    """Return the numbers of the slots that ``mask`` names, all of them if it is None."""
    if mask is None:
        return np.arange(n_slots)
    mask = np.asarray(mask)
    if mask.shape != (n_slots,) or mask.dtype != np.bool_ or not mask.any():
        rule = f"booleans of shape (B,)=({n_slots},) with one or more True"
        raise InputError(f"reset_mask must be {rule}, got {mask!r}")
    return np.flatnonzero(mask)


def check_given(given: Any, n_slots: int, like: Tasks) -> None:
    """Raise unless ``given`` is ``n_slots`` task numbers, or so many tasks of the sizes and kind of ``like``."""
    if not isinstance(given, Tasks):
        try:
            numbers = np.asarray(given)
        except ValueError:  # a ragged list
            numbers = np.zeros(0)
        if numbers.shape != (n_slots,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
            rule = f"a Tasks batch or {n_slots} task numbers of at least 0, one for each slot"
            raise InputError(f"options['task'] must be {rule}, got {given!r}")
        return
    if given.reward_fn is not like.reward_fn:
        ours, theirs = like.reward_fn, given.reward_fn
        raise InputError(f"options['task'].reward_fn must be the environment's, {ours!r}, got {theirs!r}")
    if given.likelihood != like.likelihood:
        rule = f"options['task'].likelihood must be the environment's, {like.likelihood}"
        raise InputError(f"{rule}, got {given.likelihood}; Tasks(likelihood=...) states one")
    if given.available is not None and like.available is None:
        raise InputError("options['task'].available must be None in an environment without turnover, got an array")
    for name in ("action_features", "contexts", "outcomes"):
        got, wanted = getattr(given, name), (n_slots, *getattr(like, name).shape[1:])
        if got.shape != wanted:
            raise InputError(f"options['task'].{name} must have shape {wanted}, got {got.shape}")
        if name != "outcomes" and (largest := np.abs(got).max(initial=0)) > BOUND:  # those are observations
            raise InputError(f"options['task'].{name} must lie within ±{BOUND:g}, got {largest:g}")
