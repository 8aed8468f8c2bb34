"""Benchmarks: nothing in, rates and the ratios between them out, all measured in one run."""

import importlib.util
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from gents_gym.construct import make_agent, make_tasks
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.types import TaskInfo, Tasks

B = 256  # tasks side by side
TRAINED = 500  # actions in the batch whose training is timed
EVALUATED = 100  # tasks of the comparison that two workers play
ROUNDS = 3  # every contestant runs so often, in turn; its best rate counts, which noise disturbs least


@dataclass(frozen=True)
class LeanLinUCB:
    """LinUCB for one task in plain NumPy, as lean as it goes: the yardstick for batching."""

    n_actions: int
    size: int
    alpha: float = 0.1

    def play(self, contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
        """Return the actions played on contexts (T, D) with rewards (T, A)."""
        inverse = np.tile(np.eye(self.size), (self.n_actions, 1, 1))  # (A, D, D)
        theta = np.zeros((self.n_actions, self.size))
        actions = []
        for x, row in zip(contexts, rewards, strict=True):
            spread = inverse @ x  # (A, D)
            action = int((theta @ x + self.alpha * np.sqrt(spread @ x)).argmax())
            gain = spread[action] / (1 + spread[action] @ x)
            theta[action] += gain * (row[action] - theta[action] @ x)
            inverse[action] -= np.outer(gain, spread[action])
            actions.append(action)
        return actions


def run_benchmarks() -> dict[str, float | None]:
    """Return the ratios by name, with the rates behind them; None where a library to compare with is absent."""
    contestants: dict[str, Callable[[], float]] = {
        "vector_env_steps_per_second": _vector_env("gents_gym/Synthetic-v0", 500),
        "single_env_steps_per_second": _single_env("gents_gym/Synthetic-v0", 4 * 500),
        "cartpole_vector_steps_per_second": _vector_env("CartPole-v1", 500),
        "linucb_batch_decisions_per_second": _batched_linucb(),
        "linucb_single_decisions_per_second": _lean_linucb(),
    }
    if importlib.util.find_spec("mabwiser") is not None:
        contestants["mabwiser_decisions_per_second"] = _mabwiser_linucb()
    rates: dict[str, float] = dict.fromkeys(contestants, 0.0)
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            rates[name] = max(rates[name], contestant())
    mabwiser = rates.get("mabwiser_decisions_per_second")
    batch = rates["linucb_batch_decisions_per_second"]
    vector = rates["vector_env_steps_per_second"]
    return {
        "vector_env_speedup": vector / rates["single_env_steps_per_second"],
        "vector_env_vs_cartpole": vector / rates["cartpole_vector_steps_per_second"],
        "linucb_batch_speedup": batch / rates["linucb_single_decisions_per_second"],
        "linucb_vs_mabwiser": None if mabwiser is None else batch / mabwiser,
        **rates,
        **_training_times(),
        "evaluate_two_workers_speedup": _two_workers(),
    }


def report(found: dict[str, float | None]) -> str:
    """Return the benchmarks' results as a table of lines."""
    lines = []
    for name, value in found.items():
        if value is None:
            shown = "not installed"
        elif "_per_" in name:
            shown = f"{value:,.0f}"
        else:
            shown = f"{value:,.2f}" if name.startswith("train_") else f"{value:,.1f}×"
        lines.append(f"{name.replace('_', ' '):<40} {shown:>16}")
    return "\n".join(lines)


def _training_times() -> dict[str, float]:
    """Return the seconds of an epoch on 10,000 actions, from one batch, and what the products alone would leave."""
    import torch

    from gents_gym.training.data import RowSets
    from gents_gym.training.loop import preset_config, train

    torch.set_num_threads(1)
    found = {}
    rows = RowSets.from_rows(make_tasks("synthetic").sample_actions(0, range(TRAINED), 1000))
    few = rows.choose(np.arange(2))
    for preset in ("filter", "paper"):
        config = preset_config(preset, epochs=ROUNDS, learning_rates=(0.01,), batch=TRAINED)
        ticks = [time.perf_counter()]
        train(rows, few, config, on_batch=lambda _, ticks=ticks: ticks.append(time.perf_counter()))  # type: ignore[misc]
        found[f"train_{preset}_epoch_seconds"] = min(np.diff(ticks)[1:]) * 10_000 / TRAINED
    config = preset_config("paper")
    n_rows, width, inputs = TRAINED * (config.steps or config.horizon), 100, 37
    shapes = [(inputs, width), (width, width), (width, width), (width, width), (width, 1)]
    made = [(torch.randn(n_rows, a), torch.randn(a, b), torch.randn(n_rows, b)) for a, b in shapes]

    def products() -> None:
        for x, weights, gradient in made:  # forward, and backward to the weights and to the input
            _ = x @ weights, x.T @ gradient, gradient @ weights.T

    seconds = n_rows / max(_rate(products, n_rows) for _ in range(ROUNDS)) * 10_000 / TRAINED
    found["train_paper_share_outside_products"] = 1 - seconds / found["train_paper_epoch_seconds"]
    return found


def _two_workers() -> float:
    """Return how much sooner two workers end the comparison of agents than one, their start included."""
    agents = ("ts-gen", "greedy", "linucb", "lints(prior=fitted)", "lints")
    config = EvaluationConfig(agents, tasks=EVALUATED, block=max(1, EVALUATED // 10), training_actions=200)
    seconds = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as out:
            started = time.perf_counter()
            evaluate(config, out, workers=workers)
            seconds.append(time.perf_counter() - started)
    return seconds[0] / seconds[1]


def _rate(work: Callable[[], Any], amount: int) -> float:
    started = time.perf_counter()
    work()
    return amount / (time.perf_counter() - started)


def _vector_env(name: str, steps: int) -> Callable[[], float]:
    """Steps of whole episodes, resets and the drawing of their tasks included."""
    envs = gym.make_vec(name, num_envs=B)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(envs.single_action_space.n, size=(steps, B))  # type: ignore[attr-defined]

    def work() -> None:
        for action in actions:
            envs.step(action)

    return lambda: _rate(work, steps * B)


def _single_env(name: str, steps: int) -> Callable[[], float]:
    env = gym.make(name, disable_env_checker=True).unwrapped
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()  # type: ignore[attr-defined]

    def work() -> None:
        for action in actions:
            if env.step(action)[2]:
                env.reset()

    return lambda: _rate(work, steps)


def _tasks(n_tasks: int) -> Tasks:
    return make_tasks("synthetic").sample(0, range(n_tasks), "validation")


def _batched_linucb() -> Callable[[], float]:
    tasks, agent = _tasks(B), make_agent("linucb")
    info = TaskInfo(tasks.action_features, tasks.n_actions, tasks.context_dim, tasks.horizon)
    rngs = [np.random.default_rng(i) for i in range(B)]
    slots = np.arange(B)

    def work() -> None:
        agent.reset(info, rngs)
        for t in range(tasks.horizon):
            context = tasks.contexts[:, t]
            action = agent.act(context)
            agent.observe(context, action, tasks.outcomes[slots, t, action])

    return lambda: _rate(work, B * tasks.horizon)


def _lean_linucb() -> Callable[[], float]:
    tasks = _tasks(4)
    agent = LeanLinUCB(tasks.n_actions, tasks.context_dim)
    data = [(x.astype(np.float64), r.astype(np.float64)) for x, r in zip(tasks.contexts, tasks.rewards, strict=True)]
    return lambda: _rate(lambda: [agent.play(*pair) for pair in data], len(data) * tasks.horizon)


def _mabwiser_linucb() -> Callable[[], float]:
    from mabwiser.mab import MAB, LearningPolicy

    tasks = _tasks(1)

    def work() -> None:
        mab = MAB(list(range(tasks.n_actions)), LearningPolicy.LinUCB(alpha=0.1))
        mab.fit([0], [float(tasks.rewards[0, 0, 0])], tasks.contexts[0, :1])
        for t in range(1, tasks.horizon):
            context = tasks.contexts[0, t : t + 1]
            action = mab.predict(context)
            mab.partial_fit([action], [float(tasks.rewards[0, t, action])], context)

    return lambda: _rate(work, tasks.horizon)
