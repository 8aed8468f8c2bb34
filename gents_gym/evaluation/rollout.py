"""Plays an agent in a vector environment, and returns a record with rewards and regrets."""

from __future__ import annotations

import copy
import inspect
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from gents_gym.checks import (
    InputError,
    TaskError,
    check_actions,
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_integer,
    check_played,
)
from gents_gym.construct import get_agent, get_policy
from gents_gym.envs.feedback import LATE, read_feedback
from gents_gym.envs.feedback import observed_outcomes as observed_outcomes
from gents_gym.evaluation.environments import check_observations, make_envs
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.likelihoods import BERNOULLI
from gents_gym.randomness import stream
from gents_gym.types import (
    Agent,
    ChoosesModel,
    LateAgent,
    PolicyClass,
    Privileged,
    RandomisedAgent,
    TaskInfo,
    Tasks,
    identity,
)
from gents_gym.words import count

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

QUANTILES = {"median": 0.5, "q90": 0.9, "q99": 0.99, "q10": 0.1, "q01": 0.01}  # the last two are the rewards' bad tail
SUM_TOLERANCE = 1e-6  # tolerance for probabilities: agents may compute them in single precision
TASKS = 100  # tasks of an environment given by its id
MOST_BEST_FITS = 64  # number of blocks of tasks for which the oracle's actions are kept


@dataclass(frozen=True, eq=False)
class Rollout:
    """What happened in B tasks, step by step; after a task's end, rewards and regrets are NaN and actions -1."""

    actions: np.ndarray  # (B, T)
    rewards: np.ndarray  # (B, T)
    regret: dict[str, np.ndarray] = field(default_factory=dict)  # by name, (B, T) per step; {} without tables
    indices: tuple[int, ...] = ()  # the tasks' indices in their stream
    privileged: bool = False  # whether the agent used information that agents may not have
    seconds: float = math.nan  # total seconds of the agent itself; they differ from run to run
    tasks: tuple[str, ...] = ()  # identifies the tasks: the sha256 of each block, or its stream if there are no tables
    # Probabilities of the played actions, (B, T), if requested; NaN after the end.
    propensities: np.ndarray | None = None
    remarks: tuple[str, ...] = ()  # what a reader should know about the agent's model

    def cumulative(self, name: str) -> np.ndarray:
        """Return a regret ("oracle", "expected", "best") or "reward" summed up to each step, (B, T)."""
        check_choice("measure", name, ("reward", *self.regret))
        steps = self.rewards if name == "reward" else self.regret[name]
        return np.nancumsum(steps, axis=1)

    def curve(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean over tasks and its standard error at each step, (T,) each; the error of one task is NaN."""
        return _mean_and_error(self.cumulative(name))

    @property
    def seconds_per_decision(self) -> float:
        """The agent's own time per decision of one task."""
        return float(self.seconds / (self.actions >= 0).sum())

    def summary(self) -> dict[str, dict[str, float]]:
        """Return, for the reward and each regret, mean, s.e., median, 90 % and 99 % quantile of the tasks' totals.

        For the reward, the bad tail is the lower one: ``q10`` and ``q01``.
        """
        return {name: summarize(self.cumulative(name)[:, -1]) for name in ("reward", *self.regret)}

    def to_pandas(self, steps: bool = False) -> pd.DataFrame:
        """Return a data frame with a row for each task: its index, its total reward and its total regrets.

        Args:
            steps: Return a row for each decision of each task instead, with ``step``, from 1, and ``action``.
        """
        from gents_gym.evaluation.frames import record_frame  # pandas is optional

        return record_frame(self, steps)

    def plot(self, ax: Axes | None = None, measure: str | None = None, label: str | None = None) -> Axes:
        """Draw the cumulative regret, mean over tasks with a band of ±1 s.e., and return the axes.

        Args:
            ax: Matplotlib axes to draw into; None: a new pyplot figure.
            measure: "oracle", "expected", "best" or "reward"; None: the regret that matters most.
            label: The curve's name in a legend.
        """
        from gents_gym.evaluation.pictures import plot_record  # Matplotlib is heavy

        return plot_record(self, ax, measure, label)

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {found['mean']:.1f}" for name, found in self.summary().items())
        known = ", privileged" if self.privileged else ""
        notes = "".join(f"; {remark}" for remark in self.remarks)
        size = f"{count(len(self.actions), 'task')} of {count(self.actions.shape[1], 'decision')}"
        return f"Rollout({size}{known}; per task: {means}{notes})"

    def _repr_html_(self) -> str:
        from gents_gym.evaluation.frames import record_html  # not needed to play

        return record_html(self)


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_tasks = len(values)
    spread = values.std(axis=0, ddof=1) if n_tasks > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), spread / np.sqrt(n_tasks)


def summarize(totals: np.ndarray) -> dict[str, float]:
    """Return mean, s.e., median and the quantiles of both tails of per-task totals (B,)."""
    mean, error = _mean_and_error(totals)
    quantiles = dict(zip(QUANTILES, np.quantile(totals, [*QUANTILES.values()]), strict=True))
    return {name: float(value) for name, value in {"mean": mean, "se": error, **quantiles}.items()}


def pad(record: Rollout, steps: int) -> Rollout:
    """Return the record extended to this many steps; the added steps are as after a task's end."""

    def longer(array: np.ndarray, value: float) -> np.ndarray:
        return np.pad(array, ((0, 0), (0, steps - array.shape[1])), constant_values=value)

    regret = {name: longer(array, np.nan) for name, array in record.regret.items()}
    told = None if record.propensities is None else longer(record.propensities, np.nan)
    actions, rewards = longer(record.actions, -1), longer(record.rewards, np.nan)
    return replace(record, actions=actions, rewards=rewards, regret=regret, propensities=told)


def join(parts: Sequence[Rollout]) -> Rollout:
    """Return one record of the tasks of all ``parts``, in order; shorter parts end earlier."""
    parts = [pad(part, max(part.actions.shape[1] for part in parts)) for part in parts]
    propensities = [part.propensities for part in parts if part.propensities is not None]
    return Rollout(
        np.concatenate([part.actions for part in parts]),
        np.concatenate([part.rewards for part in parts]),
        {name: np.concatenate([part.regret[name] for part in parts]) for name in parts[0].regret},
        tuple(index for part in parts for index in part.indices),
        any(part.privileged for part in parts),
        sum(part.seconds for part in parts),
        tuple(block for part in parts for block in part.tasks),
        np.concatenate(propensities) if len(propensities) == len(parts) else None,
        tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
    )


def rollout(
    envs: VectorEnv[Any, Any, Any] | str,
    agent: Agent | type[Agent] | str,
    seed: int = 0,
    oracle: str | PolicyClass | None = None,
    *,
    tasks: int | None = None,
    indices: Sequence[int] | None = None,
    max_steps: int | None = None,
    on_step: Callable[[], None] | None = None,
    propensities: bool = False,
) -> Rollout:
    """Play one episode in each of B slots.

    Args:
        envs: A Gymnasium vector environment whose observations have "context" and "action_features", or the id of an
            environment, optionally with options. An environment that is not ours has no tables, so its record has only
            rewards.
        agent: Any :class:`Agent`, its class, or the id of one; a privileged one receives the tasks, and the record is
            marked. If outcomes arrive late, it must be a :class:`gents_gym.types.LateAgent`; if only some actions can
            be played, a :class:`gents_gym.types.MaskedAgent`.
        seed: The stream that tasks and the agent's randomness come from.
        oracle: The policy class that regret is measured against; None: the setting's own.
        tasks: The number of tasks to play, B, in an environment given by its id; None: the length of ``indices``, or
            100.
        indices: The tasks of the stream to play, B of them; None: the first B. An environment that is not ours is reset
            with ``seed + indices[0]``, which for ``SyncVectorEnv`` seeds the slots with seed + index.
        max_steps: Stop after this many decisions; None: at the end of the episodes.
        on_step: Called after every decision, for a progress bar.
        propensities: Ask the agent for the probability of each action that it plays; an agent without ``probabilities``
            is refused. This changes no action but adds to the agent's time.
    """
    if isinstance(envs, str):
        agent = get_agent("agent", agent)
        with closing(_make_envs(envs, tasks, indices)) as made:
            return _rollout(made, agent, seed, oracle, indices, max_steps, on_step, propensities)
    if not isinstance(envs, VectorEnv):
        rule = "envs must be a vector environment, as gym.make_vec makes, or the id of an environment"
        raise InputError(f"{rule}, got {envs!r}")
    if tasks is not None:
        raise InputError(f"tasks must go with an environment's id, got {tasks!r} with {envs.num_envs} slots")
    return _rollout(envs, agent, seed, oracle, indices, max_steps, on_step, propensities)


def _rollout(
    envs: VectorEnv[Any, Any, Any],
    agent: Agent | type[Agent] | str,
    seed: int,
    oracle: str | PolicyClass | None,
    indices: Sequence[int] | None,
    max_steps: int | None,
    on_step: Callable[[], None] | None,
    propensities: bool,
) -> Rollout:
    agent = get_agent("agent", agent)
    if check_flag("propensities", propensities):
        check_randomised(agent, repr(agent))
    check_observations(envs)
    n_tasks = envs.num_envs
    indices = range(n_tasks) if indices is None else indices
    if (n_indices := check_count("indices", indices)) != n_tasks:
        raise InputError(f"indices must name {count(n_tasks, 'task')}, one for each slot, got {n_indices}")
    indices = tuple(check_integer("indices", i, 0) for i in indices)
    max_steps = None if max_steps is None else check_integer("max_steps", max_steps, 1)
    if _has_tasks(envs):
        observation, shown = envs.reset(seed=seed, options={"task": list(indices)})
    else:
        observation, shown = envs.reset(seed=check_integer("seed", seed, 0) + indices[0])
    tasks = own_tasks(envs)
    if tasks is not None:
        chosen = tasks.oracle if oracle is None else oracle
        # A wrong one is reported before anything is played.
        get_policy("oracle", chosen, tasks.reward_fn, tasks.likelihood)
    privileged, named = isinstance(agent, Privileged), agent
    if isinstance(agent, Privileged):
        if tasks is None:
            raise InputError(f"agent {agent!r} needs the tasks' tables, and {envs!r} has none")
        agent = agent.for_tasks(tasks)
    info = task_info(envs, observation, shown, tasks)
    check_verbs(info, agent, propensities)
    clock = _Clock()
    clock.time(agent.reset, info, [stream(seed, "agent", index) for index in indices])
    actions, rewards, told = _play(envs, agent, info, observation, max_steps, on_step, clock, propensities)
    found = {} if tasks is None else regret(tasks, actions, _best_fit(tasks, oracle))
    which = f"seed {seed}" if tasks is None else tasks.content_hash
    remarks = agent_remarks(named, info, envs)
    return Rollout(actions, rewards, found, indices, privileged, clock.seconds, (which,), told, remarks)


def agent_remarks(agent: Agent, info: TaskInfo, envs: VectorEnv[Any, Any, Any]) -> tuple[str, ...]:
    """Return what a reader should know about the model that an agent plays in an environment, in a line each."""
    model = agent.model_for(info) if isinstance(agent, ChoosesModel) else getattr(agent, "model", None)
    return () if model is None else remarks_on(model, info, envs)


def remarks_on(model: Any, info: TaskInfo, envs: VectorEnv[Any, Any, Any]) -> tuple[str, ...]:
    """Return what a reader should know about a model that is played in an environment, in a line each."""
    from gents_gym.models.remarks import model_remarks  # torch; an agent with a model has loaded it already

    return model_remarks(model, info, getattr(envs.unwrapped, "distribution", None))


def _make_envs(env: str, tasks: int | None, indices: Sequence[int] | None) -> VectorEnv[Any, Any, Any]:
    """Return an environment of the test split with a slot for each task."""
    if indices is not None and tasks is None:
        tasks = check_count("indices", indices)
    return make_envs(env, check_integer("tasks", TASKS if tasks is None else tasks, 1))


_BEST_FITS: dict[tuple[str, str], np.ndarray] = {}  # by tasks and oracle, the latest


def _best_fit(tasks: Tasks, oracle: str | PolicyClass | None) -> np.ndarray:
    """Return the oracle's actions; agents that play the same tasks in one process share them."""
    oracle = oracle or tasks.oracle
    if not isinstance(oracle, str) or tasks.reward_fn is not identity:
        return oracle_actions(tasks, oracle)
    key = (tasks.content_hash, oracle)
    if key not in _BEST_FITS:
        if len(_BEST_FITS) == MOST_BEST_FITS:
            del _BEST_FITS[next(iter(_BEST_FITS))]
        _BEST_FITS[key] = oracle_actions(tasks, oracle)
    return _BEST_FITS[key]


class _Clock:
    """Measures the total time of calls."""

    seconds = 0.0

    def time(self, call: Callable[..., Any], *arguments: Any) -> Any:
        started = time.perf_counter()
        found = call(*arguments)
        self.seconds += time.perf_counter() - started
        return found


def check_verbs(info: TaskInfo, agent: Agent, propensities: bool = False) -> None:
    """Raise if the agent lacks a method that these tasks need."""
    if info.late and not isinstance(agent, LateAgent):
        raise InputError(f"agent must have observe_late(feedback) if outcomes arrive late, got {agent!r}")
    verbs = ("act", "probabilities") if propensities else ("act",)
    for verb in verbs if info.masked else ():
        if "available" not in inspect.signature(getattr(agent, verb)).parameters:
            rule = f"agent must have {verb}(context, available) if only some actions are available"
            raise InputError(f"{rule}, got {agent!r}")


def _has_tasks(envs: VectorEnv[Any, Any, Any]) -> bool:
    return hasattr(type(envs.unwrapped), "tasks")


def own_tasks(envs: VectorEnv[Any, Any, Any]) -> Tasks | None:
    """Return the tasks that are being played; None if the environment is not ours."""
    return envs.unwrapped.tasks if _has_tasks(envs) else None  # type: ignore[attr-defined]


def task_info(envs: VectorEnv[Any, Any, Any], observation: Any, shown: dict[str, Any], tasks: Tasks | None) -> TaskInfo:
    """Return what an agent may know: what reset shows, and what the tasks declare."""
    features = observation["action_features"].copy()  # (B, A, F); an environment may reuse its buffers
    horizon = envs.spec.max_episode_steps if envs.spec and tasks is None else None
    return TaskInfo(
        action_features=features,
        n_actions=int(features.shape[1]),
        context_dim=int(observation["context"].shape[1]),
        horizon=horizon if tasks is None else tasks.horizon,
        reward_fn=identity if tasks is None else tasks.reward_fn,
        texts=list(shown["texts"]) if "texts" in shown else None,
        space=None if tasks is None else tasks.space,
        likelihood=BERNOULLI if tasks is None else tasks.likelihood,
        truth=None if tasks is None else tasks.known_truth,
        known_contexts=None if tasks is None else tasks.known_contexts,
        late=bool(envs.metadata.get(LATE)),
        masked="available" in observation,
    )


def _play(
    envs: VectorEnv[Any, Any, Any],
    agent: Agent,
    info: TaskInfo,
    observation: Any,
    max_steps: int | None,
    on_step: Callable[[], None] | None,
    clock: _Clock,
    propensities: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the actions, the rewards and, if requested, the actions' probabilities, (B, t) each."""
    live = np.ones(envs.num_envs, np.bool_)
    late = agent if info.late and isinstance(agent, LateAgent) else None
    actions: list[np.ndarray] = []
    rewards: list[np.ndarray] = []
    told: list[np.ndarray] = []
    while live.any() and len(actions) != max_steps:
        context = observation["context"].copy()  # an environment may reuse its buffers
        available = (observation["available"].astype(np.bool_),) if info.masked else ()
        chances = clock.time(agent.probabilities, context, *available) if propensities else None  # type: ignore[attr-defined]
        chances = copy.copy(chances)  # an agent may reuse its array
        action = check_actions(clock.time(agent.act, context, *available), len(info), info.n_actions)
        for mask in available:
            check_played(action, mask | ~live[:, None])
        if propensities:
            told.append(np.where(live, played_probabilities(chances, action, info.n_actions), np.nan))
        observation, reward, terminated, truncated, step_info = envs.step(action)
        actions.append(np.where(live, action, -1))  # before observe, because an agent may reuse its array
        rewards.append(np.where(live, reward, np.nan))
        if late is not None:
            clock.time(late.observe_late, read_feedback(step_info, live))
        elif "feedback" in step_info:
            raise InputError(f"envs with info['feedback'] must have metadata[{LATE!r}]=True, got {envs!r}")
        else:
            clock.time(agent.observe, context, action, observed_outcomes(step_info, reward))
        live &= ~(terminated | truncated)
        if live.any() and not live.all() and envs.metadata.get("autoreset_mode") is AutoresetMode.DISABLED:
            raise InputError("episodes must end together if envs do not reset by themselves (autoreset DISABLED)")
        if on_step is not None:
            on_step()
    return np.stack(actions, axis=1), np.stack(rewards, axis=1), np.stack(told, axis=1) if told else None


def check_randomised(agent: Agent, name: str) -> None:
    """Raise unless the agent can report its action probabilities."""
    if not isinstance(agent, RandomisedAgent):
        raise InputError(f"propensities need agents with probabilities(context), which agent {name} does not have")


def played_probabilities(probabilities: Any, action: np.ndarray, n_actions: int) -> np.ndarray:
    """Check that the rows of (B, A) are distributions; return the probabilities of the played actions (B,)."""
    name, shape = "what the agent's probabilities returns", (len(action), n_actions)
    chances = check_array(name, probabilities, "(B, A)", shape, np.float64, per_task=1)
    wrong = (chances < 0).any(axis=1) | (np.abs(chances.sum(axis=1) - 1) > SUM_TOLERANCE)
    if wrong.any():
        i = int(wrong.argmax())
        raise TaskError(f"{name} must be at least 0 and sum to 1 over actions, got {chances[i]}", i)
    played: np.ndarray = chances[np.arange(len(action)), action]
    if not played.all():
        i = int(played.argmin())
        raise TaskError(f"{name} must be above 0 for the action that is played, got 0 for action {action[i]}", i)
    return played
