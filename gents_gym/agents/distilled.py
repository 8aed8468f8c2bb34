"""Plays as a small network that ``gents-gym distill`` trained to imitate a slower agent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gents_gym.agents.ahead import Ahead, draw_actions
from gents_gym.agents.available import Available, find_available, spread
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import BeliefHolder, first_task
from gents_gym.checks import InputError, check_rngs
from gents_gym.models.distilled import load_network, network_files, summarise
from gents_gym.models.load import check_model_name
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, TaskInfo


@dataclass
class Distilled(Resettable):
    """Draws actions from a network's probabilities, computed from the belief's predictions and variances."""

    path: str | Path  # a folder written by gents-gym distill
    model: str | Path | None = None  # a preset, or a trained model's id or folder; None: the model used in training
    horizon: int | None = None  # T, if the tasks do not specify it

    def __post_init__(self) -> None:
        """Load the network."""
        self._network = load_network(self.path)
        self._name = self._network.config.model if self.model is None else self.model
        if self.model is None and ":" in str(self._name):
            raise InputError(
                f"model must be given, because a file cannot name code: the network was trained on {self._name}"
            )
        check_model_name(self._name)

    @property
    def weight_files(self) -> list[Path]:
        """The files that determine what is played, for the records."""
        return network_files(self.path, self._name)

    def check(self, info: TaskInfo) -> None:
        """Raise unless model and network fit these tasks; only the first is tried."""
        first, rngs, context = first_task(info)
        trial = replace(self)
        trial.reset(first, rngs)
        trial.probabilities(context)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        if (horizon := info.horizon or self.horizon) is None:
            raise InputError("horizon must be known or given, as distilled(horizon=500), got None")
        if (size := self._network.config.context_dim) not in (0, info.context_dim):
            raise InputError(
                f"contexts must have {size} entries for the network in '{self.path}', got {info.context_dim}"
            )
        self._info, self._held = info, BeliefHolder(self._name, info, rngs)
        self._left = horizon
        self._chances = Ahead(self._predict)
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return actions (B,) drawn from the probabilities."""
        live = find_available(available, self._info)
        column = draw_actions(self._chances.take(context, live), self._uniform.next()[:, 0])
        return self._held.acts(context, column if live is None else live.at(column))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the network's probabilities, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return spread(self._chances.look(context, live), live)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._held.observe(context, action, outcome)
        self._left = max(self._left - 1, 1)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._held.observe_late(feedback)
        self._left = max(self._left - 1, 1)

    def _predict(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        config, mean = self._network.config, self._held.expected(context, live)
        variance = self._held.variance(context, live) if config.variance else None
        if config.variance and variance is None:
            raise InputError(f"model must give variances of its means for this network, got {self._name!r}")
        given = np.asarray(context, np.float64) if config.context_dim else None
        chances = self._network.probabilities(summarise(mean, variance, self._left, given))
        return chances if live is None else live.share(chances)
