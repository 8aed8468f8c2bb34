"""Calibrates any model: compares its predictions and completed tables with held-out rows of the test split."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.follow import Followed, follow, rows_needed
from gents_gym.calibration.given import check_calibration, choose_class, inform, known_truth
from gents_gym.calibration.positions import Placed
from gents_gym.calibration.record import Calibration
from gents_gym.calibration.reliability import Reliability, measure_reliability
from gents_gym.calibration.values import place_values
from gents_gym.randomness import stream
from gents_gym.types import Model, TaskDistribution, Truth

ACTIONS = 250  # actions followed side by side
TASKS = 25  # tasks completed side by side


def calibrate(
    model: Any,
    distribution: TaskDistribution,
    config: CalibrationConfig | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Measure how far a model's posterior can be trusted, on tasks that it was not trained on.

    Args:
        model: A model, or its name: a bundled model's id, a folder, ``package.module:Class``, or "exact". The exact
            model receives the features that p* depends on, including hidden ones.
        distribution: The task distribution; its test split is used.
        config: What to measure; None: the defaults.
        on_block: Called with the number of finished blocks and the total, for a progress bar.
    """
    config = config or CalibrationConfig()
    found = check_calibration(model, distribution, config)
    steps = config.steps_below(distribution.sample(config.seed, [0], "test").horizon)
    work = _Work(found, distribution, replace(config, steps=steps), steps, known_truth(distribution, config))
    actions, tasks = _blocks(config.actions, ACTIONS), _blocks(config.tasks, TASKS)
    done: list[Any] = []
    todo = [*((work.follow, block) for block in actions), *((work.place_values, block) for block in tasks)]
    for measure, block in todo:
        done.append(measure(block))
        if on_block is not None:
            on_block(len(done), len(todo))
    return work.record(Followed.join(done[: len(actions)]), Placed.join(done[len(actions) :]))


def _blocks(count: int, size: int) -> list[range]:
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


@dataclass(frozen=True, eq=False)
class _Work:
    """Measures a model block by block; random numbers for action or task i depend only on i."""

    model: Model
    distribution: TaskDistribution
    config: CalibrationConfig
    steps: tuple[int, ...]
    truth: Truth | None

    def follow(self, block: range) -> Followed:
        config = self.config
        rows = self.distribution.sample_actions(config.seed, block, rows_needed(self.steps, config), "test")
        info = inform(rows, self.model, self.truth, config.contexts)
        rngs = [stream(config.seed, "calibration", 2 * i) for i in block]
        return follow(self.model, rows, info, self.steps, config, rngs)

    def place_values(self, block: range) -> Placed:
        config = self.config
        tasks = self.distribution.sample(config.seed, block, "test")
        info = inform(tasks, self.model, self.truth, config.contexts)
        rngs = [stream(config.seed, "calibration", 2 * i + 1) for i in block]
        given = (tasks, info, choose_class(tasks, config.policy), self.steps, config.draws, config.contexts, rngs)
        return place_values(self.model, *given)

    def record(self, followed: Followed, values: Placed) -> Calibration:
        likelihood, outcomes = self.model.likelihood, followed.outcomes

        def losses(parameters: np.ndarray) -> np.ndarray:
            return -likelihood.log_prob(parameters, outcomes).mean(axis=2)  # (N, S)

        def reliability(at: int) -> Reliability:
            parameters = followed.one_step[:, at].reshape(-1, *likelihood.shape)
            return measure_reliability(likelihood, parameters, outcomes[:, at].ravel())

        placed = {"mean reward": followed.placed, "policy value": values}
        return Calibration(
            self.steps,
            tuple(reliability(at) for at in range(len(self.steps))),
            {"marginal": losses(followed.at_once), "joint": losses(followed.one_step)},
            {name: part.positions for name, part in placed.items()},
            {name: part.widths.mean(axis=0) for name, part in placed.items()},
            self.truth is not None and self.config.sbc != "no",
            self.config,
        )
