"""Builds the belief of models of coefficients: it turns a posterior into all the methods that agents use."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, Self

import numpy as np

from gents_gym.checks import InputError, check_array, check_integer, check_rngs
from gents_gym.likelihoods import Likelihood
from gents_gym.models.belief import check_columns, check_likelihood, check_tasks
from gents_gym.models.ledger import KEPT, Ledger
from gents_gym.models.posterior import Posterior
from gents_gym.types import Completion, Feedback, TaskInfo


class CoefficientModel(Protocol):
    """A model whose outcomes are regressions on rows, with a posterior of the coefficients."""

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        ...

    def design(self, contexts: np.ndarray) -> np.ndarray:
        """Return rows in double precision, (..., D) to (..., K)."""
        ...

    def posterior(self, action_features: np.ndarray, ledger: Ledger) -> Posterior:
        """Return the posterior of B·A actions (B, A, F) without observations."""
        ...

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the features that predictions are linear in; None if they are the contexts."""
        ...


class CoefficientBelief(ABC):
    """The belief of a model of coefficients: their posterior given everything that was observed in B tasks."""

    def __init__(self, model: CoefficientModel, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        check_likelihood(model.likelihood, info)
        self._model, self._info, self._rngs = model, info, check_rngs(rngs, len(info))
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        self._ledger = Ledger(info, model.design)
        self._posterior = model.posterior(features, self._ledger)

    def expected(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return posterior mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A)."""
        rows = self._model.design(self._ledger.check_contexts(contexts))
        found = self._pick(self._posterior.expected(rows, self._info.reward_fn, self._rngs), actions)
        return found if np.ndim(contexts) == 3 else found[:, 0]

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return the posterior variance of mean rewards, in the shapes of :meth:`expected`."""
        rows = self._model.design(self._ledger.check_contexts(contexts))
        found = self._pick(self._posterior.variance(rows, self._info.reward_fn, self._rngs), actions)
        return found if np.ndim(contexts) == 3 else found[:, 0]

    def _pick(self, values: np.ndarray, actions: np.ndarray | None) -> np.ndarray:
        """Return the columns of ``actions`` (B, n), (B, C, A) to (B, C, n)."""
        if actions is None:
            return values
        return np.take_along_axis(values, check_columns(actions, len(values), self._info.n_actions)[:, None], axis=2)

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task."""
        self._ledger.decide(context, action)

    def observe(self, feedback: Feedback) -> None:
        """Learn outcomes of open rows."""
        task, decision, _ = self._ledger.arrive(feedback, self._model.likelihood)
        self._learn(task, decision)

    def complete(
        self,
        context: np.ndarray,
        rows: int | None = None,
        draws: int = 1,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Completion:
        """Return completed tables: coefficients are drawn from their posterior, then the missing outcomes."""
        return self._complete(context, rows, draws, contexts, actions)[0]

    def complete_with_means(self, context: np.ndarray, contexts: str | None = None) -> tuple[Completion, np.ndarray]:
        """Return one completed table of each task and the mean rewards of the drawn coefficients, (B, T, A)."""
        table, parameters = self._complete(context, None, 1, contexts, None)
        return table, self._model.likelihood.expected_reward(self._info.reward_fn, parameters[:, 0])

    def _complete(
        self, context: np.ndarray, rows: int | None, draws: int, contexts: str | None, actions: np.ndarray | None
    ) -> tuple[Completion, np.ndarray]:
        """Return completed tables and the parameters of the imputed rows' outcomes, (B, M, T', A, ...)."""
        check_integer("draws", draws, 1)
        ledger, n_tasks = self._ledger, len(self._info)
        if actions is not None:
            actions = check_columns(actions, n_tasks, self._info.n_actions)
        t, end = ledger.time, ledger.end(rows)
        ledger.face(context)
        imagined = self._imagine(contexts, end, draws)  # (B, M, T', D)
        known = self._observed(actions)  # (B, t, A)
        first = 0 if rows is None else t
        parameters = self._posterior.sample(self._model.design(imagined[:, :, first:]), first, self._rngs)
        if actions is not None:
            rest = (1,) * (parameters.ndim - 4)
            parameters = np.take_along_axis(parameters, actions.reshape(n_tasks, 1, 1, -1, *rest), axis=3)
        check_array("what the model predicts", parameters, "(B, M, T', A, ...)", parameters.shape, float, per_task=1)
        shape = (end - first, parameters.shape[3])
        noise = np.stack([_noise(self._model.likelihood, rng, shape) for rng in self._rngs for _ in range(draws)])
        table = np.zeros((n_tasks, draws, end, shape[1]), np.float32)
        table[:, :, first:] = self._model.likelihood.sample(parameters, noise.reshape(n_tasks, draws, *shape))
        past = table[:, :, :t]
        np.copyto(past, ledger.outcomes[:, None, :t, None], where=known[:, None])
        features = self._model.context_features(imagined)
        if rows is None:
            return Completion(imagined, table, None, features, t), parameters
        weights = np.ones_like(table)
        weights[:, :, :t] = known[:, None]
        return Completion(imagined, table, weights, features, t), parameters

    def fork(self, tasks: np.ndarray) -> Self:
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with its own random numbers."""
        tasks = check_tasks(tasks, len(self._info))
        other = copy.copy(self)
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        other._ledger = self._ledger.pick(tasks)
        other._posterior = self._posterior.pick(tasks, other._ledger)
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), without observations."""
        new = check_array("action_features", action_features, "(B, n, F)", (len(self._info), -1, -1))
        self._posterior = self._posterior.join(self._model.posterior(new, self._ledger))
        features = np.concatenate([self._info.action_features, new], axis=1)
        self._info = replace(self._info, action_features=features, n_actions=features.shape[1], texts=None)
        self._ledger.widen(features.shape[1])

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that was observed as plain arrays; the posterior follows from it."""
        return self._ledger.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Replace the state with one that :meth:`state` returned."""
        if state.keys() != {*KEPT}:
            raise InputError(f"state must have {', '.join(KEPT)}, got {', '.join(sorted(state))}")
        n_actions = self._info.n_actions
        if state["seen"].max(initial=-1) >= n_actions:
            raise InputError(f"seen must lie below {n_actions}, the number of actions, got {state['seen'].max()}")
        self._ledger.restore(state)
        self._posterior = self._model.posterior(np.asarray(self._info.action_features), self._ledger)
        self._learn(*np.nonzero(self._ledger.seen[:, : self._ledger.time] >= 0))

    def draw(self, draws: int = 1) -> np.ndarray:
        """Return independent posterior draws of the current decision's coefficients, intercept first, (B, M, A, Q)."""
        return self._posterior.draw(draws, self._rngs)

    def _learn(self, task: np.ndarray, decision: np.ndarray) -> None:
        """Learn the outcomes in the ledger of decisions (n,) of tasks (n,); those of one task one at a time."""
        for t in np.unique(decision):
            at = task[decision == t], t
            rows, outcome = self._ledger.rows[at].astype(np.float64), self._ledger.outcomes[at]
            self._posterior.learn(at[0], self._ledger.seen[at], rows, outcome)

    @abstractmethod
    def _imagine(self, contexts: str | None, end: int, draws: int) -> np.ndarray:
        """Return the contexts so far and imagined ones after them, (B, M, T', D)."""

    def _observed(self, actions: np.ndarray | None = None) -> np.ndarray:
        """Return which cells of the rows so far were seen, (B, t, A)."""
        columns = np.arange(self._info.n_actions)[None] if actions is None else actions
        return self._ledger.seen[:, : self._ledger.time, None] == columns[:, None]


def _noise(likelihood: Likelihood, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return the random numbers for outcomes, as ``likelihood.noise`` does, but in double precision."""
    return rng.standard_normal(shape) if likelihood.support is None else rng.random(shape)
