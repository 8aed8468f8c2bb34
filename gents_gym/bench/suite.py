"""Measures rates of the environments and of LinUCB, compared with other libraries."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from gents_gym.bench.timing import Sizes, compete, rate
from gents_gym.construct import make_agent, make_tasks
from gents_gym.types import TaskInfo, Tasks

POOL = {"live": 5, "rate": 0.01}  # of ten actions
LOSSY = {"geometric": 0.1, "lost": 0.2}  # a delay that is drawn
SHORT = 5  # environments are timed so many times as often, because a run takes less than 0.1 s
MABWISER = "mabwiser_decisions_per_second"


@dataclass(frozen=True)
class LeanLinUCB:
    """LinUCB for one task in plain NumPy, as fast as possible: the yardstick for batching."""

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


def measure_suite(sizes: Sizes) -> dict[str, float | None]:
    """Return the ratios by name, with the rates that they come from; None if a library is missing."""
    environments: dict[str, Callable[[], float]] = {
        "vector_env_steps_per_second": _vector_env("gents_gym/Synthetic-v0", 500, sizes.tasks),
        "single_env_steps_per_second": _single_env("gents_gym/Synthetic-v0", 4 * 500),
        "delayed_vector_env_steps_per_second": _vector_env("gents_gym/Synthetic-v0", 500, sizes.tasks, delay=10),
        "lossy_vector_env_steps_per_second": _vector_env("gents_gym/Synthetic-v0", 500, sizes.tasks, delay=LOSSY),
        "masked_vector_env_steps_per_second": _vector_env("gents_gym/Synthetic-v0", 500, sizes.tasks, turnover=POOL),
        "cartpole_vector_steps_per_second": _vector_env("CartPole-v1", 500, sizes.tasks),
    }
    contestants: dict[str, Callable[[], float]] = {
        "linucb_batch_decisions_per_second": _batched_linucb(sizes.tasks),
        "linucb_single_decisions_per_second": _lean_linucb(),
    }
    if importlib.util.find_spec("mabwiser") is not None:
        contestants[MABWISER] = _mabwiser_linucb()
    rates = compete(environments, SHORT * sizes.rounds) | compete(contestants, sizes.rounds)
    vector, batch = "vector_env_steps_per_second", "linucb_batch_decisions_per_second"
    return {
        "vector_env_speedup": rates.ratio(vector, "single_env_steps_per_second"),
        "vector_env_vs_cartpole": rates.ratio(vector, "cartpole_vector_steps_per_second"),
        "delayed_vector_env_share": rates.ratio("delayed_vector_env_steps_per_second", vector),
        "lossy_vector_env_share": rates.ratio("lossy_vector_env_steps_per_second", vector),
        "masked_vector_env_share": rates.ratio("masked_vector_env_steps_per_second", vector),
        "linucb_batch_speedup": rates.ratio(batch, "linucb_single_decisions_per_second"),
        "linucb_vs_mabwiser": rates.ratio(batch, MABWISER) if MABWISER in contestants else None,
        **{name: rates.rate(name) for name in (*environments, *contestants)},
    }


def _vector_env(name: str, steps: int, n_tasks: int, **options: Any) -> Callable[[], float]:
    """Steps of whole episodes, including resets and drawing the tasks."""
    envs = gym.make_vec(name, num_envs=n_tasks, **options)
    observation, _ = envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(envs.single_action_space.n, size=(steps, n_tasks))  # type: ignore[attr-defined]

    def work() -> None:
        for action in actions:
            envs.step(action)

    def work_among_some() -> None:
        nonlocal observation
        for _ in actions:
            observation, *_ = envs.step(observation["available"].argmax(axis=1))

    return lambda: rate(work_among_some if "turnover" in options else work, steps * n_tasks)


def _single_env(name: str, steps: int) -> Callable[[], float]:
    env = gym.make(name, disable_env_checker=True).unwrapped
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()  # type: ignore[attr-defined]

    def work() -> None:
        for action in actions:
            if env.step(action)[2]:
                env.reset()

    return lambda: rate(work, steps)


def _tasks(n_tasks: int) -> Tasks:
    return make_tasks("synthetic").sample(0, range(n_tasks), "validation")


def _batched_linucb(n_tasks: int) -> Callable[[], float]:
    tasks, agent = _tasks(n_tasks), make_agent("linucb")
    info = TaskInfo(tasks.action_features, tasks.n_actions, tasks.context_dim, tasks.horizon)
    rngs = [np.random.default_rng(i) for i in range(n_tasks)]
    slots = np.arange(n_tasks)

    def work() -> None:
        agent.reset(info, rngs)
        for t in range(tasks.horizon):
            context = tasks.contexts[:, t]
            action = agent.act(context)
            agent.observe(context, action, tasks.outcomes[slots, t, action])

    return lambda: rate(work, n_tasks * tasks.horizon)


def _lean_linucb() -> Callable[[], float]:
    tasks = _tasks(4)
    agent = LeanLinUCB(tasks.n_actions, tasks.context_dim)
    data = [(x.astype(np.float64), r.astype(np.float64)) for x, r in zip(tasks.contexts, tasks.rewards, strict=True)]
    return lambda: rate(lambda: [agent.play(*pair) for pair in data], len(data) * tasks.horizon)


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

    return lambda: rate(work, tasks.horizon)
