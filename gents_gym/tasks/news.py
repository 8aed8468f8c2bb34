"""The paper's semi-synthetic news setting: bandit tasks whose actions are headlines of a corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.randomness import SPLITS, stream
from gents_gym.tasks.headlines.corpus import Corpus, load_corpus
from gents_gym.tasks.logistic import LogisticSetting, draw_numbers, draw_outcomes, latents_shape
from gents_gym.types import ActionRows, Tasks


def context_features(contexts: np.ndarray) -> np.ndarray:
    """Return φ_X, (..., D) to (..., D-1): all entries but the last, times the sign of the last."""
    return contexts[..., :-1] * np.sign(contexts[..., -1:])


@dataclass(frozen=True)
class News(LogisticSetting):
    """Headlines as actions: agents see embeddings and texts, outcomes depend on sentiment and formality.

    As in :class:`gents_gym.tasks.synthetic.Synthetic`, with φ_X(X) = X_{1:4}·sign(X_5) instead of X, and the headline's
    normalised sentiment and formality φ_Z instead of Z. The streams "train", "validation" and "test" draw from the
    corpus's splits of these names, so that agents are evaluated on headlines that nobody trained on. The actions of a
    task are distinct; the same headline may appear in many tasks, with new coefficients each time.
    """

    smallest_context: ClassVar[int] = 3  # two entries for the cross term, and the one whose sign counts

    corpus: str | None = None  # folder of a prepared corpus; None: the bundled one, whose texts are synthetic
    headlines: Corpus = field(init=False, repr=False, compare=False)  # the corpus itself

    def __post_init__(self) -> None:
        """Check the options and open the corpus."""
        super().__post_init__()
        if self.corpus is not None and not isinstance(self.corpus, str):
            raise InputError(f"corpus must be a folder's name or None, got {self.corpus!r}")
        object.__setattr__(self, "headlines", load_corpus(self.corpus))
        for split, rows in self.headlines.splits.items():
            if len(rows) < self.n_actions:
                rule = f"n_actions must be at most the {len(rows)} headlines of the corpus's split {split!r}"
                raise InputError(f"{rule}, got {self.n_actions}")

    def sample(self, seed: int, indices: Sequence[int], split: str = "test") -> Tasks:
        """Return the tasks at ``indices`` of the stream (seed, split)."""
        rngs = self._task_streams(seed, indices, split)
        pool = self.headlines.splits[split]
        picked = [pool[rng.choice(len(pool), self.n_actions, replace=False)] for rng in rngs]
        rows = np.array(picked, np.int64).reshape(-1, self.n_actions)  # (B, A)
        contexts, outcomes, chances = self._draw(rngs, rows, self.horizon)
        return Tasks(
            self.headlines.embeddings[rows],
            contexts,
            outcomes,
            self.likelihood.expected_reward(self.reward_fn, chances),
            oracle="mlp",
            reward_fn=self.reward_fn,
            hidden_features=self.headlines.scores[rows],
            texts=self.headlines.texts[rows],
            space=self.headlines.space,
            likelihood=self.likelihood,
            truth=self.truth,
        )

    @property
    def context_map(self) -> Callable[[np.ndarray], np.ndarray]:
        """φ_X."""
        return context_features

    @property
    def n_slopes(self) -> int:
        """D', the size of φ_X."""
        return self.context_dim - 1

    def sample_actions(self, seed: int, indices: Sequence[int], n_rows: int, split: str = "train") -> ActionRows:
        """Return ``n_rows`` rows of each of the single actions at ``indices`` of the stream.

        Action i is headline i of the split in a random order given by the seed; after the last one it starts again.
        """
        n_rows = check_integer("n_rows", n_rows, 1)
        pool = self.headlines.splits[check_choice("split", split, SPLITS)]
        order = stream(seed, "headlines", 0, split).permutation(pool)
        rngs = self._action_streams(seed, indices, n_rows, split)
        rows = order[[index % len(order) for index in indices]][:, None]  # (N, 1)
        contexts, outcomes, _ = self._draw(rngs, rows, n_rows)
        features, hidden = self.headlines.embeddings[rows[:, 0]], self.headlines.scores[rows[:, 0]]
        space, likelihood = self.headlines.space, self.likelihood
        return ActionRows(features, contexts, outcomes[:, :, 0], self.reward_fn, hidden, space, likelihood)

    def _draw(self, rngs: list[np.random.Generator], rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, ...]:
        """Draw X (B, T, D), Y (B, T, A) and P(Y=1) (B, T, A) for the headlines ``rows`` (B, A)."""
        n_actions = rows.shape[1]
        shapes = [latents_shape(n_actions, self.n_slopes), (n_rows, self.context_dim)]
        (latents, contexts), uniform = draw_numbers(rngs, shapes, n_rows, n_actions, self.context_spread)
        scores = self.headlines.scores[rows]  # (B, A, 2)
        return contexts, *draw_outcomes(scores, latents, context_features(contexts), uniform)
