"""Measures how much faster an evaluation is with several workers."""

import tempfile
import time

from gents_gym.bench.timing import Sizes
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate

AGENTS = ("ts-gen", "greedy", "linucb", "lints(prior=fitted)", "lints")


def measure_workers(sizes: Sizes) -> dict[str, float]:
    """Return the speedup of an evaluation with two workers over one, including their start."""
    config = EvaluationConfig(AGENTS, tasks=sizes.evaluated, block=max(1, sizes.evaluated // 10))
    seconds = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as out:
            started = time.perf_counter()
            evaluate(config, out, workers=workers)
            seconds.append(time.perf_counter() - started)
    return {"evaluate_two_workers_speedup": seconds[0] / seconds[1]}
