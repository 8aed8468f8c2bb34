"""TS-Gen or greedy with p* itself, for settings with hidden features: it knows φ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.agents.ahead import DEFAULT_VOTES
from gents_gym.agents.base import Resettable
from gents_gym.agents.greedy import Greedy
from gents_gym.agents.ts_gen import TSGen
from gents_gym.checks import InputError, check_flag
from gents_gym.types import Feedback, PolicyClass, TaskInfo, Tasks


@dataclass
class ExactTwin(Resettable):
    """An agent that knows φ_Z and φ_X, and so the true prior of every action; it sees only the cells that others see.

    It is privileged, so it must be given the tasks. In the synthetic setting nothing is hidden, and it equals
    ``ts-gen(model=exact)``, or ``greedy(model=exact)``.
    """

    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = None  # imputed rows per action; None: the whole table
    samples: int = 1  # completed tables per decision
    votes: int = DEFAULT_VOTES  # decisions that the action probabilities are estimated from, the played one included
    greedy: bool = False  # play the action with the highest prediction of p*; the options above then have no effect
    tasks: Tasks | None = None  # the tasks it knows, given by for_tasks

    def __post_init__(self) -> None:
        """Check the options."""
        ts_gen = TSGen("exact", self.policy, self.m, self.samples, votes=self.votes)
        self._agent: Greedy | TSGen = Greedy("exact") if check_flag("greedy", self.greedy) else ts_gen

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
        """Return the action probabilities, (B, D) to (B, A); of TS-Gen they are vote shares."""
        return self._agent.probabilities(context, available)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        self._agent.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Add what arrived to the history."""
        self._agent.observe_late(feedback)
