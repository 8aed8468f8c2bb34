"""A wide prior over settings: every task draws its own contexts, outcomes and sizes, for a model that plays any."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr, softmax

from gents_gym.checks import check_count, check_integer, check_memory
from gents_gym.likelihoods import BERNOULLI, check_reward
from gents_gym.randomness import stream
from gents_gym.tasks.nonlinear import bend, nonlinear_features
from gents_gym.types import ActionRows, RewardFn, Tasks, identity

KINDS = {"plain": 0.65, "uniform": 0.1, "skewed": 0.1, "binary": 0.1, "constant": 0.05}  # of context entries
CURVES = {"linear": 0.4, "products": 0.15, "network": 0.2, "tree": 0.1, "groups": 0.15}  # what scores depend on
LABELS = 0.5  # share of tasks in which one of several labels is right
CLASSES = 0.7  # share of those with groups in which each group of contexts has one label, as classes have
GROUPED = 0.5  # share of tasks whose contexts are in groups
MOST_LABELS = 10
SPLITS = 3  # of a tree
SAME = 0.05  # share of tasks whose contexts are all the same
Scores = Callable[[np.random.Generator, np.ndarray, np.ndarray | None, int], np.ndarray]


@dataclass(frozen=True)
class General:
    """Tasks of many settings with binary outcomes.

    A task draws how many entries its contexts have, from 1 to D; the others, always the last ones, are 0. Entries may
    be correlated, in groups, uniform, skewed, binary or constant, in units of their own. Outcomes depend on scores, one
    per action: linear in all or a few entries, or with products, a random network, a tree or a value of each group.
    In half of the tasks, an outcome is 1 with probability σ(W), where W has a base rate and a scale that the task
    draws. In the others, one of 2 to 10 labels is right, and an action is 1 if its label is; labels follow the scores
    or, as in many data sets, the groups of contexts. Action features are a constant 1.
    """

    n_actions: int = 5  # A
    horizon: int = 200  # T
    context_dim: int = 10  # D, the most entries that a task's contexts have
    reward_fn: RewardFn = identity  # R

    def __post_init__(self) -> None:
        """Check the options."""
        check_integer("n_actions", self.n_actions, 2)
        check_integer("horizon", self.horizon, 1)
        check_integer("context_dim", self.context_dim, 1)
        check_reward(self.reward_fn)

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        contexts, outcomes, chances = self._draw(seed, "task", indices, split, self.horizon, self.n_actions)
        return Tasks(
            np.ones((len(contexts), self.n_actions, 1), np.float32),
            contexts,
            outcomes,
            BERNOULLI.expected_reward(self.reward_fn, chances),
            reward_fn=self.reward_fn,
            likelihood=BERNOULLI,
        )

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream, each of its own task."""
        n_rows = check_integer("n_rows", n_rows, 1)
        contexts, outcomes, _ = self._draw(seed, "actions", indices, split, n_rows, 1)
        features = np.ones((len(contexts), 1), np.float32)
        return ActionRows(features, contexts, outcomes[:, :, 0], self.reward_fn, likelihood=BERNOULLI)

    def _draw(
        self, seed: int, role: str, indices: Sequence[int], split: str, n_rows: int, n_actions: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X (B, T, D), Y (B, T, A) and P(Y=1), (B, T, A)."""
        count = check_count("indices", indices)
        check_memory(4 * count * n_rows * (self.context_dim + 2 * n_actions), tasks=count, rows=n_rows)
        contexts = np.zeros((count, n_rows, self.context_dim), np.float32)
        outcomes, chances = np.empty((2, count, n_rows, n_actions), np.float32)
        for i, index in enumerate(indices):
            rng = stream(seed, role, index, split)
            size = int(rng.integers(1, self.context_dim + 1))
            plain, groups = _draw_contexts(rng, n_rows, size)
            contexts[i, :, :size] = _change_units(rng, plain)
            outcomes[i], chances[i] = _draw_outcomes(rng, plain, groups, n_actions)
        return contexts, outcomes, chances


def _draw_contexts(rng: np.random.Generator, n_rows: int, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return contexts of about unit variance, (T, d), and their groups, (T,), if they are in groups."""
    mixing = np.eye(size) + (rng.random() < 0.5) * rng.uniform(0, 2) * rng.standard_normal((size, size)) / size**0.5
    mixing /= np.linalg.norm(mixing, axis=0)
    apart = rng.uniform(0.5, 0.98) if rng.random() < GROUPED else 0.0  # how much of the spread is between groups
    rank = int(rng.integers(1, size + 1)) if rng.random() < 0.5 else size  # directions in which groups differ
    axes = np.linalg.qr(rng.standard_normal((size, rank)))[0]  # (d, rank)
    centres = rng.standard_normal((rng.integers(2, MOST_LABELS + 1), rank))
    groups = rng.integers(len(centres), size=n_rows)
    normal = rng.standard_normal((n_rows, size)) @ mixing
    contexts = normal + (apart * centres[groups] - (1 - np.sqrt(1 - apart**2)) * normal @ axes) @ axes.T
    kinds = rng.choice(list(KINDS), size=size, p=list(KINDS.values()))
    for j, kind in enumerate(kinds):
        contexts[:, j] = _bend_entry(rng, contexts[:, j], kind)
    return contexts * (rng.random() >= SAME), groups if apart else None


def _bend_entry(rng: np.random.Generator, entry: np.ndarray, kind: str) -> np.ndarray:
    """Return one entry of all contexts in the distribution of its kind, (T,)."""
    if kind == "uniform":
        return (ndtr(entry) - 0.5) * 12**0.5
    if kind == "skewed":
        return np.exp(entry.clip(-4, 2)) - 1
    if kind == "binary":
        return np.where(entry > rng.uniform(-1, 1), 1.0, -1.0)
    return np.zeros_like(entry) if kind == "constant" else entry


def _change_units(rng: np.random.Generator, contexts: np.ndarray) -> np.ndarray:
    """Return contexts with another unit and origin, which say nothing of outcomes; half of the tasks keep theirs."""
    size, own = contexts.shape[1], rng.random() < 0.5
    scale = np.exp(own * (0.5 * rng.standard_normal() + 0.3 * rng.standard_normal(size)))
    return scale * (contexts + own * rng.standard_normal(size))


def _draw_outcomes(
    rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_actions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes and their chances, (T, A) each, in contexts (T, d) of groups (T,) or none."""
    curve = _CURVES[rng.choice(len(_CURVES), p=list(CURVES.values()))]
    if rng.random() >= LABELS:
        spread = np.exp(rng.uniform(np.log(0.25), np.log(8)))
        base = rng.normal(-0.3, 1.3) + rng.uniform(0, 1.5) * rng.standard_normal(n_actions)
        chances = expit(base + spread * curve(rng, contexts, groups, n_actions))
        return BERNOULLI.sample(chances, rng.random(chances.shape)), chances
    n_labels = int(rng.integers(2, MOST_LABELS + 1))
    noise = rng.uniform(0, 0.4) if rng.random() < 0.5 else 0.0
    if groups is not None and rng.random() < CLASSES:
        clear = np.eye(n_labels)[np.resize(rng.permutation(n_labels), MOST_LABELS)[groups]]  # (T, n)
    else:
        scores = curve(rng, contexts, groups, n_labels) + rng.uniform(0, 0.7) * rng.standard_normal(n_labels)
        clear = softmax(np.exp(rng.uniform(0, np.log(30))) * scores, axis=1)
    right = (1 - noise) * clear + noise / n_labels
    label = (rng.random((len(right), 1)) > right.cumsum(axis=1)[:, :-1]).sum(axis=1)  # (T,)
    own = np.resize(rng.permutation(n_labels), n_actions)  # the label of each action
    return (label[:, None] == own).astype(np.float32), right[:, own]


def _linear(rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_scores: int) -> np.ndarray:
    """Return scores (T, n) that are linear in all entries or in a few."""
    size = contexts.shape[1]
    used = rng.permutation(size)[: rng.integers(1, size + 1) if rng.random() < 0.5 else size]
    slopes = rng.standard_normal((len(used), n_scores))
    return contexts[:, used] @ slopes / len(used) ** 0.5


def _products(rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_scores: int) -> np.ndarray:
    """Return scores (T, n) that also depend on products and bends of a few entries."""
    used = rng.permutation(contexts.shape[1])[: rng.integers(1, 5)]
    features = nonlinear_features(contexts[:, used]) if len(used) > 1 else bend(contexts[:, used])
    curved = features @ rng.standard_normal((features.shape[1], n_scores)) / features.shape[1] ** 0.5
    return curved + rng.uniform(0, 1) * _linear(rng, contexts, groups, n_scores)


def _network(rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_scores: int) -> np.ndarray:
    """Return scores (T, n) of a random network with one hidden layer."""
    size, width = contexts.shape[1], int(rng.integers(2, 17))
    first = rng.uniform(0.5, 3) * rng.standard_normal((size, width)) / size**0.5
    hidden = np.tanh(contexts @ first + rng.standard_normal(width))
    return hidden @ rng.standard_normal((width, n_scores)) * (1.5 / width**0.5)


def _tree(rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_scores: int) -> np.ndarray:
    """Return scores (T, n) of the leaves of a tree whose splits are the same at each depth."""
    entries, levels = rng.integers(contexts.shape[1], size=SPLITS), 0.7 * rng.standard_normal(SPLITS)
    leaf = (contexts[:, entries] > levels) @ 2 ** np.arange(SPLITS)
    found: np.ndarray = rng.standard_normal((2**SPLITS, n_scores))[leaf]
    return found


def _groups(rng: np.random.Generator, contexts: np.ndarray, groups: np.ndarray | None, n_scores: int) -> np.ndarray:
    """Return scores (T, n) of the groups of contexts; linear ones if there are no groups."""
    if groups is None:
        return _linear(rng, contexts, groups, n_scores)
    found: np.ndarray = rng.standard_normal((MOST_LABELS, n_scores))[groups]
    return found


_CURVES: tuple[Scores, ...] = (_linear, _products, _network, _tree, _groups)
