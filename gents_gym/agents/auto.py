"""The agent ``auto`` plays the agent that ``gents-gym tune`` chose for such tasks on tasks that the model imagined."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL
from gents_gym.checks import InputError, check_integer
from gents_gym.construct import agent_ids, make_agent
from gents_gym.models.load import fitting_model
from gents_gym.models.tuned import check_law, find_tuned, tuned_entry, tuned_files
from gents_gym.specs import check_registered
from gents_gym.types import Agent, Feedback, RandomisedAgent, Resolves, Selective, TaskInfo


@dataclass
class Auto(Resettable):
    """Plays the agent that was tuned for this model, number of actions, horizon and source of future contexts."""

    model: str | Path | None = None  # a preset, a model's id or folder, or a folder of tune; None: what ``tuned`` names
    tuned: str | Path | None = None  # a tuned.json, or its folder; None: the one in the model's folder
    contexts: str | float | None = None  # where future contexts are drawn from, as in tune; None: the model's own
    horizon: int | None = None  # T, if the tasks do not specify it

    def __post_init__(self) -> None:
        """Check the options."""
        self._name, self._path = find_tuned(self.model, self.tuned, DEFAULT_MODEL)
        check_law(self.contexts)
        if self.horizon is not None:
            check_integer("horizon", self.horizon, 1)

    @property
    def weight_files(self) -> list[Path]:
        """The files that determine what is played, for the records."""
        return tuned_files(self._name, self._path)

    def resolve(self, info: TaskInfo) -> str:
        """Return the agent that plays these tasks, and the name of the policy class that it fits."""
        spec, agent = self._choose(info)
        return f"{spec}, {agent.resolve(info)}" if isinstance(agent, Resolves) else spec

    def check(self, info: TaskInfo) -> None:
        """Raise unless an agent is tuned for these tasks and can play them; only the first is tried."""
        agent = self._choose(info)[1]
        if isinstance(agent, Selective):
            agent.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks with the agent that was tuned for them."""
        self._agent = self._choose(info)[1]
        self._agent.reset(info, rngs)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the chosen agent's actions (B,)."""
        if available is None:
            return self._agent.act(context)
        agent: Any = self._agent  # one of ours, which all accept a mask
        chosen: np.ndarray = agent.act(context, available)
        return chosen

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the chosen agent's probabilities, (B, D) to (B, A)."""
        agent: Any = self._agent  # all of ours accept a mask
        if not isinstance(agent, RandomisedAgent):
            raise InputError(f"the tuned agent must have probabilities(context), got {type(agent).__name__}")
        chances: np.ndarray = agent.probabilities(context, *(() if available is None else (available,)))
        return chances

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Pass the outcomes on to the chosen agent."""
        self._agent.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Pass what arrived on to the chosen agent."""
        self._agent.observe_late(feedback)  # type: ignore[attr-defined]  # as all of ours have it

    def _choose(self, info: TaskInfo) -> tuple[str, Agent]:
        """Return the agent that was tuned for these tasks, and its spec."""
        folder, model = fitting_model(self._name, info)
        entry = tuned_entry(self._path, folder, model, info, self.horizon, self.contexts)
        spec = check_registered("agent", entry["agent"], agent_ids())
        return spec, make_agent(spec, model=model)
