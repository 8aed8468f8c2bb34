"""Follows rows of single actions once and collects what a model predicts, what it imputes and what happened."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.positions import Placed, place
from gents_gym.calibration.predictions import Predictor
from gents_gym.types import ActionRows, Model, TaskInfo


@dataclass(frozen=True, eq=False)
class Followed:
    """What the rows of N actions showed, after S numbers of observed rows, in groups of G rows.

    Attributes:
        one_step: Parameters of each row's outcome given all rows before it, (N, S, G, ...).
        at_once: Parameters given only the observed rows, not those of the group, (N, S, G, ...).
        outcomes: (N, S, G).
        placed: Positions of the mean reward of the held-out rows, (N, S).
    """

    one_step: np.ndarray
    at_once: np.ndarray
    outcomes: np.ndarray
    placed: Placed

    @classmethod
    def join(cls, parts: Sequence["Followed"]) -> "Followed":
        """Concatenate blocks of actions."""
        names = ("one_step", "at_once", "outcomes")
        arrays = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
        return cls(**arrays, placed=Placed.join([one.placed for one in parts]))


def rows_needed(steps: Sequence[int], config: CalibrationConfig) -> int:
    """Return how many rows of an action are used."""
    return steps[-1] + max(config.rows, config.group)


def follow(
    model: Model,
    rows: ActionRows,
    info: TaskInfo,
    steps: Sequence[int],
    config: CalibrationConfig,
    rngs: Sequence[np.random.Generator],
) -> Followed:
    """Show a model the rows of N actions one at a time, and query it after each number of ``steps``."""
    group, x, y = config.group, rows.contexts, rows.outcomes
    uniform: np.ndarray = np.stack([rng.random(len(steps)) for rng in rngs])  # (N, S)
    predictor = Predictor(model, info, rngs)
    asked = {t for step in steps for t in range(step, step + group)}
    one_step: dict[int, np.ndarray] = {}
    at_once: list[np.ndarray] = []
    placed: list[Placed] = []
    for t in range(steps[-1] + group):
        if t in steps:
            at_once.append(predictor.predict(x[:, t : t + group]))
            imputed = predictor.impute(x[:, t], config.rows, config.draws, config.contexts)  # (N, M, rows)
            drawn = _mean_reward(rows, imputed)
            placed.append(place(_mean_reward(rows, y[:, t : t + config.rows]), drawn, uniform[:, len(placed)]))
        if t in asked:
            one_step[t] = predictor.predict(x[:, t : t + 1])[:, 0]
        predictor.append(x[:, t], y[:, t])
    spans = [range(step, step + group) for step in steps]
    ahead = np.stack([np.stack([one_step[t] for t in span], axis=1) for span in spans], axis=1)  # (N, S, G, ...)
    outcomes = np.stack([y[:, span.start : span.stop] for span in spans], axis=1)  # (N, S, G)
    return Followed(ahead, np.stack(at_once, axis=1), outcomes, Placed.stack(placed))


def _mean_reward(rows: ActionRows, outcomes: np.ndarray) -> np.ndarray:
    return np.asarray(rows.reward_fn(outcomes), np.float64).mean(axis=-1)
