"""Follows TS-Gen on p* through tasks, and completes many tables on the way, with p* and with models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gents_gym.agents.on_model import BeliefHolder
from gents_gym.agents.policy import choose_policy
from gents_gym.agents.ts_gen import TSGen
from gents_gym.checks import InputError, check_integer
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.likelihoods import BERNOULLI
from gents_gym.randomness import stream
from gents_gym.types import TaskInfo, Tasks

CELLS = 4_000_000  # cells of completed tables that are held at once
EXACT = "exact"


@dataclass(frozen=True, eq=False)
class Histories:
    """Measurements of B tasks at S of their decisions, along histories that TS-Gen on p* played."""

    steps: tuple[int, ...]  # t, from 1
    oracle: np.ndarray  # π*(X_t; τ) of the tasks' own tables, (S, B)
    regret: np.ndarray  # oracle regret of TS-Gen on p*, (B, T)
    plays: dict[str, np.ndarray] = field(default_factory=dict)  # by model, (S, B, M); 2M of "exact"
    outcomes: np.ndarray | None = None  # Y_t in the tables of "exact", (S, B, 2M, A)


def known_info(tasks: Tasks) -> TaskInfo:
    """Return what an agent may know of the tasks."""
    return TaskInfo(
        tasks.action_features,
        tasks.n_actions,
        tasks.context_dim,
        tasks.horizon,
        tasks.reward_fn,
        texts=None if tasks.texts is None else tasks.texts.tolist(),
        space=tasks.space,
        likelihood=tasks.likelihood,
        truth=tasks.known_truth,
        known_contexts=tasks.known_contexts,
    )


def exact_info(tasks: Tasks) -> TaskInfo:
    """Return what p* knows of the tasks: the truth, and the features that it depends on."""
    if tasks.truth is None:
        raise InputError("env must publish its truth for p* to be played on it, got tasks without one")
    if tasks.likelihood != BERNOULLI:
        raise InputError(f"env must have outcomes 0 and 1, for which the bounds are measured, got {tasks.likelihood}")
    info = replace(known_info(tasks), truth=tasks.truth)
    return info if tasks.hidden_features is None else replace(info, action_features=tasks.hidden_features)


def play(tasks: Tasks, model: Any = EXACT, policy: str = "logistic", seed: int = 0) -> np.ndarray:
    """Return the oracle regret of TS-Gen on a model, by step, (B, T); agent and oracle fit the same policy class."""
    if model == EXACT:
        return follow(tasks, policy=policy, seed=seed).regret
    agent = TSGen(model, policy)
    agent.reset(known_info(tasks), _streams(tasks, seed))
    actions = [_decide(agent, tasks, t) for t in range(tasks.horizon)]
    return regret(tasks, np.stack(actions, axis=1), oracle_actions(tasks, policy))["oracle"]


def follow(
    tasks: Tasks,
    models: Mapping[str, Any] | None = None,
    steps: Sequence[int] = (),
    draws: int = 100,
    policy: str = "logistic",
    seed: int = 0,
) -> Histories:
    """Play TS-Gen on p*, and at some decisions draw the actions of policies fitted to completed tables.

    Args:
        tasks: B tasks that carry their truth.
        models: Models, or their specs, by their names in the result; p* is always measured.
        steps: The decisions to measure at, rising from 1; empty: it only plays.
        draws: M, tables for each task, model and step; twice as many for p*.
        policy: The policy class of agent and oracle.
        seed: Seed of the agents' random numbers.
    """
    for step in steps:
        if check_integer("steps", step, 1) > tasks.horizon:
            raise InputError(f"steps must be at most the horizon {tasks.horizon}, got {step}")
    known, exact = known_info(tasks), exact_info(tasks)
    watched = {EXACT: (EXACT, exact), **{name: (model, known) for name, model in (models or {}).items()}}
    watchers = {
        name: _Watcher(model, info, policy, [rng.spawn(2 + i)[-1] for rng in _streams(tasks, seed)])
        for i, (name, (model, info)) in enumerate(watched.items() if steps else ())
    }
    agent = TSGen(EXACT, policy)
    agent.reset(exact, _streams(tasks, seed))
    actions: list[np.ndarray] = []
    outcomes: list[np.ndarray] = []
    plays: dict[str, list[np.ndarray]] = {name: [] for name in watchers}
    for t in range(tasks.horizon):
        for name, watcher in watchers.items() if t + 1 in steps else ():
            found, rows = watcher.draw(tasks.contexts[:, t], draws * (1 + (name == EXACT)))
            plays[name].append(found)
            outcomes += [rows] if name == EXACT else []
        actions.append(_decide(agent, tasks, t, *watchers.values()))
    best = oracle_actions(tasks, policy)  # (B, T)
    return Histories(
        tuple(steps),
        best[:, [step - 1 for step in steps]].T,
        regret(tasks, np.stack(actions, axis=1), best)["oracle"],
        {name: np.stack(found) for name, found in plays.items()},
        np.stack(outcomes) if outcomes else None,
    )


def random_regret(tasks: Tasks, policy: str = "logistic") -> float:
    """Return the expected regret per period of uniformly random play; a useful bound is below it."""
    best = np.take_along_axis(tasks.rewards, oracle_actions(tasks, policy)[..., None], axis=2)
    return float(best.mean() - tasks.rewards.mean())


def prior_labels(tasks: Tasks, draws: int, policy: str = "logistic", seed: int = 0) -> np.ndarray:
    """Return π*(X_1:T; τ) of tables that p* draws given the tasks' actions and contexts, (B, M, T)."""
    info = replace(exact_info(tasks), known_contexts=tasks.contexts)
    holder = BeliefHolder(EXACT, info, _streams(tasks, seed))
    chosen = choose_policy(policy, holder.model, info)
    parts = []
    for count in _chunks(tasks, draws):
        tables = holder.belief.complete(tasks.contexts[:, 0], None, count, "given")
        x = tables.contexts.reshape(-1, *tables.contexts.shape[2:])  # (B·m, T, D)
        fitted = chosen.fit(tables, None).policy
        parts.append(fitted.scores(x).argmax(axis=2).reshape(len(tasks), count, -1))
    return np.concatenate(parts, axis=1)


class _Watcher:
    """A belief that follows a history that others play."""

    def __init__(self, model: Any, info: TaskInfo, policy: str, rngs: Sequence[np.random.Generator]) -> None:
        self._held, self._info = BeliefHolder(model, info, rngs), info
        self._policy = choose_policy(policy, self._held.model, info)
        self.observe = self._held.observe

    def draw(self, context: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions of M fitted policies in the contexts (B, D), and the tables' outcomes: (B, M), (…, A)."""
        plays, rows = [], []
        for count in _chunks(self._info, draws):
            tables = self._held.belief.complete(context, None, count, None)
            plays.append(self._policy.fit(tables, None).scores.argmax(axis=2))
            rows.append(tables.outcomes[:, :, tables.current])
        return np.concatenate(plays, axis=1), np.concatenate(rows, axis=1)


def _chunks(tasks: Tasks | TaskInfo, draws: int) -> list[int]:
    """Return how many tables to complete at once, repeated until there are ``draws``."""
    assert tasks.horizon is not None
    most = max(1, CELLS // (len(tasks) * tasks.horizon * tasks.n_actions))
    return [min(most, draws - done) for done in range(0, check_integer("draws", draws, 1), most)]


def _streams(tasks: Tasks, seed: int) -> list[np.random.Generator]:
    return [stream(seed, "agent", index) for index in range(len(tasks))]


def _decide(agent: TSGen, tasks: Tasks, t: int, *watchers: Any) -> np.ndarray:
    """Let the agent play decision t, show the outcomes to it and to all observers, and return the actions (B,)."""
    context = tasks.contexts[:, t]
    action = agent.act(context)
    outcome = tasks.outcomes[np.arange(len(tasks)), t, action]
    for learner in (agent, *watchers):
        learner.observe(context, action, outcome)
    return action
