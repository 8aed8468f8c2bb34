"""What a sequence model believes of B·A actions: observations in, probabilities and states out."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gents_gym.agents.context_kernel import map_contexts
from gents_gym.agents.filter_kernel import absorb_filter
from gents_gym.checks import InputError, check_actions, check_array
from gents_gym.models.filter import FilterModel
from gents_gym.models.load import load_fitting_model, model_folders
from gents_gym.models.sequence import SequenceModel
from gents_gym.types import TaskInfo


def check_model(model: Any) -> None:
    """Raise where a name stands for no model; it is loaded when tasks are faced."""
    if isinstance(model, str | Path):
        model_folders(model)
    elif not any(hasattr(model, verb) for verb in ("start", "impute")):
        raise InputError(f"model must be a bundled model's id, a folder or a model, got {model!r}")


def get_model(model: Any, action_dim: int, context_dim: int, space: str | None = None) -> Any:
    """Return the model that a name or a folder stands for, for tasks of these sizes; a model is returned as it is.

    One that was trained on embeddings of another space than the actions' is refused.
    """
    found = load_fitting_model(model, action_dim, context_dim) if isinstance(model, str | Path) else model
    if isinstance(found, SequenceModel):
        found.check_space(space)
    return found


class Belief:
    """The states of all actions' histories in one model; one observation per task is appended at a time."""

    def __init__(self, model: Any, info: TaskInfo) -> None:
        """Start with empty histories."""
        if isinstance(model, SequenceModel) and model.config.context_dim != info.context_dim:
            wanted, got = model.config.context_dim, info.context_dim
            raise InputError(f"contexts must have {wanted} entries for this model, got {got}")
        self.model = model
        self._info = info
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        with torch.no_grad():
            if isinstance(model, SequenceModel):  # task by task: products round differently for other numbers of rows
                states = [model.start(torch.tensor(task)) for task in features]
                self.state: Any = type(states[0])(*(torch.cat(part) for part in zip(*states, strict=True)))
            else:
                self.state = model.start(torch.tensor(features.reshape(-1, features.shape[2])))

    def probability(self, context: np.ndarray) -> np.ndarray:
        """Return P(Y=1) of every action, (B, D) to (B, A)."""
        with torch.no_grad():
            found = self.model.probability(self.state, self._each(context))
        return found.double().numpy().reshape(len(self._info), self._info.n_actions)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Append the played actions' outcomes, (B, D), (B,) and (B,)."""
        n_tasks, n_actions = len(self._info), self._info.n_actions
        action = check_actions(action, n_tasks, n_actions)
        outcome = check_binary(outcome, n_tasks)
        if type(self.model) is FilterModel:
            self._absorb(context, action, outcome)
            return
        where = torch.from_numpy(action[:, None] == np.arange(n_actions)).reshape(-1)
        each = torch.tensor(outcome).repeat_interleave(n_actions)
        with torch.no_grad():
            self.state = self.model.append(self.state, self._each(context), each, where)

    def _absorb(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Append in place, to the played actions alone: many small tensor operations in one."""
        context = check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim))
        rows = map_contexts(self.model, context)
        shape = (len(self._info), self._info.n_actions, -1)
        mean, covariance = self.state.mean.numpy(), self.state.covariance.numpy()
        action, outcome = action.copy(), outcome.copy()  # so that the kernel always meets the same kind of array
        absorb_filter(rows, action, outcome, mean.reshape(shape), covariance.reshape(*shape, mean.shape[1]))

    def _each(self, context: np.ndarray) -> torch.Tensor:
        """Return each task's context once per action, (B, D) to (B·A, D)."""
        context = check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim))
        return torch.tensor(context).repeat_interleave(self._info.n_actions, 0)


def check_binary(value: Any, n_tasks: int) -> np.ndarray:
    """Return ``value`` as outcomes (B,), or raise unless each is one that the models know: 0 or 1."""
    outcome = check_array("outcome", value, "(B,)", (n_tasks,))
    if not ((outcome == 0) | (outcome == 1)).all():
        bad = outcome[(outcome != 0) & (outcome != 1)][0]
        raise InputError(f"outcome must be 0 or 1 for this model, got {bad:g}")
    return outcome
