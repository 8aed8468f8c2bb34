"""Measures the seconds of a training epoch."""

import time

import numpy as np
import torch

from gents_gym.bench.timing import Sizes, rate
from gents_gym.construct import make_tasks
from gents_gym.training.config import preset_config
from gents_gym.training.data import RowSets
from gents_gym.training.loop import train


def measure_training(sizes: Sizes) -> dict[str, float]:
    """Return the seconds of an epoch on 10,000 actions, from one batch, and its ratio to the matrix products alone."""
    torch.set_num_threads(1)
    found = {}
    rows = RowSets.from_rows(make_tasks("synthetic").sample_actions(0, range(sizes.trained), 1000))
    few = rows.choose(np.arange(2))
    for preset in ("filter", "paper"):
        size, rounds = sizes.trained, sizes.rounds
        config = preset_config(preset, choose=False, epochs=rounds, learning_rates=(0.01,), batch=size)
        ticks = [time.perf_counter()]
        train(rows, few, config, on_batch=lambda _, ticks=ticks: ticks.append(time.perf_counter()))  # type: ignore[misc]
        found[f"train_{preset}_epoch_seconds"] = min(np.diff(ticks)[1:]) * 10_000 / sizes.trained
    config = preset_config("paper")
    n_rows, width, inputs = sizes.trained * (config.steps or config.horizon), 100, 37
    shapes = [(inputs, width), (width, width), (width, width), (width, width), (width, 1)]
    made = [(torch.randn(n_rows, a), torch.randn(a, b), torch.randn(n_rows, b)) for a, b in shapes]

    def products() -> None:
        for x, weights, gradient in made:  # forward, and backward to the weights and to the input
            _ = x @ weights, x.T @ gradient, gradient @ weights.T

    seconds = n_rows / max(rate(products, n_rows) for _ in range(sizes.rounds)) * 10_000 / sizes.trained
    found["train_paper_share_outside_products"] = 1 - seconds / found["train_paper_epoch_seconds"]
    return found
