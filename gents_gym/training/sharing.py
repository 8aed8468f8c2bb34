"""Learns what actions of a task share: a joint model's task and row effects, from whole tasks."""

import numpy as np
import torch
from torch import Tensor

from gents_gym.checks import InputError
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.joint import JointModel
from gents_gym.models.joint_posterior import joint_prior
from gents_gym.training.data import RowSets

TASKS, ACTIONS, CELLS = 32, 10, 80  # most tasks per step, and most actions and rows of each
STEPS, RATE, FIRST = 60, 0.3, -1.0  # Adam's steps and learning rate, and the initial logit of all shares
ROW_TASKS = 100  # most tasks that the row effect is estimated from


def fit_sharing(model: JointModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Learn the model's task effect from the sequence loss of whole tasks, and estimate its row effect."""
    if rows.tasks is None:
        raise InputError("rows of a joint model's training must know their tasks, got rows of single actions")
    tasks = [np.flatnonzero(rows.tasks == task) for task in np.unique(rows.tasks)]
    tasks = [actions for actions in tasks if len(actions) > 1]
    if not tasks:
        raise InputError("rows must have tasks of two actions or more for a joint model, got none")
    logits = torch.full((model.size,), FIRST, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        optimizer.zero_grad()
        some = rng.choice(len(tasks), min(TASKS, len(tasks)), replace=False)
        sequences = _sequences(model, rows, [rng.permutation(tasks[i])[:ACTIONS] for i in some], rng)
        loss = -joint_log_prob(model, logits.sigmoid(), *sequences).sum() / sequences[-1].sum()
        loss.backward(inputs=[logits])  # type: ignore[no-untyped-call]
        optimizer.step()
    model.share = logits.detach().sigmoid()
    if rows.likelihood == GAUSSIAN:
        model.row_effect = torch.tensor(estimate_row_effect(model, rows, tasks[:ROW_TASKS]))


def joint_log_prob(
    model: JointModel, share: Tensor, along: Tensor, level: Tensor, owners: Tensor, outcomes: Tensor, weights: Tensor
) -> Tensor:
    """Return log-probabilities of the outcomes of whole tasks, each given those before it, (n, R).

    Args:
        model: The model; its own task effect is ignored.
        share: s, (K,).
        along: Lᵀx of each row's action, (n, R, K).
        level: x·μ of each row's action, (n, R).
        owners: The index of that action in its task, (n, R).
        outcomes: (n, R).
        weights: 0 for padding rows, (n, R), from which nothing is learned.
    """
    n_tasks, n_rows, size = along.shape
    n_actions = int(owners.max()) + 1
    mean, covariance = joint_prior(n_tasks, n_actions, size, torch.float32)
    found = []
    for t in range(n_rows):
        own = torch.zeros(n_tasks, n_actions, size)
        own[torch.arange(n_tasks), owners[:, t]] = 1.0
        parts = (share.sqrt() * along[:, t], level[:, t, None])
        rest = (own * ((1 - share).sqrt() * along[:, t])[:, None]).reshape(n_tasks, -1)
        loads = torch.cat([*parts, rest], 1)
        mean, covariance, predicted = model.form.absorb(mean, covariance, loads, outcomes[:, t], weights[:, t])
        found.append(model.form.log_prob(predicted, outcomes[:, t]))
    return torch.stack(found, 1) * weights


def _sequences(
    model: JointModel, rows: RowSets, tasks: list[np.ndarray], rng: np.random.Generator
) -> tuple[Tensor, ...]:
    """Return random rows of tasks, given as lists of actions, in the order of decisions, for ``joint_log_prob``."""
    assert rows.decisions is not None
    along, owners = np.zeros((len(tasks), CELLS, model.size), np.float32), np.zeros((len(tasks), CELLS), np.int64)
    level, outcomes, weights = np.zeros((3, len(tasks), CELLS), np.float32)
    for i, actions in enumerate(tasks):
        cells = np.concatenate([np.arange(rows.offsets[a], rows.offsets[a + 1]) for a in actions])
        own = np.repeat(np.arange(len(actions)), np.diff(rows.offsets)[actions])
        chosen = rng.permutation(len(cells))[:CELLS]
        chosen = chosen[np.argsort(rows.decisions[cells[chosen]], kind="stable")]
        with torch.no_grad():
            mean, root, _ = model.prior(torch.from_numpy(rows.action_features[actions]))
            x = model.rows(torch.from_numpy(rows.contexts[cells[chosen]]))  # (R, K)
        n, which = len(chosen), own[chosen]
        along[i, :n] = (x[:, None] @ root[which])[:, 0].numpy()
        level[i, :n] = (x * mean[which]).sum(1).numpy()
        owners[i, :n], outcomes[i, :n], weights[i, :n] = which, rows.outcomes[cells[chosen]], 1
    return tuple(torch.from_numpy(part) for part in (along, level, owners, outcomes, weights))


def estimate_row_effect(model: JointModel, rows: RowSets, tasks: list[np.ndarray]) -> float:
    """Return the correlation of two actions' least-squares residuals in the same decision; 0 if there are none.

    It compares actions of a task that were observed in the same decisions, which whole tables have and logs lack.
    """
    assert rows.decisions is not None
    products, squares = 0.0, 0.0
    for actions in tasks:
        spans = [slice(rows.offsets[a], rows.offsets[a + 1]) for a in actions]
        first = rows.decisions[spans[0]]
        spans = [span for span in spans if np.array_equal(rows.decisions[span], first)]
        if len(spans) < 2 or len(first) <= model.size:
            continue
        with torch.no_grad():
            x = model.rows(torch.from_numpy(rows.contexts[spans[0]])).numpy().astype(np.float64)  # (R, K)
        y = np.stack([rows.outcomes[span] for span in spans], axis=1).astype(np.float64)  # (R, A)
        left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        squares += (left**2).mean()
        products += ((left.sum(axis=1) ** 2 - (left**2).sum(axis=1)) / (len(spans) * (len(spans) - 1))).mean()
    return float(np.clip(products / squares, 0, 0.99)) if squares else 0.0
