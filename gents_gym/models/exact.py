"""The exact p*: Bayesian regression with nature's own prior, in closed form or by a long chain."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.checks import (
    InputError,
    check_array,
    check_choice,
    check_integer,
    check_number,
    check_rngs,
)
from gents_gym.likelihoods import Likelihood
from gents_gym.models.belief import check_columns, check_likelihood, check_tasks
from gents_gym.models.conjugate import ConjugatePosterior, conjugate_marginal
from gents_gym.models.contexts import CONTEXT_MODELS, Sources
from gents_gym.models.ledger import KEPT, Ledger
from gents_gym.models.posterior import Posterior, SampledPosterior, sampled_marginal
from gents_gym.types import Completion, Feedback, TaskInfo, Truth


@dataclass(frozen=True)
class ExactModel:
    """p* of a setting that publishes its :class:`gents_gym.types.Truth`.

    Gaussian outcomes have a posterior in closed form. Posterior draws for others come from independence
    Metropolis-Hastings with Student proposals around the Laplace approximation. In the paper's settings each step
    accepts about three proposals in four, and with three categories three in five, so a chain forgets its start: draws
    are within 0.0001 of the posterior in total variation. Features or contexts far beyond those settings' make
    proposals worse, and want more steps.
    """

    truth: Truth
    n_steps: int = 16  # steps of the chain behind a draw, for each of the C-1 linear predictors of an outcome
    n_weighted: int = 256  # weighted proposals behind an expectation or a marginal likelihood

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_weighted", self.n_weighted, 1)
        check_number("the truth's noise", self.truth.noise, 0, above=True)

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are."""
        return self.truth.likelihood

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> "ExactBelief":
        """Return the belief of B new tasks."""
        return ExactBelief(self, info, rngs)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return nature's features of contexts, (..., D) to (..., D'); None where they are the contexts."""
        return None if self.truth.context_map is None else self.truth.context_map(contexts)

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> None:
        """Return None: p* has no hidden layer."""

    def log_marginal(
        self, action_features: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return log p(Y | X, Z) of N single actions' rows, (N,); see :meth:`estimate_marginal`."""
        return self.estimate_marginal(action_features, contexts, outcomes, rng)[0]

    def estimate_marginal(
        self, action_features: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(Y | X, Z) of N single actions' rows, and its standard errors, (N,) each.

        The errors of Gaussian outcomes are 0; for others it is estimated by importance sampling.

        Args:
            action_features: (N, F).
            contexts: (N, R, D).
            outcomes: (N, R).
            rng: The source of the proposals.
        """
        prior, rows, outcomes = self.prior(action_features[:, None]), self.rows(contexts), np.asarray(outcomes)
        if self.likelihood.support is None:
            found = conjugate_marginal(ConjugatePosterior.prior(*prior, self.truth.noise), rows, outcomes)
            return found, np.zeros_like(found)
        return sampled_marginal(*prior, rows, outcomes, self.n_weighted, rng)

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return (1, φ_X(X)) in double precision, (..., D) to (..., K)."""
        mapped = contexts if self.truth.context_map is None else self.truth.context_map(contexts)
        return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1).astype(np.float64)

    def prior(self, action_features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the coefficients, (B, A, F) to (B, A, Q) each; those of a category in a row."""
        mean, variance = self.truth.prior(action_features)
        shape = (*action_features.shape[:2], -1)
        return mean.reshape(shape), variance.reshape(shape)

    def posterior(self, action_features: np.ndarray, ledger: Ledger) -> Posterior:
        """Return the posterior of B·A actions (B, A, F) that nothing is observed of yet."""
        prior, support = self.prior(action_features), self.likelihood.support
        if support is None:
            return ConjugatePosterior.prior(*prior, self.truth.noise)
        n_steps = self.n_steps * (len(support) - 1)
        return SampledPosterior.prior(self.likelihood, n_steps, self.n_weighted, ledger, *prior)


class ExactBelief:
    """What p* believes of B tasks: the posterior of every action's coefficients, from all that was observed."""

    def __init__(self, model: ExactModel, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        check_likelihood(model.likelihood, info)
        self._model, self._info, self._rngs = model, info, check_rngs(rngs, len(info))
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        self._ledger = Ledger(info, model.rows)
        self._posterior = model.posterior(features, self._ledger)

    def expected(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return posterior mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A)."""
        rows = self._model.rows(self._ledger.check_contexts(contexts))
        found = self._pick(self._posterior.expected(rows, self._info.reward_fn, self._rngs), actions)
        return found if np.ndim(contexts) == 3 else found[:, 0]

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return the posterior variance of mean rewards, in the shapes of :meth:`expected`."""
        rows = self._model.rows(self._ledger.check_contexts(contexts))
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
        """Return completed tables: coefficients from their posterior, then the missing outcomes.

        Contexts to come are nature's own unless "own", "seen" or "given" is named.
        """
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
        coefficients = self.draw(draws)  # (B, M, A, Q)
        if actions is not None:
            coefficients = np.take_along_axis(coefficients, actions[:, None, :, None], axis=2)
        known = self._observed(actions)  # (B, t, A)
        first = 0 if rows is None else t
        parameters = self._posterior.parameters(self._model.rows(imagined[:, :, first:]), coefficients)
        check_array("what the model predicts", parameters, "(B, M, T', A, ...)", parameters.shape, float, per_task=1)
        shape = (end - first, coefficients.shape[2])
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

    def fork(self, tasks: np.ndarray) -> "ExactBelief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with random numbers of its own."""
        tasks = check_tasks(tasks, len(self._info))
        other = copy.copy(self)
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        other._ledger = self._ledger.pick(tasks)
        other._posterior = self._posterior.pick(tasks, other._ledger)
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), which nothing is observed of."""
        new = check_array("action_features", action_features, "(B, n, F)", (len(self._info), -1, -1))
        self._posterior = self._posterior.join(self._model.posterior(new, self._ledger))
        features = np.concatenate([self._info.action_features, new], axis=1)
        self._info = replace(self._info, action_features=features, n_actions=features.shape[1], texts=None)
        self._ledger.widen(features.shape[1])

    def state(self) -> dict[str, np.ndarray]:
        """Return all that was observed as plain arrays; the posterior follows from it."""
        return self._ledger.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state that :meth:`state` returned in the place of the present one."""
        if state.keys() != {*KEPT}:
            raise InputError(f"state must have {', '.join(KEPT)}, got {', '.join(sorted(state))}")
        n_actions = self._info.n_actions
        if state["seen"].max(initial=-1) >= n_actions:
            raise InputError(f"seen must lie below {n_actions}, the number of actions, got {state['seen'].max()}")
        self._ledger.restore(state)
        self._posterior = self._model.posterior(np.asarray(self._info.action_features), self._ledger)
        self._learn(*np.nonzero(self._ledger.seen[:, : self._ledger.time] >= 0))

    def draw(self, draws: int = 1) -> np.ndarray:
        """Return independent posterior draws of the coefficients, intercept first, (B, M, A, Q)."""
        return self._posterior.draw(draws, self._rngs)

    def _learn(self, task: np.ndarray, decision: np.ndarray) -> None:
        """Learn the outcomes, in the ledger, of decisions (n,) of tasks (n,): of a task one after the other."""
        for t in np.unique(decision):
            at = task[decision == t], t
            rows, outcome = self._ledger.rows[at].astype(np.float64), self._ledger.outcomes[at]
            self._posterior.learn(at[0], self._ledger.seen[at], rows, outcome)

    def _imagine(self, contexts: str | None, end: int, draws: int) -> np.ndarray:
        """Return the contexts so far and imagined ones behind them, (B, M, T', D)."""
        t, spread = self._ledger.time, self._model.truth.context_spread
        own = self._ledger.contexts[:, : t + 1]
        shape = (draws, end - t - 1, own.shape[2])
        if contexts is None:
            each = zip(own, self._rngs, strict=True)
            new = np.stack([_draw_contexts(mine, shape, spread, rng) for mine, rng in each])
        else:
            check_choice("context model of p*:", contexts, ["own", "seen", "given"])
            sources = Sources(0, t + 1, self._ledger.n_known, 0.0)
            picks = CONTEXT_MODELS[contexts](sources, shape[1], draws, self._rngs)
            new = self._ledger.contexts[np.arange(len(own))[:, None, None], -1 - picks]
        return np.concatenate([np.broadcast_to(own[:, None], (len(own), draws, *own.shape[1:])), new], axis=2)

    def _observed(self, actions: np.ndarray | None = None) -> np.ndarray:
        """Return which cells of the rows so far were seen, (B, t, A)."""
        columns = np.arange(self._info.n_actions)[None] if actions is None else actions
        return self._ledger.seen[:, : self._ledger.time, None] == columns[:, None]


def _noise(likelihood: Likelihood, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return the random numbers that outcomes are made of, as ``likelihood.noise``, but in double precision."""
    return rng.standard_normal(shape) if likelihood.support is None else rng.random(shape)


def _draw_contexts(
    seen: np.ndarray, shape: tuple[int, int, int], spread: float, rng: np.random.Generator
) -> np.ndarray:
    """Return contexts to come, (M, n, D), given the task's (t, D) so far.

    They are √(1 - s²) X̄ + s X, with X̄ from its posterior.
    """
    normal = rng.standard_normal(shape, np.float32)
    if spread == 1:
        return normal
    pull = 1 - spread**2
    total = spread**2 + len(seen) * pull
    centre = rng.standard_normal((shape[0], 1, shape[2]), np.float32) * (spread / np.sqrt(total))
    centre += np.sqrt(pull) * seen.sum(axis=0) / total
    return (np.sqrt(pull) * centre + spread * normal).astype(np.float32)
