"""The oracle as an agent: it plays the policy fitted to the complete table, so its regret is zero by definition."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.agents.ahead import one_hot
from gents_gym.agents.base import Resettable
from gents_gym.checks import InputError
from gents_gym.construct import make_policy
from gents_gym.policies.pool import fit_tasks
from gents_gym.types import Feedback, Policy, TaskInfo, Tasks


@dataclass
class Oracle(Resettable):
    """Plays π*(·; τ), fitted to the tasks' whole tables. It is privileged, so it must be given the tasks."""

    policy: str | None = None  # policy class; None: the setting's own
    tasks: Tasks | None = None  # the tasks it knows, given by for_tasks

    def __post_init__(self) -> None:
        """Check the options."""
        if self.policy is not None:
            make_policy(self.policy)

    def for_tasks(self, tasks: Tasks) -> "Oracle":
        """Return the oracle of ``tasks``."""
        return Oracle(self.policy, tasks)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Fit the policy to the tasks' tables."""
        if self.tasks is None:
            raise InputError("oracle needs the tasks' tables: use for_tasks(tasks), or rollout on our environments")
        self._n_actions = info.n_actions
        policy_class = make_policy(self.policy or self.tasks.oracle, reward_fn=self.tasks.reward_fn)
        self._policy: Policy = fit_tasks(policy_class, self.tasks)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the fitted policy's actions (B,)."""
        scores = self._policy.scores(context)
        return scores.argmax(axis=1) if available is None else np.where(available, scores, -np.inf).argmax(axis=1)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return 1 for the fitted policy's action, (B, D) to (B, A)."""
        return one_hot(self.act(context, available), self._n_actions)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn nothing: it knows the table."""

    def observe_late(self, feedback: Feedback) -> None:
        """Learn nothing: it knows the table."""
