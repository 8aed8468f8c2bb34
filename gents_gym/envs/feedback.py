"""Outcomes in a vector environment's ``info``: in time as "outcome", late as "feedback", in Gymnasium's form."""

from typing import Any

import numpy as np

from gents_gym.types import Feedback

LATE = "late_outcomes"  # in an environment's metadata: whether outcomes arrive late, in info["feedback"]
BLANK = {"decision": -1, "action": -1, "outcome": 0.0}


def show(outcomes: dict[str, np.ndarray], slots: np.ndarray) -> dict[str, Any]:
    """Return the info of what the slots (B,) are shown of their outcomes.

    Args:
        outcomes: ``outcome`` (B,); if late, also ``decision`` and ``action``, all (B, K).
        slots: Which slots have been played, (B,).
    """
    if "decision" not in outcomes:
        return {**outcomes, "_outcome": slots}
    masks = {"_decision": slots, "_action": slots, "_outcome": slots}
    return {"feedback": {**outcomes, **masks}, "_feedback": slots.copy()}


def blank(outcomes: dict[str, np.ndarray], slots: np.ndarray) -> dict[str, np.ndarray]:
    """Return the same with nothing in the slots (B,)."""
    return {
        name: np.where(slots[:, None] if array.ndim == 2 else slots, BLANK[name], array)
        for name, array in outcomes.items()
    }


def without_pads(outcomes: dict[str, Any], slot: int) -> dict[str, list[Any]]:
    """Return what one slot is shown, as lists.

    Gymnasium's vector environments gather lists of any length from single environments, but no such arrays.
    """
    arrived = outcomes["decision"][slot] >= 0
    return {name: outcomes[name][slot][arrived].tolist() for name in BLANK}


def observed_outcomes(info: dict[str, Any], reward: np.ndarray) -> np.ndarray:
    """Return the observed outcomes (B,); the rewards if the environment reports no outcome."""
    outcome = np.asarray(reward, np.float64).copy()
    for source in (info, info.get("final_info", {})):  # a slot that was reset in this step has it in the latter
        if "outcome" in source:
            reported = source.get("_outcome", slice(None))
            outcome[reported] = source["outcome"][reported]
    return outcome


def read_feedback(info: dict[str, Any], live: np.ndarray) -> Feedback:
    """Return the outcomes that arrived in the slots that are ``live`` (B,); task i is slot i.

    Slots may also be lists of any length, as Gymnasium's ``SyncVectorEnv`` gathers them from single environments.
    """
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for source in (info, info.get("final_info", {})):
        if "feedback" in source:
            shown = source["feedback"]
            reported = live & source.get("_feedback", True)
            decision, outcome = shown["decision"], shown["outcome"]
            if decision.dtype != object:
                task, place = np.nonzero((decision >= 0) & reported[:, None])
                parts.append((task, decision[task, place], outcome[task, place]))
            else:
                for i in np.flatnonzero(reported):
                    parts.append((np.full(len(decision[i]), i), np.array(decision[i], int), np.array(outcome[i])))
    if not parts:
        return Feedback(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Feedback(*(np.concatenate(part) for part in zip(*parts, strict=True)))
