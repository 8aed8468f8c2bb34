"""TS-Gen with p* itself, for settings with hidden features: it knows φ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.agents.ahead import DEFAULT_VOTES
from gents_gym.agents.base import Resettable
from gents_gym.agents.ts_gen import TSGen
from gents_gym.checks import InputError
from gents_gym.types import Feedback, PolicyClass, TaskInfo, Tasks


@dataclass
class ExactTwin(Resettable):
    """TS-Gen that knows φ_Z and φ_X, and so the true prior of every action; it sees only the cells that others see.

    It is privileged, so it must be given the tasks. In the synthetic setting nothing is hidden, and it equals
    ``ts-gen(model=exact)``.
    """

    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = None  # imputed rows per action; None: the whole table
    samples: int = 1  # completed tables per decision
    votes: int = DEFAULT_VOTES  # decisions that the action probabilities are estimated from, the played one included
    tasks: Tasks | None = None  # the tasks it knows, given by for_tasks

    def __post_init__(self) -> None:
        """Check the options."""
        self._agent = TSGen("exact", self.policy, self.m, self.samples, votes=self.votes)

    def for_tasks(self, tasks: Tasks) -> "ExactTwin":
        """Return the twin that knows the features of ``tasks``."""
        return replace(self, tasks=tasks)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start the B tasks."""
        if self.tasks is None:
            raise InputError("exact-twin needs the tasks' hidden features: use for_tasks(tasks), or rollout")
        if self.tasks.truth is None:
            raise InputError("exact-twin needs tasks that carry their truth, which files do not keep, got None")
        hidden = self.tasks.hidden_features
        info = replace(info, truth=self.tasks.truth)
        self._agent.reset(info if hidden is None else replace(info, action_features=hidden), rngs)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,)."""
        return self._agent.act(context, available)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the vote share of each action, (B, D) to (B, A), as TS-Gen does."""
        return self._agent.probabilities(context, available)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        self._agent.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Add what arrived to the history."""
        self._agent.observe_late(feedback)
