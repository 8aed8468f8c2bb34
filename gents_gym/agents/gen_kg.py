"""A knowledge-gradient agent: it adds to each prediction the value of the observation for later decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gents_gym.agents.ahead import Ahead
from gents_gym.agents.available import Available, find_available
from gents_gym.agents.base import Resettable
from gents_gym.agents.on_model import DEFAULT_MODEL, BeliefHolder, first_task
from gents_gym.agents.ties import Chooser, check_ties
from gents_gym.checks import InputError, check_integer, check_memory, check_number
from gents_gym.models.contexts import check_contexts
from gents_gym.models.load import check_model_name
from gents_gym.models.lookahead import look_ahead
from gents_gym.types import Feedback, Model, Outlook, TaskInfo

COUNTS = 16 ** np.arange(6)  # numbers k of imagined observations, up to the number of decisions left
LEAST_SHARE = 1e-3  # smaller rates of free observations are raised to this, because the formula divides by the rate


@dataclass
class GenKG(Resettable):
    """Plays the action with the highest sum of prediction and value of its observation for later decisions.

    The score of action a in context x is

        score(a) = E[R | a, x] + c · max over k of 1/k · Σ_{s=1}^{L-k} [G(k + ρs) - G(ρs)].

    - L is the number of decisions left, this one included.
    - G(k) is what k more observations of a in x are worth to one later decision: the mean over imagined contexts of
      E[best prediction after them] - best of the E[prediction after them].
    - ρ is the rate at which greedy play learns the same at no cost: the share of imagined contexts in which a has the
      best prediction, each counted by the squared correlation of a's mean rewards there and in x. A greedy agent
      learns G(ρs) in s decisions. If ρ = 0, the sum is the knowledge gradient's (L-k) G(k). If contexts vary, most
      actions are played anyway, and little is gained by playing them now.

    Approximations: only k = 1, 16, 256, ... up to L are tried; G is linear between them and constant after the last;
    the sum is an integral; the k plays are assumed to happen in the present context; later decisions are assumed to be
    greedy and to learn only from the k observations and at the rate ρ; few contexts are imagined. How G is approximated
    depends on the model: see :func:`gents_gym.models.lookahead.find_outlook`, and for the filter's compiled kernel
    :func:`gents_gym.models.lookahead_kernel.look_ahead_filter`.
    """

    model: str | Model = DEFAULT_MODEL  # a preset, a model's id or folder, "exact", package.module:Class, or a model
    c: float = 1.0  # weight of an observation's value; 0: greedy
    contexts: str | None = "own"  # where imagined contexts come from: own, bank, seen, given; None: the model's default
    size: int = 64  # imagined contexts per decision
    discount: float | None = None  # assumes at most 1 / (1 - discount) decisions left; needed without a horizon
    ties: str = "first"  # which of several equally good actions is played: the "first" or a "random" one

    def __post_init__(self) -> None:
        """Check the options."""
        check_number("c", self.c, 0)
        check_integer("size", self.size, 1)
        if self.discount is not None and check_number("discount", self.discount, 0, above=True) >= 1:
            raise InputError(f"discount must be below 1, got {self.discount}")
        check_model_name(self.model)
        check_contexts(self.contexts)
        check_ties(self.ties)

    def check(self, info: TaskInfo) -> None:
        """Raise unless model and context model fit these tasks; only the first is tried."""
        first, rngs, context = first_task(info)
        trial = replace(self)
        trial.reset(first, rngs)
        trial.act(context)

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks."""
        if info.horizon is None and self.discount is None and self.c > 0:
            raise InputError("discount must be given if the horizon is not known, got None")
        check_memory(4 * len(rngs) * self.size * (info.context_dim + info.n_actions), size=self.size, tasks=len(rngs))
        self._held = BeliefHolder(self.model, info, rngs)
        self._choose = Chooser(self.ties, rngs, info.n_actions)
        self._scores = Ahead(self.scores)
        self._info, self._time = info, 0

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the actions (B,) with the highest score."""
        live = find_available(available, self._info)
        return self._held.acts(context, self._choose(self._scores.take(context, live), live))

    def probabilities(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return probability 1 for the action with the highest score, given the imagined contexts, (B, D) to (B, A)."""
        live = find_available(available, self._info)
        return self._choose.probabilities(self._scores.look(context, live), live)

    def scores(self, context: np.ndarray, live: Available | None = None) -> np.ndarray:
        """Return the scores, (B, D) to (B, A), or for the live actions, (B, n), as if no other actions would appear."""
        expected, left = self._held.expected(context, live), self._left()
        if self.c == 0 or left < 2:
            return expected
        counts = COUNTS[left >= COUNTS]
        columns = None if live is None else live.actions
        outlook = look_ahead(self._held.belief, self._info, context, counts, self.size, self.contexts, columns)
        return expected + self.c * worth(outlook, counts, left)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Update the model with the played actions and their outcomes."""
        self._held.observe(context, action, outcome)
        self._time += 1

    def observe_late(self, feedback: Feedback) -> None:
        """Update the model with the played actions and the outcomes that arrived."""
        self._held.observe_late(feedback)
        self._time += 1

    def _left(self) -> float:
        """Return L."""
        known = np.inf if self._info.horizon is None else self._info.horizon - self._time
        return float(min(known, np.inf if self.discount is None else 1 / (1 - self.discount)))


def worth(outlook: Outlook, counts: np.ndarray, left: float) -> np.ndarray:
    """Return the value of one observation now with ``left`` decisions left, (B, A): per observation, for the best k."""
    gains = np.maximum.accumulate(np.maximum(outlook.gains.astype(np.float64), 0), axis=2)  # (B, A, n)
    rate = np.maximum(outlook.shares.astype(np.float64), LEAST_SHARE)[..., None]  # (B, A, 1)
    after = np.maximum(left - counts, 0)  # (n,)
    free = rate * after  # (B, A, n)
    curve = Curve(counts, gains)
    total = (curve.integral(free + counts) - curve.integral(free) - curve.at_counts()) / rate
    return np.asarray((total / counts).max(axis=2))


class Curve:
    """Functions of the number of observations: 0 at 0, linear between the counts, constant after the last."""

    def __init__(self, counts: np.ndarray, gains: np.ndarray) -> None:
        """Store the values (B, A, n) at the counts (n,)."""
        zero = np.zeros_like(gains[..., :1])
        self._at = np.concatenate([[0], counts])  # (n+1,)
        self._values = np.concatenate([zero, gains], axis=2)
        widths = np.diff(self._at)
        areas = np.cumsum(widths * (self._values[..., 1:] + self._values[..., :-1]) / 2, axis=2)
        self._areas = np.concatenate([zero, areas], axis=2)
        self._slopes = np.concatenate([np.diff(self._values, axis=2) / widths, zero], axis=2)

    def at_counts(self) -> np.ndarray:
        """Return the integrals from 0 to each count, (B, A, n)."""
        return self._areas[..., 1:]

    def integral(self, end: np.ndarray) -> np.ndarray:
        """Return the integrals from 0 to each end, (B, A, n)."""
        piece = np.searchsorted(self._at, end, side="right") - 1
        along = end - self._at[piece]
        area, value, slope = (np.take_along_axis(p, piece, 2) for p in (self._areas, self._values, self._slopes))
        return np.asarray(area + along * (value + along * slope / 2))
