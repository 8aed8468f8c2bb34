"""Imputation by a sequence model: histories and contexts in, completed tables out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from gents_gym.agents.belief import Belief
from gents_gym.agents.context_kernel import map_contexts
from gents_gym.agents.filter_kernel import impute_filter
from gents_gym.agents.paper_kernel import impute_paper
from gents_gym.checks import check_array, check_rngs
from gents_gym.models.filter import FilterModel
from gents_gym.models.paper import PaperModel
from gents_gym.types import History, TaskInfo


class AutoregressiveImputer:
    """Algorithm "Posterior sampling via autoregressive generation", for any sequence model.

    Of each action, what was observed comes first, then every missing outcome in the order of the rows, each drawn
    given all before it. The states after the observed rows are kept between calls, so a decision appends only
    what is new.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._belief: Belief | None = None
        self._features: np.ndarray | None = None  # of the tasks that the belief is of
        self._length = 0  # rows of the history in the belief
        self._seen: History | None = None  # that history

    def impute(
        self,
        history: History,
        contexts: np.ndarray,
        rngs: Sequence[np.random.Generator],
        past: bool = True,
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return a completed table (B, T', A).

        Args:
            history: What was observed, t rows; where it goes on from the last call's, only what is new is appended.
            contexts: (B, T', D).
            rngs: One generator per task; each gives T'·A uniform numbers.
            past: Whether the first t contexts are the history's own; if not, all are new.
            rows: The contexts as a built-in model's histories keep them, (B, T', K), where they are at hand.
        """
        belief = self._catch_up(history)
        n_tasks, n_actions = history.action_features.shape[:2]
        contexts = check_array("contexts", contexts, "(B, T', D)", (n_tasks, -1, history.context_dim))
        n_rows = contexts.shape[1]
        played = np.full((n_tasks, n_rows), -1)
        seen = np.zeros((n_tasks, n_rows), np.float32)
        if past:
            played[:, : self._length], seen[:, : self._length] = history.actions, history.outcomes
        uniform = np.stack([rng.random((n_rows, n_actions), np.float32) for rng in check_rngs(rngs, n_tasks)])
        # The built-in models have fast paths of their own; every other model takes the general way.
        if self._is_fast:
            rows = map_contexts(self.model, contexts) if rows is None else rows
            if type(self.model) is PaperModel:
                return impute_paper(self.model, belief.state, rows, played, seen, uniform)
            mean, covariance, _ = belief.state
            return impute_filter(rows, played, seen, mean.numpy(), covariance.numpy(), uniform)
        return self._impute_any(belief, contexts, played, seen, uniform)

    @property
    def maps(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """The learned map from contexts to ``rows``, of a built-in model with a fast path; None: there is none."""
        return partial(map_contexts, self.model) if self._is_fast and self.model.config.context_features else None

    @property
    def _is_fast(self) -> bool:
        return type(self.model) is PaperModel or (type(self.model) is FilterModel and self.model.head is None)

    def begin(self, action_features: np.ndarray, context_dim: int) -> Belief:
        """Return, and keep, the belief of new tasks with empty histories."""
        info = TaskInfo(action_features, action_features.shape[1], context_dim)
        self._belief, self._features, self._length = Belief(self.model, info), action_features, 0
        return self._belief

    def _catch_up(self, history: History) -> Belief:
        """Append the history's new rows, or begin anew with other tasks."""
        if self._belief is None or self._features is not history.action_features or not self._goes_on(history):
            self._belief = self.begin(history.action_features, history.context_dim)
        for t in range(self._length, history.length):
            self._belief.observe(history.contexts[:, t], history.actions[:, t], history.outcomes[:, t])
        self._length, self._seen = history.length, history
        return self._belief

    def _goes_on(self, history: History) -> bool:
        """Return whether the history begins with the rows that the belief holds."""
        n, seen = self._length, self._seen
        return n == 0 or (
            seen is not None
            and history.length >= n
            and np.array_equal(history.actions[:, :n], seen.actions)
            and np.array_equal(history.outcomes[:, :n], seen.outcomes)
            and np.array_equal(history.contexts[:, :n], seen.contexts)
        )

    def _impute_any(
        self, belief: Belief, contexts: np.ndarray, played: np.ndarray, seen: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """Complete the tables row by row through the model's own methods."""
        n_tasks, n_rows, n_actions = uniform.shape
        table, state = np.empty_like(uniform), belief.state
        draws, rows = torch.from_numpy(uniform), torch.tensor(contexts)
        observed = torch.from_numpy(played[..., None] == np.arange(n_actions))  # (B, T', A)
        known = torch.from_numpy(seen)
        with torch.no_grad():
            for t in range(n_rows):
                each = rows[:, t].repeat_interleave(n_actions, 0)  # (B·A, D)
                chance = self.model.probability(state, each)
                outcome = (draws[:, t].reshape(-1) < chance).float()
                missing = ~observed[:, t].reshape(-1)
                state = self.model.append(state, each, outcome, missing)
                told = known[:, t].repeat_interleave(n_actions)
                table[:, t] = torch.where(missing, outcome, told).reshape(n_tasks, n_actions).numpy()
        return table
