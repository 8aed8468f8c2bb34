"""Draws tables of outcomes from p_θ itself, with the expected rewards behind them."""

from collections.abc import Sequence

import numpy as np

from gents_gym.types import Belief, DrawsMeans, Feedback, Model, RewardFn, TaskInfo

CELLS = 1 << 19  # cells (task, row, action) whose means are learned at the same time: about 50 MB


def imagine_tables(
    model: Model,
    action_features: np.ndarray,
    contexts: np.ndarray,
    rngs: Sequence[np.random.Generator],
    *,
    reward_fn: RewardFn,
    space: str | None = None,
    further: int | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return outcomes drawn from p_θ and their expected rewards, (B, T, A) each.

    A model that draws outcomes from parameters gives the expectations itself. For any other model they are
    approximated: an action's mean is the belief's prediction after that action's whole column and ``further`` more
    rows, generated in contexts of the same task. More rows make it more accurate.

    Every table is completed separately, because library matrix products may round differently for another number of
    rows, and one flipped outcome changes all later ones.

    Args:
        model: p_θ.
        action_features: (B, A, F).
        contexts: (B, T, D).
        rngs: One generator per task.
        reward_fn: R.
        space: The space of the action features, if they are embeddings.
        further: Rows beyond the table that means are learned from; None: no means are computed.
    """
    n_rows, n_actions = contexts.shape[1], action_features.shape[1]
    size = max(1, CELLS // ((n_rows + (further or 0)) * n_actions))
    outcomes, means = [], []
    for first in range(0, len(rngs), size):
        part = slice(first, first + size)
        more = [rng.spawn(1)[0].integers(n_rows, size=further or 0) for rng in rngs[part]]  # tables do not depend on it
        rows = np.stack([np.concatenate([x, x[which]]) for x, which in zip(contexts[part], more, strict=True)])
        info = TaskInfo(
            action_features[part],
            n_actions,
            contexts.shape[2],
            rows.shape[1],
            reward_fn,
            space=space,
            likelihood=model.likelihood,
            known_contexts=rows,
        )
        tables, exact = _complete(model, info, rngs[part])
        outcomes.append(tables[:, :n_rows])
        if further is not None:
            means.append(_learn_means(model, info, rngs[part], tables, n_rows) if exact is None else exact[:, :n_rows])
    table = np.concatenate(outcomes) if outcomes else np.zeros((0, n_rows, n_actions), np.float32)
    if further is None:
        return table, None
    return table, np.concatenate(means).astype(np.float32) if means else table


def _complete(
    model: Model, info: TaskInfo, rngs: Sequence[np.random.Generator]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return completed empty tables (B, T, A), and their means if the model draws from parameters."""
    assert info.known_contexts is not None
    tables, means = [], []
    for i, rng in enumerate(rngs):
        belief, context = model.begin(info[i], [rng]), info.known_contexts[i : i + 1, 0]
        if isinstance(belief, DrawsMeans):
            table, mean = belief.complete_with_means(context, "given")
            means.append(mean)
        else:
            table = belief.complete(context, contexts="given")
        tables.append(table.outcomes[:, 0])  # (1, T, A)
    return np.concatenate(tables), np.concatenate(means) if means else None


def _learn_means(
    model: Model, info: TaskInfo, rngs: Sequence[np.random.Generator], tables: np.ndarray, n_rows: int
) -> np.ndarray:
    """Return predictions in the first rows' contexts after all rows of the tables, (B, T', A) to (B, T, A).

    Each action learns in its own copy of the task, so that a row takes one decision, not A.
    """
    assert info.known_contexts is not None
    n_tasks, n_all, n_actions = tables.shape
    copies = np.repeat(np.arange(n_tasks), n_actions)  # (B·A,)
    every, actions = np.arange(len(copies)), np.tile(np.arange(n_actions), n_tasks)
    belief: Belief = model.begin(info, rngs).fork(copies)
    for t in range(n_all):
        belief.decide(info.known_contexts[copies, t], actions)
        belief.observe(Feedback(every, np.full(len(every), t), tables[:, t].reshape(-1)))
    predicted = belief.expected(info.known_contexts[copies, :n_rows])  # (B·A, T, A)
    return predicted[every, :, actions].reshape(n_tasks, n_actions, n_rows).swapaxes(1, 2)
