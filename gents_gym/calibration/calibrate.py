"""Calibration of any model: its predictions and completed tables against held-out rows of the test split."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gents_gym.calibration.config import CalibrationConfig
from gents_gym.calibration.follow import Followed, follow, rows_needed
from gents_gym.calibration.given import check_calibration, choose_class, inform, known_truth
from gents_gym.calibration.positions import Placed
from gents_gym.calibration.record import Calibration
from gents_gym.calibration.reliability import measure_reliability
from gents_gym.calibration.values import place_values
from gents_gym.likelihoods import Likelihood
from gents_gym.randomness import stream
from gents_gym.types import Model, TaskDistribution, Truth

ACTIONS = 250  # followed side by side
TASKS = 25  # completed side by side


def calibrate(
    model: Any,
    distribution: TaskDistribution,
    config: CalibrationConfig | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Measure how far a model's posterior can be trusted, on tasks that it was not trained on.

    Args:
        model: A model, or its name: a bundled model's id, a folder, ``package.module:Class``, or "exact". The exact
            model is given the features that p* is about, hidden ones too.
        distribution: What nature draws; its test split is used.
        config: What to measure; None: the defaults.
        on_block: Called with the blocks of work that are done and their number, for a progress bar.
    """
    config = config or CalibrationConfig()
    found = check_calibration(model, distribution, config)
    truth = known_truth(distribution, config)
    steps = config.steps_below(distribution.sample(config.seed, [0], "test").horizon)
    blocks = [*_blocks(config.actions, ACTIONS)], [*_blocks(config.tasks, TASKS)]
    total = sum(map(len, blocks))
    followed, values = [], []
    for block in blocks[0]:
        followed.append(_follow_block(found, distribution, block, steps, truth, config))
        if on_block is not None:
            on_block(len(followed), total)
    for block in blocks[1]:
        values.append(_value_block(found, distribution, block, steps, truth, config))
        if on_block is not None:
            on_block(len(followed) + len(values), total)
    return _record(found.likelihood, Followed.join(followed), Placed.join(values), steps, truth, config)


def _blocks(count: int, size: int) -> Iterator[range]:
    return (range(first, min(first + size, count)) for first in range(0, count, size))


def _follow_block(
    model: Model,
    distribution: TaskDistribution,
    block: range,
    steps: tuple[int, ...],
    truth: Truth | None,
    config: CalibrationConfig,
) -> Followed:
    rows = distribution.sample_actions(config.seed, block, rows_needed(steps, config), "test")
    info = inform(rows, model, truth, config.contexts)
    rngs = [stream(config.seed, "calibration", 2 * i) for i in block]
    return follow(model, rows, info, steps, config, rngs)


def _value_block(
    model: Model,
    distribution: TaskDistribution,
    block: range,
    steps: tuple[int, ...],
    truth: Truth | None,
    config: CalibrationConfig,
) -> Placed:
    tasks = distribution.sample(config.seed, block, "test")
    info = inform(tasks, model, truth, config.contexts)
    rngs = [stream(config.seed, "calibration", 2 * i + 1) for i in block]
    policy_class = choose_class(tasks, config.policy)
    return place_values(model, tasks, info, policy_class, steps, config.draws, config.contexts, rngs)


def _record(
    likelihood: Likelihood,
    followed: Followed,
    values: Placed,
    steps: tuple[int, ...],
    truth: Truth | None,
    config: CalibrationConfig,
) -> Calibration:
    def losses(parameters: np.ndarray) -> np.ndarray:
        return -likelihood.log_prob(parameters, followed.outcomes).mean(axis=2)  # (N, S)

    def reliability(at: int) -> Any:
        parameters, outcomes = followed.one_step[:, at], followed.outcomes[:, at]
        return measure_reliability(likelihood, parameters.reshape(-1, *likelihood.shape), outcomes.ravel())

    placed = {"mean reward": followed.placed, "policy value": values}
    return Calibration(
        steps,
        tuple(reliability(at) for at in range(len(steps))),
        {"marginal": losses(followed.at_once), "joint": losses(followed.one_step)},
        {name: part.positions for name, part in placed.items()},
        {name: part.widths.mean(axis=0) for name, part in placed.items()},
        truth is not None and config.sbc != "no",
        replace(config, steps=steps),
    )
