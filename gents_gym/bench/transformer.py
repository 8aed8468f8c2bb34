"""A transformer's time for generated rows, beside that of predicting from all rows again, and of its products alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gents_gym.bench.timing import Sizes, compete, rate
from gents_gym.construct import make_tasks
from gents_gym.models.belief import ActionBelief
from gents_gym.models.load import load_model
from gents_gym.types import Feedback, TaskInfo, Tasks

MODEL = "synthetic-transformer"
ROWS = 8  # that are generated for each action
LENGTHS = (1, 2, 4, 8)  # parts of the horizon at which a decision is timed: T/8 to T


def measure_transformer(sizes: Sizes) -> dict[str, float]:
    """Return the speed-up of the cache, its share of the ceiling, and milliseconds per decision against T."""
    torch.set_num_threads(1)
    model: Any = load_model(MODEL)
    n_tasks, middle = max(2, sizes.batch // 5), sizes.horizon // 2
    with torch.no_grad():
        contestants = {
            "cached": _completions(model, n_tasks, middle, sizes.horizon),
            "plain": _completions(model, 2, middle, sizes.horizon, cached=False),
            "products": _products(model, n_tasks),
        }
        rates = compete(contestants, sizes.rounds)
        rows = sorted({sizes.horizon * part // LENGTHS[-1] for part in LENGTHS})
        grown = compete({str(t): _completions(model, n_tasks, t, sizes.horizon) for t in rows}, sizes.rounds)
    return {
        "transformer_cache_speedup": rates.ratio("cached", "plain"),
        "transformer_ceiling_share": rates.ratio("cached", "products"),
        **{f"transformer_milliseconds_t_{t}": 1000 * 10 * ROWS / grown.rate(str(t)) for t in rows},
    }


def _completions(model: Any, n_tasks: int, t: int, horizon: int, cached: bool = True) -> Callable[[], float]:
    """Cells per second of tables that are completed after ``t`` rows, 10 actions of each task at once."""
    tasks = make_tasks("synthetic", horizon=horizon + 1).sample(0, range(n_tasks), "validation")
    info = TaskInfo(tasks.action_features, 10, tasks.context_dim, None)
    rngs = [np.random.default_rng(i) for i in range(n_tasks)]
    belief = model.begin(info, rngs) if cached else ActionBelief(model, info, rngs, model.bank.numpy())
    _play(belief, tasks, t)
    belief.complete(tasks.contexts[:, t], 1)  # compiles
    return lambda: rate(lambda: belief.complete(tasks.contexts[:, t], ROWS), n_tasks * 10 * ROWS)


def _play(belief: Any, tasks: Tasks, steps: int) -> None:
    """Play the actions in turn."""
    every = np.arange(len(tasks))
    for t in range(steps):
        action = np.full(len(tasks), t % tasks.n_actions)
        belief.decide(tasks.contexts[:, t], action)
        belief.observe(Feedback(every, np.full(len(tasks), t), tasks.outcomes[every, t, action]))


def _products(model: Any, n_tasks: int) -> Callable[[], float]:
    """Cells per second of the products with weights alone: two tokens a cell, without attention."""
    width, tokens = model.config.width, 2 * 10 * n_tasks
    shapes = [(width, 4 * width), (width, 4 * width), (4 * width, width)]  # query, key, value and mix in the first
    made = [(torch.randn(tokens, a), torch.randn(a, b), torch.empty(tokens, b)) for a, b in shapes]

    def work() -> None:
        for _ in range(ROWS * model.config.layers):
            for x, weights, out in made:
                torch.mm(x, weights, out=out)

    return lambda: rate(work, n_tasks * 10 * ROWS)
