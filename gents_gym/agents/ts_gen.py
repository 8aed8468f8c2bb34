"""Generative Thompson sampling: impute the missing outcomes, fit a policy to the completed table, play its action."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gents_gym.agents.belief import check_binary, check_model, get_model
from gents_gym.agents.greedy import DEFAULT_MODEL
from gents_gym.agents.imputation import AutoregressiveImputer
from gents_gym.checks import InputError, check_actions, check_array, check_flag, check_integer, check_number
from gents_gym.construct import make_policy
from gents_gym.models.exact import ExactModel
from gents_gym.types import History, Policy, PolicyClass, TaskInfo


@dataclass
class TSGen:
    """TS-Gen: at each decision, complete the table with p_θ, fit the policy class to it, and play its action.

    With ``samples`` above 1 it completes several tables and plays the action of the highest mean prediction of the
    policies fitted to them.
    """

    model: Any = DEFAULT_MODEL  # a bundled model's id, a folder, "exact", or a model
    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = None  # imputed rows per action; None: the whole table, which needs a known horizon
    samples: int = 1  # completed tables per decision
    warm_start: bool = True  # fits start at the previous decision's solution

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("samples", self.samples, 1)
        check_flag("warm_start", self.warm_start)
        if isinstance(self.policy, str):
            make_policy(self.policy)
        if self.model != "exact":
            check_model(self.model)
        if self.m is not None:
            check_integer("m", self.m, 1)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        if self.m is None and info.horizon is None:
            raise InputError("m must be given where the horizon is not known, got None")
        model = ExactModel() if self.model == "exact" else get_model(self.model)
        self._imputer = model if hasattr(model, "impute") else AutoregressiveImputer(model)
        self._bank = np.asarray(model.bank, np.float32) if hasattr(model, "bank") else None
        self._info, self._rngs = info, rngs
        self._policy_class: Any = self.policy
        if isinstance(self.policy, str):
            self._policy_class = make_policy(self.policy, reward_fn=info.reward_fn)
        if self.m is not None and "weights" not in inspect.signature(self._policy_class.fit).parameters:
            raise InputError(f"policy must have fit(..., weights) for a truncated horizon m, got {self.policy!r}")
        self._last: list[Policy | None] = [None] * self.samples
        n_tasks, size = len(info), info.horizon or 1
        self._contexts = np.zeros((n_tasks, size, info.context_dim), np.float32)
        self._actions, self._outcomes = np.zeros((n_tasks, size), np.int64), np.zeros((n_tasks, size), np.float32)
        self._features = np.asarray(info.action_features, np.float32)
        if isinstance(self._imputer, AutoregressiveImputer):
            self._imputer.begin(self._features, info.context_dim)
        self._time, self._acted = 0, False

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest score, averaged over the completed tables."""
        return self.sample_scores(context).mean(axis=0).argmax(axis=1)

    def sample_scores(self, context: np.ndarray) -> np.ndarray:
        """Return the scores of policies fitted to completed tables, (B, D) to (M, B, A)."""
        context = check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim))
        if self._time == self._info.horizon:
            raise InputError(f"act must be called at most {self._time} times, the horizon, got one more")
        self._acted = True
        found = []
        for i in range(self.samples):
            policy = self._impute_and_fit(context, self._last[i] if self.warm_start else None)
            found.append(policy.scores(context))
            self._last[i] = policy
        return np.stack(found)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        n_tasks = len(self._info)
        context = check_array("context", context, "(B, D)", (n_tasks, self._info.context_dim))
        action = check_actions(action, n_tasks, self._info.n_actions)
        outcome = check_binary(outcome, n_tasks)
        if not self._acted:
            raise InputError("observe must follow act, once for each decision")
        if self._time == self._contexts.shape[1]:
            self._grow()
        self._contexts[:, self._time] = context
        self._actions[:, self._time] = action
        self._outcomes[:, self._time] = outcome
        self._time += 1
        self._acted = False

    def _impute_and_fit(self, context: np.ndarray, start: Policy | None) -> Policy:
        """Return π*(·; τ̂) for one draw of τ̂ given the history."""
        history = self._history()
        if self.m is None:
            later = self._draw_contexts((self._info.horizon or 0) - self._time - 1)
            contexts = np.concatenate([history.contexts, context[:, None], later], axis=1)  # (B, T, D)
            table = self._imputer.impute(history, contexts, self._rngs)
            return self._policy_class.fit(contexts, table, warm_start=start)
        new = np.concatenate([context[:, None], self._draw_contexts(self.m - 1)], axis=1)  # (B, m, D)
        table = self._imputer.impute(history, new, self._rngs, past=False)
        contexts = np.concatenate([history.contexts, new], axis=1)
        weights = np.concatenate([history.observed(), np.ones_like(table)], axis=1)
        outcomes = np.concatenate([history.table(), table], axis=1)
        return self._policy_class.fit(contexts, outcomes, warm_start=start, weights=weights)

    def _draw_contexts(self, n_rows: int) -> np.ndarray:
        """Draw contexts from the model's bank, (B, n, D); where there is none, p*'s own: standard normal."""
        if self._bank is None:
            size = (n_rows, self._info.context_dim)
            return np.stack([rng.standard_normal(size, np.float32) for rng in self._rngs])
        picked = np.stack([rng.integers(len(self._bank), size=n_rows) for rng in self._rngs])
        return self._bank[picked]

    def _history(self) -> History:
        here = slice(0, self._time)
        return History(self._features, self._contexts[:, here], self._actions[:, here], self._outcomes[:, here])

    def _grow(self) -> None:
        for name in ("_contexts", "_actions", "_outcomes"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=1))


@dataclass
class GenUCB:
    """Plays the action with the highest quantile of the scores over several completed tables."""

    model: Any = DEFAULT_MODEL  # a bundled model's id, a folder, "exact", or a model
    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = 32  # imputed rows per action; None: the whole table
    samples: int = 16  # completed tables per decision
    quantile: float = 0.75  # of the scores
    warm_start: bool = True  # fits start at the previous decision's solution

    def __post_init__(self) -> None:
        """Check the options."""
        if check_number("quantile", self.quantile, 0) > 1:
            raise InputError(f"quantile must be at most 1, got {self.quantile}")
        self._sampler = TSGen(self.model, self.policy, self.m, self.samples, self.warm_start)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        self._sampler.reset(info, rngs)

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest quantile."""
        return np.quantile(self._sampler.sample_scores(context), self.quantile, axis=0).argmax(axis=1)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        self._sampler.observe(context, action, outcome)
