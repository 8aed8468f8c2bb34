"""Compares the values of policies fitted to completed tables with that of the policy fitted to the true table."""

from collections.abc import Sequence

import numpy as np

from gents_gym.calibration.positions import Placed, place
from gents_gym.models.load import begin_belief
from gents_gym.types import Completion, Feedback, Model, PolicyClass, RewardFn, TaskInfo, Tasks


def policy_values(
    policy_class: PolicyClass, contexts: np.ndarray, outcomes: np.ndarray, reward_fn: RewardFn
) -> np.ndarray:
    """Return the mean reward, over a table's rows, of the policy fitted to it, (n, T, D) and (n, T, A) to (n,)."""
    played = policy_class.fit(contexts, outcomes).scores(contexts).argmax(axis=2)
    picked = np.take_along_axis(outcomes, played[..., None], axis=2)[..., 0]  # (n, T)
    return np.asarray(reward_fn(picked), np.float64).mean(axis=1)


def place_values(
    model: Model,
    tasks: Tasks,
    info: TaskInfo,
    policy_class: PolicyClass,
    steps: Sequence[int],
    draws: int,
    contexts: str | None,
    rngs: Sequence[np.random.Generator],
) -> Placed:
    """Return the position of the true table's value among M completed tables' values, after each number of decisions.

    Decisions so far were uniformly random, so every action is observed equally well.

    Args:
        model: The model.
        tasks: B tasks.
        info: What the model knows of them.
        policy_class: The class that is fitted to whole tables.
        steps: Numbers of decisions, in rising order.
        draws: M.
        contexts: Where imagined contexts come from.
        rngs: One generator per task.
    """
    every = np.arange(len(tasks))
    played: np.ndarray = np.stack([rng.integers(tasks.n_actions, size=steps[-1]) for rng in rngs])  # (B, t)
    uniform: np.ndarray = np.stack([rng.random(len(steps)) for rng in rngs])  # (B, S)
    belief = begin_belief(model, info, rngs)[1]
    true = policy_values(policy_class, tasks.contexts, tasks.outcomes, tasks.reward_fn)
    found: list[Placed] = []
    for t in range(steps[-1] + 1):
        if t in steps:
            tables = belief.complete(tasks.contexts[:, t], None, draws, contexts)
            drawn = _completed_values(policy_class, tables, tasks.reward_fn)
            found.append(place(true, drawn, uniform[:, len(found)]))
        if t < steps[-1]:
            belief.decide(tasks.contexts[:, t], played[:, t])
            outcome = tasks.outcomes[every, t, played[:, t]]
            belief.observe(Feedback(every, np.full_like(every, t), outcome))
    return Placed.stack(found)


def _completed_values(policy_class: PolicyClass, tables: Completion, reward_fn: RewardFn) -> np.ndarray:
    """Return the values of policies fitted to completed tables, (B, M)."""
    contexts, outcomes = (part.reshape(-1, *part.shape[2:]) for part in (tables.contexts, tables.outcomes))
    return policy_values(policy_class, contexts, outcomes, reward_fn).reshape(tables.outcomes.shape[:2])
