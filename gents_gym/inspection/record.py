"""Plays one task, then walks through it again beside a belief of its own, and records what was believed.

The agent plays first, alone, as in an evaluation. Afterwards its twin and a belief with random numbers of its own are
shown the same rows, so nothing that is recorded can change what was played.

Sizes: S decisions, A actions, D context size, M draws, W rows of a window, G places along an axis of the map.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gents_gym.agents.bayes_ucb import quantiles
from gents_gym.agents.on_model import BeliefHolder
from gents_gym.checks import InputError, check_flag, check_integer
from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.rollout import own_tasks, remarks_on, rollout, task_info
from gents_gym.inspection.reasons import Reason, Twin, make_twin
from gents_gym.randomness import stream
from gents_gym.types import Agent, Completion, Privileged, Resolves, Selective, TaskInfo, Tasks

STEPS = 40  # decisions, if the task has so many
BEFORE, AFTER = 15, 8  # rows of the table that are shown around the current one
PLACES = 25  # G
TAIL = 0.05  # of a mean reward's distribution on each side of its interval


@dataclass(frozen=True, eq=False)
class Step:
    """What was believed at one decision, before its action was played."""

    first: int  # the first row of the window
    contexts: np.ndarray  # of the window's rows in one drawn table, (W, D)
    draws: np.ndarray  # outcomes in completed tables, (M, W, A)
    own: np.ndarray | None  # those in the first table that the agent drew, (W, A), NaN in cells that it did not draw
    expected: np.ndarray  # mean rewards, (A,)
    interval: np.ndarray | None  # their quantiles, (2, A); None: the model has none
    reason: Reason
    best: np.ndarray | None  # the action of the highest prediction at each place, (G·G,)
    text: str  # what was played and why


@dataclass(frozen=True, eq=False)
class Inspection:
    """One task as it was played, and what was believed at each decision."""

    env: str
    agent: str
    model: str
    seed: int
    task: int
    info: TaskInfo
    tasks: Tasks  # privileged
    privileged: bool  # whether the agent knew what no agent may know
    policy: str  # the policy class that the agent fits, or ""
    label: str  # what the agent's scores are, or ""
    actions: np.ndarray  # (S,)
    rewards: np.ndarray  # (S,)
    truth: bool  # whether the page shows what no agent may know
    dims: tuple[int, int] | None  # context entries of the map; None: contexts have one
    axes: np.ndarray | None  # the places along them, (2, G)
    remarks: tuple[str, ...] = ()  # what a reader should know about the model
    steps: list[Step] = field(default_factory=list)

    @property
    def outcomes(self) -> np.ndarray:
        """What was observed, (S,)."""
        return np.asarray(self.tasks.outcomes[0][np.arange(len(self.actions)), self.actions])


def inspect_task(
    env: str = "gents_gym/Synthetic-v0",
    agent: str = "ts-gen",
    *,
    task: int = 0,
    seed: int = 0,
    steps: int | None = None,
    model: str | None = None,
    dims: Sequence[int] | None = None,
    draws: int = 8,
    truth: bool = False,
    on_step: Callable[[], None] | None = None,
) -> Inspection:
    """Play a task of the test split and record what is believed at each decision.

    Args:
        env: One of our environments, options behind its id.
        agent: An agent's id, options behind it.
        task: The task's number in the stream.
        seed: The stream of tasks, and of the agent's randomness.
        steps: Decisions; None: 40, or the horizon if that is shorter.
        model: The model whose belief is shown; None: the agent's.
        dims: Two context entries, the axes of the policy's map; None: the first two.
        draws: Completed tables that are shown.
        truth: Whether to show the true outcomes of missing cells and the true mean rewards.
        on_step: Called after every decision that is played and every one that is recorded: twice ``steps`` times.
    """
    check_integer("task", task, 0)
    check_integer("draws", draws, 1)
    check_flag("truth", truth)
    playing, second = make_agent(agent), make_agent(agent)
    shown_model = find_model(agent, playing, model)
    with closing(make_envs(env, 1)) as envs:
        observation, shown = envs.reset(seed=check_integer("seed", seed, 0), options={"task": [task]})
        tasks = own_tasks(envs)
        if tasks is None:
            raise InputError(f"env must be one of gents_gym's, whose tasks have tables, got {env!r}")
        info = task_info(envs, observation, shown, tasks)
        if info.late or info.masked:
            rule = "env must show outcomes at once and let every action be played, to be inspected"
            raise InputError(f"{rule}, got {env!r} with {'late outcomes' if info.late else 'actions that come and go'}")
        n_steps = check_steps(steps, tasks.horizon)
        axes = make_axes(check_dims(dims, info.context_dim), tasks.contexts[0, :n_steps])
        if isinstance(second, Privileged):
            second = second.for_tasks(tasks)
        if isinstance(second, Selective):
            second.check(info)
        held = BeliefHolder(shown_model, info, [stream(seed, "inspection", task)])
        remarks = remarks_on(shown_model, info, envs)
        record = rollout(envs, playing, seed, indices=[task], max_steps=n_steps, on_step=on_step)
    policy = second.resolve(info) if isinstance(second, Resolves) else ""
    twin = make_twin(second, info, [stream(seed, "agent", task)])
    found = Inspection(
        env, agent, str(shown_model), seed, task, info, tasks, record.privileged, policy, twin.label,
        record.actions[0], record.rewards[0], truth, *axes, remarks,
    )  # fmt: skip
    for t in range(n_steps):
        found.steps.append(_record(found, held, twin, t, draws))
        if on_step is not None:
            on_step()
    return found


def find_model(spec: str, agent: Agent, model: str | None) -> Any:
    """Return the named model or the agent's own. Raises if there is none."""
    found = getattr(agent, "model", None) if model is None else model
    if found is None:
        raise InputError(
            f"agent must name its model, got {spec!r}, which does not: name one by --model, and its belief is shown"
        )
    return found


def check_steps(steps: int | None, horizon: int) -> int:
    """Return the number of decisions. Raises if the task has fewer."""
    if steps is None:
        return min(STEPS, horizon)
    if check_integer("steps", steps, 1) > horizon:
        raise InputError(f"steps must be at most the horizon, {horizon}, got {steps}")
    return steps


def check_dims(dims: Sequence[int] | None, size: int) -> tuple[int, int] | None:
    """Return two entries of contexts of ``size`` entries, the first two if None is given; None if there is only one."""
    if dims is None:
        return (0, 1) if size > 1 else None
    if len(dims) != 2 or dims[0] == dims[1]:
        raise InputError(f"dims must be two different entries of the context, got {' '.join(map(str, dims))}")
    first, second = (check_integer("dims", dim, 0) for dim in dims)
    if max(first, second) >= size:
        raise InputError(f"dims must be below the context size, {size}, got {max(first, second)}")
    return first, second


def make_axes(dims: tuple[int, int] | None, contexts: np.ndarray) -> tuple[tuple[int, int] | None, np.ndarray | None]:
    """Return the dims and places (2, G) along them that cover contexts (S, D)."""
    if dims is None:
        return None, None
    seen = contexts[:, dims].T  # (2, S)
    low, high = seen.min(axis=1), seen.max(axis=1)
    margin = np.where(high > low, 0.1 * (high - low), 1.0)
    return dims, np.linspace(low - margin, high + margin, PLACES).T.astype(np.float32)


def make_places(found: Inspection, context: np.ndarray) -> np.ndarray | None:
    """Return the map's contexts (1, G·G, D), which are the current one (1, D) but for the two entries; rows go up."""
    if found.dims is None or found.axes is None:
        return None
    places = np.repeat(context, PLACES * PLACES, axis=0)  # (G·G, D)
    across, up = np.meshgrid(*found.axes)
    places[:, found.dims[0]], places[:, found.dims[1]] = across.ravel(), up.ravel()
    return places[None]


def _record(found: Inspection, held: BeliefHolder, twin: Twin, t: int, draws: int) -> Step:
    """Return what was believed at decision t, and let belief and twin learn its outcome."""
    context = found.tasks.contexts[:, t].copy()  # (1, D)
    places = make_places(found, context)
    expected, variance = held.expected(context), held.belief.variance(context)
    interval = None if variance is None else _interval(expected[0], np.asarray(variance)[0], found.info)
    best = None if places is None else np.asarray(held.belief.expected(places))[0].argmax(axis=-1)  # (G·G,)
    tables = held.belief.complete(context, None, draws)
    reason = twin.explain(context, places)
    first, end = max(0, t - BEFORE), min(t + 1 + AFTER, found.tasks.horizon)
    own = None if reason.tables is None else _drawn_cells(reason.tables, first, end)
    source = tables if reason.tables is None or reason.tables.contexts.shape[2] < end else reason.tables
    text = _say(found, t, expected[0], reason, twin)
    action, outcome = found.actions[[t]], found.outcomes[[t]]
    held.observe(context, action, outcome)
    twin.observe(context, action, outcome)
    rows = source.contexts[0, 0, first:end]
    return Step(first, rows, tables.outcomes[0, :, first:end], own, expected[0], interval, reason, best, text)


def _drawn_cells(tables: Completion, first: int, end: int) -> np.ndarray:
    """Return the outcomes in the first table, (W, A), NaN in cells that do not count or lie behind its end."""
    cells = np.full((end - first, tables.outcomes.shape[3]), np.nan)
    drawn = tables.outcomes[0, 0, first:end].astype(np.float64)
    if tables.weights is not None:
        drawn = np.where(tables.weights[0, 0, first:end] > 0, drawn, np.nan)
    cells[: len(drawn)] = drawn
    return cells


def _interval(mean: np.ndarray, variance: np.ndarray, info: TaskInfo) -> np.ndarray:
    """Return the quantiles that leave a tail on each side, (2, A)."""
    support = info.likelihood.support
    rewards = None if support is None else np.asarray(info.reward_fn(support), np.float64)
    return np.stack([quantiles(mean, variance, level, rewards) for level in (TAIL, 1 - TAIL)])


def _say(found: Inspection, t: int, expected: np.ndarray, reason: Reason, twin: Twin) -> str:
    """Return in a few words what was played and why."""
    action, sentence = int(found.actions[t]), twin.sentence
    if reason.scores is not None:
        score = float(reason.scores[action])
        if twin.plays_highest and score < reason.scores.max():
            sentence = "its score, {score}, is not the highest"
        value = 0.0 if reason.predictions is None else score - float(reason.predictions[action])
        sentence = sentence.format(score=f"{score:.3f}", value=f"{value:.3f}")
    best = int(expected.argmax())
    other = f" The highest prediction is that of action {best}, {expected[best]:.3f}." if best != action else ""
    return f"Plays action {action}: {sentence}.{other}"
