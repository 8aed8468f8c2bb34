"""Generative Thompson sampling: impute the missing outcomes, fit a policy to the completed table, play its action."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gents_gym.agents.belief import check_binary, check_model, get_model
from gents_gym.agents.greedy import DEFAULT_MODEL
from gents_gym.agents.imputation import AutoregressiveImputer
from gents_gym.checks import InputError, check_actions, check_array, check_flag, check_integer, check_number, check_rngs
from gents_gym.construct import get_policy, make_policy
from gents_gym.models.exact import ExactModel
from gents_gym.types import History, Policy, PolicyClass, TaskInfo


@dataclass
class TSGen:
    """TS-Gen: at each decision, complete the table with p_θ, fit the policy class to it, and play its action.

    With ``samples`` above 1 it completes several tables and plays the action of the highest mean prediction of the
    policies fitted to them.
    """

    model: Any = DEFAULT_MODEL  # a preset, a bundled model's id, a folder, "exact", or a model
    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = None  # imputed rows per action; None: the whole table, which needs a known horizon
    samples: int = 1  # completed tables per decision
    warm_start: bool = True  # whether fits are told the previous decision's solution

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("samples", self.samples, 1)
        check_flag("warm_start", self.warm_start)
        if isinstance(self.policy, str):
            make_policy(self.policy)
        elif isinstance(self.policy, type) or not hasattr(self.policy, "fit"):
            raise InputError(f"policy must be a policy class with fit, or its id, got {self.policy!r}")
        if self.model != "exact":
            check_model(self.model)
        if self.m is not None:
            check_integer("m", self.m, 1)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        if self.m is None and info.horizon is None:
            raise InputError("m must be given where the horizon is not known, got None")
        sizes = (np.shape(info.action_features)[-1], info.context_dim)
        model = ExactModel() if self.model == "exact" else get_model(self.model, *sizes, info.space)
        self._imputer = model if hasattr(model, "impute") else AutoregressiveImputer(model)
        self._info, self._rngs = info, check_rngs(rngs, len(info))
        self._policy_class: Any = get_policy("policy", self.policy, info.reward_fn)
        if self.m is not None and "weights" not in inspect.signature(self._policy_class.fit).parameters:
            raise InputError(f"policy must have fit(..., weights) for a truncated horizon m, got {self.policy!r}")
        self._last: Policy | None = None
        # Each draw is a task of its own, with the same history: B·M in all.
        shape = (len(info), info.n_actions, -1)
        self._features = self._each(check_array("action_features", info.action_features, "(B, A, F)", shape))
        n_all, size = len(self._features), (info.horizon or 1) + (self.m or 0)
        self._contexts = np.zeros((n_all, size, info.context_dim), np.float32)
        self._actions, self._outcomes = np.zeros((n_all, size), np.int64), np.zeros((n_all, size), np.float32)
        # The cells that a truncated fit reads; an action's rows lie side by side, as fits read them.
        cells = np.zeros((2, n_all, info.n_actions, size if self.m else 0), np.float32)
        self._table, self._weights = cells.swapaxes(2, 3)  # (B·M, size, A) each
        if isinstance(self._imputer, AutoregressiveImputer):
            self._imputer.begin(self._features, info.context_dim)
        self._bank = _read_bank(model, info.context_dim)
        # Where the model learned a map of contexts, it maps each of them once, not at every decision.
        self._maps = getattr(self._imputer, "maps", None)
        self._bank_rows = np.zeros((0, 0), np.float32) if self._maps is None else self._maps(self._bank)  # (n, K)
        self._rows = np.zeros((n_all, size, self._bank_rows.shape[1]), np.float32)
        self._time, self._acted = 0, False

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,) of the highest score, averaged over the completed tables."""
        return self.sample_scores(context).mean(axis=1).argmax(axis=1)

    def sample_scores(self, context: np.ndarray) -> np.ndarray:
        """Return the scores of policies fitted to M completed tables, (B, D) to (B, M, A)."""
        context = check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim))
        if self._time == self._info.horizon:
            raise InputError(f"act must be called at most {self._time} times, the horizon, got one more")
        self._acted = True
        context = self._each(context)
        policy = self._impute_and_fit(context, self._last if self.warm_start else None)
        self._last = policy
        shape = (len(context), self._info.n_actions)
        scores = check_array("the policy's scores", policy.scores(context), "(B, A)", shape, np.float64)
        return scores.reshape(len(self._info), self.samples, -1)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        n_tasks = len(self._info)
        context = check_array("context", context, "(B, D)", (n_tasks, self._info.context_dim))
        action = check_actions(action, n_tasks, self._info.n_actions)
        outcome = check_binary(outcome, n_tasks)
        if not self._acted:
            raise InputError("observe must follow act, once for each decision")
        each = np.arange(len(self._features))
        t, action, outcome = self._time, self._each(action), self._each(outcome)
        self._contexts[:, t], self._actions[:, t], self._outcomes[:, t] = self._each(context), action, outcome
        if self.m is not None:
            self._weights[:, t] = 0
            self._weights[each, t, action], self._table[each, t, action] = 1, outcome
        self._time += 1
        self._acted = False

    def _impute_and_fit(self, context: np.ndarray, start: Policy | None) -> Policy:
        """Return π*(·; τ̂) for M draws of τ̂ given the history."""
        t = self._time
        end = t + self.m if self.m else self._info.horizon or 0
        if end > self._contexts.shape[1]:
            self._grow()
        self._contexts[:, t] = context
        if self._maps is not None:
            self._rows[:, t] = self._maps(context)
        self._draw_contexts(t + 1, end)
        contexts = self._contexts[:, :end].copy()  # what is handed out never changes
        history = History(self._features, contexts[:, :t], self._actions[:, :t], self._outcomes[:, :t])
        rngs = [rng for rng in self._rngs for _ in range(self.samples)]
        known = slice(0 if self.m is None else t, end)
        mapped: dict[str, Any] = {} if self._maps is None else {"rows": self._rows[:, known].copy()}
        if self.m is None:
            table = self._imputer.impute(history, contexts, rngs, **mapped)
            return self._policy_class.fit(contexts, table, warm_start=start)
        self._table[:, t:end] = self._imputer.impute(history, contexts[:, t:], rngs, past=False, **mapped)
        self._weights[:, t:end] = 1
        table, weights = (cells[:, :end].copy(order="K") for cells in (self._table, self._weights))
        return self._policy_class.fit(contexts, table, warm_start=start, weights=weights)

    def _draw_contexts(self, first: int, end: int) -> None:
        """Fill these rows with contexts from the model's bank; where there is none, with p*'s own: standard normal."""
        shape = (self.samples, end - first)
        if self._bank is None:
            size = (*shape, self._info.context_dim)
            self._contexts[:, first:end] = np.concatenate([rng.standard_normal(size, np.float32) for rng in self._rngs])
            return
        picked = np.concatenate([rng.integers(len(self._bank), size=shape) for rng in self._rngs])  # (B·M, n)
        self._contexts[:, first:end] = self._bank[picked]
        if self._maps is not None:
            self._rows[:, first:end] = self._bank_rows[picked]

    def _each(self, values: np.ndarray) -> np.ndarray:
        """Return each task's values once per draw, (B, ...) to (B·M, ...)."""
        return values if self.samples == 1 else np.repeat(values, self.samples, axis=0)

    def _grow(self) -> None:
        for name in ("_contexts", "_rows", "_actions", "_outcomes", "_table", "_weights"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=1))


def _read_bank(model: Any, context_dim: int) -> np.ndarray | None:
    """Return the contexts (n, D) that the model draws from; None where it has none."""
    if not hasattr(model, "bank"):
        return None
    bank = torch.as_tensor(model.bank).detach().numpy()
    bank = check_array("the model's bank", bank, "(n, D)", (-1, context_dim))
    check_integer("the number of contexts in the model's bank", len(bank), 1)
    return bank


@dataclass
class GenUCB:
    """Plays the action with the highest quantile of the scores over several completed tables."""

    model: Any = DEFAULT_MODEL  # a preset, a bundled model's id, a folder, "exact", or a model
    policy: str | PolicyClass = "logistic"  # the policy class that is fitted
    m: int | None = 64  # imputed rows per action; None: the whole table
    samples: int = 8  # completed tables per decision
    quantile: float = 0.75  # of the scores
    warm_start: bool = True  # whether fits are told the previous decision's solution

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
        return np.quantile(self._sampler.sample_scores(context), self.quantile, axis=1).argmax(axis=1)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Add the played actions' outcomes to the history."""
        self._sampler.observe(context, action, outcome)
