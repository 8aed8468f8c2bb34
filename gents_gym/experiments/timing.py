"""Times single decisions of an agent: generation, fitting and in total."""

import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.rollout import observed_outcomes, own_tasks, task_info
from gents_gym.randomness import stream
from gents_gym.types import Agent, Completion

WARM_UP = 3  # first decisions, which do not count because they include compiling and loading


@runtime_checkable
class InTwoSteps(Protocol):
    """An agent that generates tables and fits policies to them, as TS-Gen does."""

    def complete_tables(self, context: np.ndarray) -> Completion:
        """Return completed tables in contexts (B, D)."""
        ...

    def fit_policies(self, tables: Completion) -> np.ndarray:
        """Return the scores of policies fitted to the tables, (B, M, A)."""
        ...


@dataclass(frozen=True, eq=False)
class Times:
    """Seconds of each decision, played one task at a time, (n,) each."""

    total: np.ndarray  # deciding and learning from the outcome
    generation: np.ndarray | None = None  # None for agents that do not generate tables
    fit: np.ndarray | None = None
    actions: np.ndarray | None = None  # (tasks, T)


def time_decisions(env: str, spec: str, n_tasks: int, seed: int) -> Times:
    """Return the times of every decision of an agent in the first tasks of the test split, one task at a time."""
    envs, agent = make_envs(env, 1, "test"), make_agent(spec)
    for warm in (True, False):
        indices = range(1) if warm else range(n_tasks)
        played = [_play(envs, agent, seed, index, WARM_UP if warm else None) for index in indices]
    envs.close()
    marks, actions = (np.stack(part) for part in zip(*played, strict=True))  # (tasks, T, 4), (tasks, T)
    begun, completed, decided, over = marks.reshape(-1, 4).T
    if not isinstance(agent, InTwoSteps):
        return Times(over - begun, actions=actions)
    return Times(over - begun, completed - begun, decided - completed, actions)


def _play(envs: Any, agent: Agent, seed: int, index: int, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of each decision of a task, (T, 4): begun, generated, decided, learned; and the actions."""
    observation, shown = envs.reset(seed=seed, options={"task": [index]})
    info = task_info(envs, observation, shown, own_tasks(envs))
    agent.reset(info, [stream(seed, "agent", index)])
    marks: list[tuple[float, ...]] = []
    actions: list[int] = []
    over = False
    while not over and len(actions) != most:
        context = observation["context"].copy()
        begun = time.perf_counter()
        if isinstance(agent, InTwoSteps):
            tables = agent.complete_tables(context)
            completed = time.perf_counter()
            action = agent.fit_policies(tables).mean(axis=1).argmax(axis=1)
        else:
            completed, action = begun, agent.act(context)
        decided = time.perf_counter()
        observation, reward, terminated, truncated, step = envs.step(action)
        told = observed_outcomes(step, reward)
        learning = time.perf_counter()
        agent.observe(context, action, told)
        marks.append((begun, completed, decided, decided + time.perf_counter() - learning))
        actions.append(int(action[0]))
        over = bool((terminated | truncated).all())
    return np.array(marks), np.array(actions)
