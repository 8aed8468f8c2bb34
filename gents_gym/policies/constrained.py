"""Fits policies that treat two groups of contexts alike."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_array, check_integer, check_number, check_reward_fn
from gents_gym.construct import make_policy
from gents_gym.policies.logistic import Logistic, LogisticPolicy
from gents_gym.policies.tilts import search
from gents_gym.types import Policy, PolicyClass, RewardFn, identity

ROUNDING = 1e-9  # tolerance for a difference of two rates


@dataclass(frozen=True, eq=False)
class Lean:
    """A score of how much a context looks like group 1 rather than group 2, between -1 and 1 on both groups."""

    membership: LogisticPolicy  # for one task and one action: P(group 1 | context)
    scale: float = 1.0

    @classmethod
    def between(cls, group1: np.ndarray, group2: np.ndarray) -> "Lean":
        """Learn to distinguish (N1, D) contexts from (N2, D), with equal weight on both groups."""
        contexts = np.concatenate([group1, group2])
        labels = np.repeat([1.0, 0.0], [len(group1), len(group2)])
        weights = np.where(labels == 1, len(group2), len(group1)) * (2 / len(labels))
        lean = cls(Logistic().fit(contexts[None], labels[None, :, None], weights=weights[None, :, None]))
        return replace(lean, scale=1 / max(np.abs(lean(contexts)).max(), 1e-12))

    def __call__(self, context: np.ndarray) -> np.ndarray:
        """Return (..., D) to (...)."""
        rows = context.reshape(1, -1, context.shape[-1])
        chances = self.membership.probability(rows)[0, :, 0]
        return ((2 * chances - 1) * self.scale).reshape(context.shape[:-1])


@dataclass(frozen=True, eq=False)
class ConstrainedPolicy:
    """A fitted policy with a tilt for each action: an offset, and a slope on the score of the context."""

    base: Policy
    lean: Lean
    tilts: np.ndarray  # (B, 2, A): offsets and slopes

    def scores(self, context: np.ndarray) -> np.ndarray:
        """Return tilted predicted rewards, (B, D) to (B, A) or (B, T, D) to (B, T, A)."""
        tilts = self.tilts if np.ndim(context) == 2 else self.tilts[:, :, None]  # (B, 2, A) or (B, 2, 1, A)
        return self.base.scores(context) + tilts[:, 0] + tilts[:, 1] * self.lean(np.asarray(context))[..., None]


@dataclass(eq=False)
class Constrained:
    """Maximises reward subject to |rate of action a in group 1 - its rate in group 2| ≤ ε.

    The policies play argmax_a r(x, a) + c_a + d_a·lean(x), where r are the predicted rewards of a base class and
    lean(x) distinguishes the groups; the optimum of the Lagrangian has this form. The tilts c and d maximise the mean
    of r over the table's contexts, because the base class maximises r, and unlike outcomes r is known in every cell. A
    base policy that satisfies the constraint stays unchanged.
    """

    group1: Any  # contexts (N1, D), or the path of an .npy file with them
    group2: Any  # contexts (N2, D), or a path
    epsilon: float  # the largest difference of rates
    actions: Sequence[int] | None = None  # the actions under the constraint; None: all
    base: str | PolicyClass = "logistic"  # the class whose policies are tilted
    sweeps: int = 1  # passes of the search for tilts: more passes find better tilts, and take longer
    reward_fn: RewardFn = identity  # R, for a base class given by name

    def __post_init__(self) -> None:
        """Check the options."""
        check_reward_fn(self.reward_fn)
        check_number("epsilon", self.epsilon, 0)
        check_integer("sweeps", self.sweeps, 1)
        self.group1, self.group2 = _read_group("group1", self.group1), _read_group("group2", self.group2)
        _check_size("group2", self.group2, self.group1)
        if self.actions is not None:
            _check_actions(self.actions)
        self._base: Any = self.base
        if isinstance(self.base, str):
            self._base = make_policy(self.base, reward_fn=self.reward_fn)
        if not hasattr(self._base, "fit"):
            raise InputError(f"base must be a policy class's id or have fit, got {self.base!r}")
        if getattr(self._base, "reward_fn", self.reward_fn) is not self.reward_fn:
            raise InputError(f"base must have the same reward_fn, {self.reward_fn!r}, got {self._base.reward_fn!r}")
        self._lean = Lean.between(self.group1, self.group2)

    @property
    def likelihoods(self) -> tuple[type, ...] | None:
        """The kinds of outcomes that the base class takes; None: it does not specify them."""
        return getattr(self._base, "likelihoods", None)

    def fit(
        self,
        contexts: np.ndarray,
        outcomes: np.ndarray,
        warm_start: ConstrainedPolicy | None = None,
        weights: np.ndarray | None = None,
    ) -> ConstrainedPolicy:
        """Fit the base class, and tilt those of its B policies that break the constraint.

        Args:
            contexts: (B, T, D).
            outcomes: (B, T, A).
            warm_start: An earlier solution; the base class starts from its own part.
            weights: (B, T, A), for a base class that takes them.
        """
        rows = check_array("contexts", contexts, "(B, T, D)", (-1, -1, -1), np.float64)
        _check_size("contexts", rows, self.group1)
        options = {} if weights is None else {"weights": weights}
        if options and "weights" not in inspect.signature(self._base.fit).parameters:
            raise InputError(f"base must have fit(..., weights) if weights are given, got {self.base!r}")
        start = None if warm_start is None else warm_start.base
        base = self._base.fit(contexts, outcomes, warm_start=start, **options)
        n_actions = np.shape(outcomes)[2]
        limited = self._limited(n_actions)
        policy = ConstrainedPolicy(base, self._lean, np.zeros((len(rows), 2, n_actions)))
        if (broken := self._breaks(policy, limited)).any():
            self._tilt(policy, rows, broken, limited)
        return policy

    def _tilt(self, policy: ConstrainedPolicy, rows: np.ndarray, broken: np.ndarray, limited: np.ndarray) -> None:
        """Tilt the policies of the ``broken`` (B,) tasks, in place."""
        group = np.repeat([0, 1, 2], [rows.shape[1], len(self.group1), len(self.group2)])  # (P,)
        points = np.concatenate([rows, self._groups(len(rows))], axis=1)  # (B, P, D)
        rewards = np.asarray(policy.base.scores(points), np.float64)[broken]
        rewards = np.ascontiguousarray(rewards.swapaxes(1, 2))  # (B', A, P)
        single = _single_action(rewards, group)
        tilts = single.copy()
        search(rewards, self._lean(points[broken]), group, float(self.epsilon) + ROUNDING, limited, self.sweeps, tilts)
        policy.tilts[broken] = tilts
        # Predictions may round differently for another number of rows and undo a choice; always playing one action is
        # safe.
        left = self._breaks(policy, limited)[broken]
        policy.tilts[broken] = np.where(left[:, None, None], single, tilts)

    def _limited(self, n_actions: int) -> np.ndarray:
        """Return which actions are under the constraint, (A,)."""
        limited = np.full(n_actions, self.actions is None)
        for action in self.actions or ():
            if action >= n_actions:
                raise InputError(f"actions must lie in [0, {n_actions}), got {action}")
            limited[action] = True
        return limited

    def _groups(self, n_tasks: int) -> np.ndarray:
        """Return both groups' contexts for each task, (B, N1+N2, D)."""
        both = np.concatenate([self.group1, self.group2])
        return np.broadcast_to(both, (n_tasks, *both.shape))

    def _breaks(self, policy: ConstrainedPolicy, limited: np.ndarray) -> np.ndarray:
        """Return which tasks' policies break the constraint, (B,)."""
        played = policy.scores(self._groups(len(policy.tilts))).argmax(axis=2)  # (B, N1+N2)
        chosen = played[..., None] == np.flatnonzero(limited)
        size = len(self.group1)
        differences = np.abs(chosen[:, :size].mean(axis=1) - chosen[:, size:].mean(axis=1))
        return (differences > self.epsilon + ROUNDING).any(axis=1)


def _single_action(rewards: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return offsets that always play the best single action, which satisfies every constraint, (B, 2, A)."""
    n_tasks, n_actions, _ = rewards.shape
    best = rewards[:, :, group == 0].mean(axis=2).argmax(axis=1)
    tilts = np.zeros((n_tasks, 2, n_actions))
    tilts[np.arange(n_tasks), 0, best] = np.ptp(rewards, axis=(1, 2)) + 1
    return tilts


def _read_group(name: str, value: Any) -> np.ndarray:
    """Return a group's contexts, (N, D), given as an array or as the path of a file."""
    if isinstance(value, str | Path):
        try:
            value = np.load(value, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"{name} must be contexts or the path of an .npy file, got {str(value)!r} ({error})"
            ) from error
    group = check_array(name, value, "(N, D)", (-1, -1), np.float64)
    check_integer(f"the number of contexts in {name}", len(group), 1)
    check_integer(f"the context size D of {name}", group.shape[1], 1)
    return group


def _check_size(name: str, contexts: np.ndarray, group1: np.ndarray) -> None:
    if contexts.shape[-1] != group1.shape[1]:
        raise InputError(f"{name} must have group1's context size D={group1.shape[1]}, got {contexts.shape[-1]}")


def _check_actions(actions: Any) -> None:
    """Raise unless ``actions`` are action numbers, each once."""
    if not isinstance(actions, Sequence) or isinstance(actions, str) or not actions:
        raise InputError(f"actions must be None or a list of action numbers, got {actions!r}")
    for action in actions:
        check_integer("actions", action, 0)
    if len(set(actions)) < len(actions):
        raise InputError(f"actions must name each action once, got {actions!r}")
