"""The oracle's policy if actions come and go, fitted to the actions that can be played at some decision."""

from dataclasses import dataclass

import numpy as np

from gents_gym.types import Policy, PolicyClass, Tasks


@dataclass(frozen=True, eq=False)
class PoolPolicy:
    """Policies for some columns of a pool: an action that can never be played has the score -inf."""

    policy: Policy
    columns: np.ndarray  # (B, n)
    ever: np.ndarray  # (B, A): which actions can be played at some decision

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        found = self.policy.scores(context)
        columns, ever = (self.columns, self.ever) if found.ndim == 2 else (self.columns[:, None], self.ever[:, None])
        scores = np.full((*found.shape[:-1], self.ever.shape[1]), -np.inf)
        np.put_along_axis(scores, np.broadcast_to(columns, found.shape), found, axis=-1)
        return np.where(ever, scores, -np.inf)


def fit_tasks(policy_class: PolicyClass, tasks: Tasks) -> Policy:
    """Return π*(·; τ): policies fitted to the tasks' whole tables, for actions that can be played at some decision."""
    if tasks.available is None:
        return policy_class.fit(tasks.contexts, tasks.outcomes)
    ever: np.ndarray = np.any(tasks.available, axis=1)  # (B, A)
    most = int(ever.sum(axis=1).max())
    columns = np.argsort(~ever, axis=1, kind="stable")[:, :most]  # (B, n): these first, then others as pads
    outcomes = np.take_along_axis(tasks.outcomes, columns[:, None], axis=2)
    return PoolPolicy(policy_class.fit(tasks.contexts, outcomes), columns, ever)
