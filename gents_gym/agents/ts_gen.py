"""Generative Thompson sampling: complete the table, fit a policy to it, play its action."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.agents.ahead import DEFAULT_VOTES, Ahead, one_hot, vote_share
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL, BeliefHolder, first_task
from gents_gym.agents.policy import FittedPolicy, check_policy, choose_policy
from gents_gym.agents.ties import Chooser, check_ties
from gents_gym.checks import InputError, check_flag, check_integer, check_memory, check_number
from gents_gym.models.contexts import check_contexts
from gents_gym.models.load import check_model_name, resolve_model
from gents_gym.types import Belief, Completion, Feedback, Model, PolicyClass, TaskInfo


@dataclass
class TSGen(Resettable):
    """TS-Gen: at each decision, complete the table with p_θ, fit the policy class to it, and play its action.

    With ``samples`` above 1 it completes several tables, fits a policy to each, and plays the action with the highest
    mean prediction.
    """

    model: str | Model = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    policy: str | PolicyClass | None = None  # the policy class that is fitted; None: chosen by the model's features
    m: int | None = None  # imputed rows per action; None: the whole table, which needs a known horizon
    samples: int = 1  # completed tables per decision
    warm_start: bool = True  # whether fits start from the previous decision's solution
    contexts: str | None = None  # where imagined contexts come from: bank, seen or given; None: the model's default
    cut: bool = False  # whether the m imputed rows end at the horizon; otherwise they extend beyond it near the end
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one
    votes: int = DEFAULT_VOTES  # decisions that the action probabilities are estimated from, the played one included

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("votes", self.votes, 2)
        check_integer("samples", self.samples, 1)
        check_flag("warm_start", self.warm_start)
        if check_flag("cut", self.cut) and self.m is None:
            raise InputError("cut must be given with m, the imputed rows that end at the horizon, got m=None")
        check_policy(self.policy)
        check_model_name(self.model)
        check_contexts(self.contexts)
        check_ties(self.ties)
        if self.m is not None:
            check_integer("m", self.m, 1)

    def resolve(self, info: TaskInfo) -> str:
        """Return the name of the policy class that is fitted in these tasks."""
        return choose_policy(self.policy, resolve_model(self.model, info), info).name

    def check(self, info: TaskInfo) -> None:
        """Raise unless model, policy class and context model fit these tasks; only the first is tried."""
        first, rngs, context = first_task(info)
        trial = replace(self)
        trial.reset(first, rngs)
        trial._held.belief.complete(context, 1, 1, self.contexts)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        if self.m is None and info.horizon is None:
            raise InputError("m must be given if the horizon is not known, got None")
        if self.cut and info.horizon is None:
            raise InputError("cut must be False if the horizon is not known, got True")
        n_rows = info.horizon if self.m is None else self.m
        numbers = len(rngs) * self.samples * int(n_rows or 0) * (info.n_actions + info.context_dim)
        check_memory(4 * numbers, samples=self.samples, m=n_rows or 0, tasks=len(rngs))
        self._info, self._held = info, BeliefHolder(self.model, info, rngs)
        self._policy = choose_policy(self.policy, self._held.model, info)
        if self.m is not None:
            self._policy.check_weights()
        self._choose = Chooser(self.ties, rngs, info.n_actions)
        self._acted = False
        self._left = info.horizon  # decisions left, the current one included
        self._last: FittedPolicy | None = None  # the latest fitted policies
        self._start: FittedPolicy | None = None  # what those fits started from
        self._decision = Ahead(self._decide)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest score, averaged over the completed tables."""
        return self.acts(context, self._decision.take(context, find_available(available, self._info)))

    def acts(self, context: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the actions (B,) that are played in the contexts (B, D)."""
        return self._held.acts(context, action)

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the vote share of each action over ``votes`` decisions, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        played = one_hot(self._decision.look(context, live), self._info.n_actions)
        others = (self._choose.vote(scores.mean(axis=1), live) for scores in self.other_scores(context, live))
        return vote_share([played, *others])

    def _decide(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        return self._choose(self.sample_scores(context, live).mean(axis=1), live)

    def sample_scores(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the scores of policies fitted to M completed tables, (B, D) to (B, M, A), or to (B, M, n)."""
        return self.fit_policies(self.complete_tables(context, live))

    def complete_tables(self, context: np.ndarray, live: Available | None = None) -> Completion:
        """Return M completed tables of each task, given contexts (B, D); only for the live actions if not all are."""
        return self._complete(self._held.belief, context, live)

    def _complete(self, belief: Belief, context: np.ndarray, live: Available | None) -> Completion:
        rows = min(self.m or 0, self._left or 0) if self.cut else self.m
        columns = None if live is None else live.actions
        return belief.complete(context, rows, self.samples, self.contexts, columns)

    def fit_policies(self, tables: Completion) -> np.ndarray:
        """Fit a policy to each completed table, and return their scores in the current contexts, (B, M, A)."""
        self._start = self._last if self.warm_start else None
        if self._start is not None and self._start.scores.shape[2] != tables.outcomes.shape[3]:
            self._start = None  # the table has another number of columns
        self._last = self._policy.fit(tables, self._start)
        self._acted = True
        return self._last.scores

    def scores_at(self, contexts: np.ndarray) -> np.ndarray:
        """Return the scores of the latest fitted policies in any contexts, (B, C, D) to (B, M, C, A)."""
        if self._last is None:
            raise InputError("scores_at must follow act, which fits the policies")
        read = self._held.model.context_features(contexts) if self._policy.on_features else contexts  # (B, C, K)
        scores = self._last.policy.scores(np.repeat(np.asarray(read), self.samples, axis=0))  # (B·M, C, A)
        return scores.reshape(len(contexts), self.samples, *scores.shape[1:])

    def other_scores(self, context: np.ndarray, live: Available | None = None) -> Iterator[np.ndarray]:
        """Yield the scores of ``votes`` - 1 more decisions like the latest, (B, D) to (B, M, A) each.

        A copy of the belief draws the tables, with child generators, so what is played stays the same. The fits start
        from the same point as the latest fits.
        """
        belief = self._held.belief.fork(np.arange(len(context)))
        for _ in range(self.votes - 1):
            yield self._policy.fit(self._complete(belief, context, live), self._start).scores

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        if not self._acted:
            raise InputError("observe must follow act, once for each decision")
        self._held.observe(context, action, outcome)
        self._end_decision()

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and what arrived; missing outcomes are imputed like other cells."""
        self._held.observe_late(feedback)
        self._end_decision()

    def _end_decision(self) -> None:
        self._acted = False
        self._left = None if self._left is None else self._left - 1


@dataclass
class GenUCB(Resettable):
    """Plays the action with the highest quantile of the scores over several completed tables."""

    model: str | Model = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    policy: str | PolicyClass | None = None  # the policy class that is fitted; None: chosen by the model's features
    m: int | None = 64  # imputed rows per action; None: the whole table
    samples: int = 8  # completed tables per decision
    quantile: float = 0.75  # quantile of the scores
    warm_start: bool = True  # whether fits start from the previous decision's solution
    contexts: str | None = None  # where imagined contexts come from: bank, seen or given; None: the model's default
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one
    votes: int = DEFAULT_VOTES  # decisions that the action probabilities are estimated from, the played one included

    def __post_init__(self) -> None:
        """Check the options."""
        if check_number("quantile", self.quantile, 0) > 1:
            raise InputError(f"quantile must be at most 1, got {self.quantile}")
        options = (self.model, self.policy, self.m, self.samples, self.warm_start, self.contexts)
        self._sampler = TSGen(*options, votes=self.votes)
        check_ties(self.ties)

    def resolve(self, info: TaskInfo) -> str:
        """Return the name of the policy class that is fitted in these tasks."""
        return self._sampler.resolve(info)

    def check(self, info: TaskInfo) -> None:
        """Raise unless model, policy class and context model fit these tasks; only the first is tried."""
        self._sampler.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._sampler.reset(info, rngs)
        self._info, self._choose = info, Chooser(self.ties, rngs, info.n_actions)
        self._decision = Ahead(self._decide)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest quantile."""
        return self._sampler.acts(context, self._decision.take(context, find_available(available, self._info)))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the vote share of each action over ``votes`` decisions, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        played = one_hot(self._decision.look(context, live), self._info.n_actions)
        others = (self._choose.vote(self._bound(s), live) for s in self._sampler.other_scores(context, live))
        return vote_share([played, *others])

    def _decide(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        return self._choose(self._bound(self._sampler.sample_scores(context, live)), live)

    def _bound(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(np.quantile(scores, self.quantile, axis=1))  # (B, M, A) to (B, A)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._sampler.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._sampler.observe_late(feedback)
