"""Information-directed sampling: it mixes two actions so that squared regret per information gained is least."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gents_gym.agents.ahead import Ahead, draw_actions
from gents_gym.agents.available import Available, find_available, spread
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL
from gents_gym.agents.ts_gen import TSGen
from gents_gym.checks import check_integer, check_rngs
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, Model, PolicyClass, TaskInfo


@dataclass
class IDS(Resettable):
    """Variance-based information-directed sampling (Russo and Van Roy 2018) from M completed tables.

    A policy is fitted to each table; μ_a are its scores in the current context, and a* is its action. Let Δ_a be the
    mean of μ_a* - μ_a over tables, and v_a the variance over a* of the mean of μ_a given a*. The agent draws its action
    from the distribution π that minimises (Σ π_a Δ_a)² / Σ π_a v_a, which has at most two actions.

    The information concerns only the best action in the current context. Actions that are best with a probability below
    1/M rarely appear as best in M tables, and noise in the means given a* adds to v_a.
    """

    model: str | Model = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    policy: str | PolicyClass | None = None  # the policy class that is fitted; None: chosen by the model's features
    m: int | None = 64  # imputed rows per action; None: the whole table
    samples: int = 8  # completed tables per decision
    warm_start: bool = True  # whether fits start from the previous decision's solution
    contexts: str | None = None  # where imagined contexts come from: bank, seen or given; None: the model's default

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("samples", self.samples, 2)
        self._sampler = TSGen(self.model, self.policy, self.m, self.samples, self.warm_start, self.contexts)

    def resolve(self, info: TaskInfo) -> str:
        """Return the name of the policy class that is fitted in these tasks."""
        return self._sampler.resolve(info)

    def check(self, info: TaskInfo) -> None:
        """Raise unless model, policy class and context model fit these tasks; only the first is tried."""
        self._sampler.check(info)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        self._sampler.reset(info, rngs)
        self._info = info
        self._uniform = Draws(check_rngs(rngs, len(info)), "random", 1)
        self._mixture = Ahead(self._mix)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,)."""
        live = find_available(available, self._info)
        column = draw_actions(self._mixture.take(context, live), self._uniform.next()[:, 0])
        return self._sampler.acts(context, column if live is None else live.at(column))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the distribution that the action is drawn from, given the tables, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return spread(self._mixture.look(context, live).copy(), live)  # a copy: act draws from the original

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._sampler.observe(context, action, outcome)

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._sampler.observe_late(feedback)

    def _mix(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        scores = self._sampler.sample_scores(context, live)  # (B, M, A) or (B, M, n)
        if live is None:
            return least_ratio(*regret_and_information(scores))
        is_live = np.arange(scores.shape[2]) < live.counts[:, None]  # (B, n)
        # Pads score lowest in every table, so they have regret and carry no information.
        scores = np.where(is_live[:, None], scores, scores.min(axis=(1, 2), keepdims=True) - 1)
        return live.share(least_ratio(*regret_and_information(scores)))


def regret_and_information(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return expected regrets Δ and informations v of actions, from M tables' scores (B, M, A), as (B, A) each."""
    is_best = scores.argmax(axis=2)[..., None] == np.arange(scores.shape[2])  # (B, M, A)
    share = is_best.mean(axis=1)  # share of tables in which an action is best, (B, A)
    mean = scores.mean(axis=1)  # (B, A)
    given = np.einsum("bmj,bma->bja", is_best / scores.shape[1], scores)  # (B, A, A), over tables in which j is best
    given /= np.where(share > 0, share, 1)[..., None]
    information = (share[..., None] * (given - mean[:, None]) ** 2).sum(axis=1)  # (B, A)
    regret = (scores.max(axis=2, keepdims=True) - scores).mean(axis=1)  # (B, A); exactly 0 if all tables agree
    return regret, information


def least_ratio(regret: np.ndarray, information: np.ndarray) -> np.ndarray:
    """Return the distributions with the least squared regret per information, (B, A) and (B, A) to (B, A).

    The ratio is convex in the share q of one action of a pair, so its minimum is at 0, at 1 or at the root of its
    derivative. Zero regret with zero information counts as a ratio of 0: there is nothing to learn or lose.
    """
    n_tasks, n_actions = regret.shape
    tasks, columns = np.arange(n_tasks), np.arange(n_actions)
    least, mixture = np.full(n_tasks, np.inf), np.zeros((n_tasks, n_actions))
    mixture[tasks, regret.argmin(axis=1)] = 1  # if no action carries information, no ratio is finite
    for first in range(n_actions):
        drop, gain = regret[:, [first]] - regret, information[:, [first]] - information  # (B, A), against each second
        with np.errstate(divide="ignore", invalid="ignore"):
            root = regret / drop - 2 * information / gain  # of the derivative in q
        for q in (np.ones_like(regret), np.clip(np.nan_to_num(root, nan=1.0, posinf=1.0, neginf=0.0), 0, 1)):
            ratio = _ratio(regret + q * drop, information + q * gain)  # (B, A)
            second = ratio.argmin(axis=1)
            better = ratio[tasks, second] < least
            least = np.where(better, ratio[tasks, second], least)
            share = q[tasks, second][:, None]
            mixed = share * (columns == first) + (1 - share) * (columns == second[:, None])
            mixture = np.where(better[:, None], mixed, mixture)
    return mixture


def _ratio(regret: np.ndarray, information: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = regret**2 / information
    return np.where(regret <= 0, 0.0, np.where(information > 0, found, np.inf))
