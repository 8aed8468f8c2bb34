"""Keys and values of a transformer's histories: computed once for each row, and shared by all that see them."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  # compiled products call it; its threads are limited once it is loaded
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from gents_gym.models.transformer_kernel import PAGE, generate, read_stack, run_stack

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel


class Sequences(NamedTuple):
    """Histories of N sequences: their pages, of which full ones may be shared, and how many rows they have."""

    pages: np.ndarray  # (N, ·)
    lengths: np.ndarray  # (N,), with the first token


class Cache:
    """The observed rows of the actions of B tasks, in the order in which they arrived, behind their first tokens.

    They are in pages of a pool. Each action has pages of its own. Rows that a sequence imagines are in pages behind
    those, which the next ones to imagine overwrite.
    """

    def __init__(self, model: "TransformerModel", features: Tensor) -> None:
        """Start with empty histories of actions (B, A, F)."""
        self._model, self._stack = model, read_stack(model)
        n_tasks = len(features)
        self._pool = np.empty((0, model.config.layers, 2 * PAGE * self._stack.mix.shape[1]), np.float32)
        self._used = 0  # pages of actions
        self._pages = np.empty((n_tasks, 0, 1), np.int64)  # (B, A, ·): -1 for none
        self._lengths = np.empty((n_tasks, 0), np.int64)  # (B, A), with the first token
        self.features = torch.empty(n_tasks, 0, model.config.action_dim)  # in the model's units, (B, A, F)
        self.add(features)

    def lengths(self, actions: np.ndarray, tasks: slice = slice(None)) -> np.ndarray:
        """Return how many rows the actions (B, n) of ``tasks`` have, (B, n)."""
        return np.take_along_axis(self._lengths[tasks], actions, 1) - 1

    def append(self, tasks: np.ndarray, actions: np.ndarray, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Append a row to actions (n,) of different tasks (n,), with contexts (n, D) and outcomes (n,)."""
        places = self._lengths[tasks, actions] - 1
        self._model.check_places(int(places.max()) + 1)
        row = (torch.from_numpy(part) for part in (contexts, outcomes, places))
        self._append(tasks, actions, self._model.observation_tokens(self.features[tasks, actions], *row))

    def drop(self, tasks: np.ndarray, rows: np.ndarray) -> None:
        """Drop the last rows of tasks (n,), so many of each action, (n, A)."""
        self._lengths[tasks] -= rows

    def pick(self, tasks: np.ndarray) -> "Cache":
        """Return a copy of the tasks at ``tasks``."""
        other = object.__new__(Cache)
        other._model, other._stack, other.features = self._model, self._stack, self.features[tasks]
        other._lengths, other._pages = self._lengths[tasks], self._pages[tasks]
        there = other._pages >= 0
        other._used = int(there.sum())
        other._pool = _aligned(other._used, *self._pool.shape[1:])
        np.take(self._pool, other._pages[there], 0, other._pool, "clip")  # this mode does not buffer
        other._pages[there] = np.arange(other._used)
        return other

    def add(self, features: Tensor) -> None:
        """Add actions (B, n, F) with empty histories."""
        n_tasks, n = features.shape[:2]
        if not n:
            return
        tokens, z = self._model.first_tokens(features.flatten(0, 1))
        tasks, actions = np.divmod(np.arange(n_tasks * n), n)
        actions += self._lengths.shape[1]
        self.features = torch.cat([self.features, z.reshape(n_tasks, n, -1)], 1)
        self._lengths = np.pad(self._lengths, ((0, 0), (0, n)))
        self._pages = np.pad(self._pages, ((0, 0), (0, n), (0, 0)), constant_values=-1)
        self._append(tasks, actions, tokens)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed rows (B, C, L, 2, H, d), those of an action together, and their actions (B, C), or -1."""
        counts = self._lengths - 1
        tasks, actions = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
        columns = np.arange(len(tasks)) - (counts.sum(1).cumsum() - counts.sum(1))[tasks]
        places = columns - (counts.cumsum(1) - counts)[tasks, actions] + 1
        owner = np.full((len(counts), counts.sum(1).max()), -1)
        owner[tasks, columns] = actions
        (keys, values), pages = self._split(), self._pages[tasks, actions, places // PAGE]
        rows = np.zeros((*owner.shape, len(keys[0]), 2, *keys.shape[2:4]), np.float32)
        rows[tasks, columns, :, 0] = keys[pages, :, :, :, places % PAGE]
        rows[tasks, columns, :, 1] = values[pages, :, places % PAGE]
        return rows, owner

    def take(self, rows: np.ndarray, owner: np.ndarray) -> None:
        """Take rows (B, C, L, 2, H, d) of the actions ``owner`` (B, C), -1 for none, in the place of the present."""
        self._lengths[:] = 1
        for column in range(owner.shape[1]):
            tasks = np.flatnonzero(owner[:, column] >= 0)
            history = self._open(tasks, owner[tasks, column])
            pages, row = history.pages[np.arange(len(tasks)), history.lengths // PAGE], history.lengths % PAGE
            keys, values = self._split()
            keys[pages, :, :, :, row], values[pages, :, row] = np.moveaxis(
                rows[tasks, column], 2, 0
            )  # (n, L, H, d) each
            self._lengths[tasks, owner[tasks, column]] += 1

    def sequences(self, actions: np.ndarray, n_rows: int = 0, tasks: slice = slice(None)) -> Sequences:
        """Return the histories of actions (B, n) of ``tasks``, with room for so many rows that each imagines.

        Their full pages are those of the actions. With room, the rest is a copy, which is valid until the next call.
        """
        at = np.arange(len(self._lengths))[tasks][:, None], actions
        lengths, pages = self._lengths[at].ravel(), self._pages[at].reshape(actions.size, -1)
        if not n_rows:
            return Sequences(pages, lengths)
        full, number = lengths // PAGE, int((lengths.max() + n_rows - 1) // PAGE) + 1
        pages = np.pad(pages[:, :number], ((0, 0), (0, max(0, number - pages.shape[1]))))
        own = (np.arange(number) >= full[:, None]) & (np.arange(number) * PAGE < lengths[:, None] + n_rows)
        partly = np.flatnonzero(lengths % PAGE)
        copied = pages[partly, full[partly]]
        pages[own] = self._used + np.arange(own.sum())
        self._reserve(own.sum())
        self._pool[pages[partly, full[partly]]] = self._pool[copied]
        return Sequences(pages, lengths)

    def run(self, tokens: Tensor, history: Sequences, tells: bool) -> Tensor:
        """Return the network's outputs at tokens (N, k, W) behind the histories.

        With ``tells``, the first token is a row, which the others see: its keys and values are written behind those of
        the history, and the outputs are those of the others.
        """
        with _threads().limit(limits=1, user_api="blas"):
            outputs = run_stack(self._stack, tokens.numpy(), tells, self._pool, *history)
        return torch.from_numpy(outputs[:, int(tells) :])

    def generate(
        self, asked: Tensor, told: Tensor, changes: Tensor, noise: np.ndarray, known: np.ndarray, history: Sequences
    ) -> tuple[np.ndarray, Tensor]:
        """Return outcomes of rows behind the histories, (T, N), and outputs, (T, N, O); see :func:`generate`."""
        scaling = self._model.outcome_scaling if self._model.likelihood.support is None else torch.empty(0)
        tokens = [part.numpy() for part in (asked, told, changes)]
        given = [noise, known, scaling.numpy(), self._pool, *history]
        with _threads().limit(limits=1, user_api="blas"):
            table, outputs = generate(self._stack, *tokens, *given)
        return table, torch.from_numpy(outputs)

    def _append(self, tasks: np.ndarray, actions: np.ndarray, tokens: Tensor) -> None:
        """Append tokens (n, W) to histories that differ from each other."""
        self.run(tokens[:, None], self._open(tasks, actions), True)
        self._lengths[tasks, actions] += 1

    def _open(self, tasks: np.ndarray, actions: np.ndarray) -> Sequences:
        """Return the histories of actions (n,) of tasks (n,), with room for a row more."""
        lengths = self._lengths[tasks, actions]
        number = int(lengths.max(initial=0)) // PAGE + 1
        if number > self._pages.shape[2]:
            self._pages = np.pad(self._pages, ((0, 0), (0, 0), (0, number)), constant_values=-1)
        new = self._pages[tasks, actions, lengths // PAGE] < 0
        self._reserve(new.sum())
        self._pages[tasks[new], actions[new], lengths[new] // PAGE] = self._used + np.arange(new.sum())
        self._used += int(new.sum())
        return Sequences(self._pages[tasks, actions], lengths)

    def _reserve(self, number: int) -> None:
        """Make room for so many pages more."""
        if self._used + number > len(self._pool):
            old = self._pool
            self._pool = _aligned(2 * (self._used + number), *old.shape[1:])
            self._pool[: self._used] = old[: self._used]

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pool's keys (pages, L, H, d, rows) and values (pages, L, rows, H, d), the same memory."""
        config, (number, n_layers, _) = self._model.config, self._pool.shape
        keys, values = np.split(self._pool, 2, 2)
        size = config.width // config.heads
        keys = keys.reshape(number, n_layers, config.heads, -1, PAGE)[..., :size, :]
        return keys, values.reshape(number, n_layers, PAGE, config.heads, -1)[..., :size]


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    """Return what limits the threads of products: those of one block are too small for two threads."""
    return ThreadpoolController()


def _aligned(*shape: int) -> np.ndarray:
    """Return room for float32 numbers that starts at a cache line, so that registers are loaded from one each."""
    room = np.zeros(math.prod(shape) + 16, np.float32)  # heads are padded, and the padding is read
    start = -room.ctypes.data // 4 % 16
    return room[start : start + math.prod(shape)].reshape(shape)
