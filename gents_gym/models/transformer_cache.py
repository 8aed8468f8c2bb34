"""Keys and values of a transformer's histories: computed once for each row, and shared by all that see them."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

GROWTH = 32  # rows that a cache has room for at first


class View(NamedTuple):
    """What n sequences of each of B tasks see before rows of their own: L layers, H heads of size d."""

    first: Tensor  # keys and values of the first tokens, (L, 2, B, H, n, d)
    shared: Tensor  # those of the task's rows, (L, 2, B, H, C, d); all sequences of a task read the same numbers
    hidden: Tensor  # -inf for rows that are of another action, else 0, (B, 1, n, 1, C)


class Own(NamedTuple):
    """Rows that each sequence has for itself."""

    rows: Tensor  # keys and values, (L, 2, B, H, n, T', d)
    hidden: Tensor  # -inf for rows that do not count, else 0, (B, 1, n, 1, T')

    def until(self, t: int) -> "Own | None":
        """Return the first t rows, which are the same memory; None if there are none."""
        return Own(self.rows[..., :t, :], self.hidden[..., :t]) if t else None


class Cache:
    """The observed rows of B tasks, in the order in which they arrived, and the first tokens of their actions."""

    def __init__(self, model: "TransformerModel", features: Tensor) -> None:
        """Start with empty histories of actions (B, A, F)."""
        self._model = model
        self.first, self.features = _start(model, features)  # (L, 2, B, H, A, d), (B, A, F)
        n_tasks, shape = len(features), list(self.first.shape)
        shape[4] = GROWTH
        self.rows = torch.zeros(shape)  # (L, 2, B, H, ≥C, d)
        self.owner = torch.full((n_tasks, GROWTH), -1)  # the action of each row, (B, ≥C)
        self.count = torch.zeros(n_tasks, dtype=torch.int64)  # rows of each task

    @property
    def length(self) -> int:
        """C, rows of the task that has most."""
        return int(self.count.max())

    def lengths(self, actions: Tensor) -> Tensor:
        """Return how many rows the actions (B, n) have, (B, n)."""
        return (self.owner[:, None, : self.length] == actions[..., None]).sum(-1)

    def view(self, actions: Tensor, tasks: Tensor | slice = slice(None)) -> View:
        """Return what sequences of the actions (B, n) of ``tasks`` see."""
        rows, first = self.rows[:, :, tasks, :, : self.length], self.first[:, :, tasks]
        at = actions[None, None, :, None, :, None].expand(*first.shape[:4], -1, first.shape[5])
        other = self.owner[tasks][:, None, : self.length] != actions[..., None]  # (B, n, C)
        return View(first.gather(4, at), rows, _hide(other))

    def append(self, tasks: Tensor | slice, actions: Tensor, contexts: Tensor, outcomes: Tensor) -> None:
        """Append a row to each of ``tasks``: of the actions (n,), with contexts (n, D) and outcomes (n,)."""
        columns = actions[:, None]
        z = self.features[tasks][torch.arange(len(actions)), actions]
        places = (self.owner[tasks] == columns).sum(1)  # rows of the same action before this one
        self._model.check_length(int(places.max()) + 1)
        token = self._model.observation_tokens(z, contexts, outcomes, places)[:, None, None]  # (n, 1, 1, W)
        own = empty_rows(self._model, len(actions), 1, 1)
        run(self._model, token, self.view(columns, tasks), own)
        self._make_room()
        numbers = torch.arange(len(self.count))[tasks]
        at = self.count[numbers]
        self.rows[:, :, numbers, :, at] = own.rows[:, :, :, :, 0, 0].permute(2, 0, 1, 3, 4)  # (n, L, 2, H, d)
        self.owner[numbers, at] = actions
        self.count[numbers] += 1

    def clear(self, task: int) -> None:
        """Forget all rows of a task."""
        self.owner[task], self.count[task] = -1, 0

    def pick(self, tasks: Tensor) -> "Cache":
        """Return a copy of the tasks at ``tasks``."""
        other = object.__new__(Cache)
        other._model, other.features, other.first = self._model, self.features[tasks], self.first[:, :, tasks]
        other.rows, other.owner, other.count = self.rows[:, :, tasks], self.owner[tasks], self.count[tasks]
        return other

    def add(self, features: Tensor) -> None:
        """Add actions (B, n, F) with empty histories."""
        first, z = _start(self._model, features)
        self.first, self.features = torch.cat([self.first, first], 4), torch.cat([self.features, z], 1)

    def take(self, rows: Tensor, owner: Tensor) -> None:
        """Take rows (B, C, L, 2, H, d) of the actions ``owner`` (B, C), -1 for none, in the place of the present."""
        size = max(GROWTH, owner.shape[1])
        self.rows = torch.zeros(*self.rows.shape[:4], size, self.rows.shape[5])
        self.rows[..., : owner.shape[1], :] = rows.permute(2, 3, 0, 4, 1, 5)
        self.owner = torch.full((len(owner), size), -1)
        self.owner[:, : owner.shape[1]] = owner
        self.count = (owner >= 0).sum(1)

    def plain_rows(self) -> Tensor:
        """Return the rows with the tasks first, (B, C, L, 2, H, d)."""
        return self.rows[..., : self.length, :].permute(2, 4, 0, 1, 3, 5).contiguous()

    def _make_room(self) -> None:
        """Double the room if a task has used all of it."""
        if self.length == self.owner.shape[1]:
            self.rows = torch.cat([self.rows, torch.zeros_like(self.rows)], 4)
            self.owner = torch.cat([self.owner, torch.full_like(self.owner, -1)], 1)


def _start(model: "TransformerModel", features: Tensor) -> tuple[Tensor, Tensor]:
    """Return keys and values of the first tokens of actions (B, A, F), (L, 2, B, H, A, d), and scaled features."""
    shape = features.shape[:2]
    tokens, z = model.first_tokens(features.flatten(0, 1))
    tokens, found = _split(tokens, 0, *shape), []  # (B, A, W)
    for block in model.stack():
        keys, values = block.remember(tokens)  # (B, H, A, d) each
        found.append(torch.stack([keys, values]))
        tokens = block.finish(tokens, values)  # a first token sees itself alone
    return torch.stack(found), _split(z, 0, *shape)


def empty_rows(model: "TransformerModel", n_tasks: int, n: int, n_rows: int) -> Own:
    """Return room for so many rows of each of n sequences of each task."""
    config = model.config
    rows = torch.empty(config.layers, 2, n_tasks, config.heads, n, n_rows, config.width // config.heads)
    return Own(rows, torch.zeros(n_tasks, 1, n, 1, n_rows))


def run(model: "TransformerModel", tokens: Tensor, view: View, own: Own | None = None) -> Tensor:
    """Return the last layer at k tokens of each of n sequences of B tasks, (B, n, k, W).

    With own rows, the first token is the observation whose keys and values become the last of them; all tokens see it,
    and only the layer of those behind it is returned, (B, n, k-1, W).

    Args:
        model: The model.
        tokens: (B, n, k, W).
        view: What the sequences see before rows of their own.
        own: Their own rows, the last one yet to be filled in; None: there are none.
    """
    n, layers = tokens.shape[1], model.stack()
    for i, block in enumerate(layers):
        if own is not None:
            own.rows[i, ..., -1, :] = torch.stack(block.remember(tokens[:, :, 0]))
            if i + 1 == len(layers):
                tokens = tokens[:, :, 1:]
                if not tokens.shape[2]:
                    break
        k, flat = tokens.shape[2], tokens.flatten(1, 2)  # (B, n·k, W)
        found = _attend(_split(block.queries(flat), 2, n, k), i, view, own)  # (B, H, n, k, d)
        tokens = _split(block.finish(flat, found.flatten(2, 3)), 1, n, k)
    return tokens


def _attend(asked: Tensor, layer: int, view: View, own: Own | None) -> Tensor:
    """Return what attention finds for tokens that ask (B, H, n, k, d): one softmax over all that they see."""
    n, k, size = asked.shape[2:]
    asked = asked * size**-0.5
    first_keys, first_values = view.first[layer][..., None, :]  # (B, H, n, 1, d) each
    keys, values = view.shared[layer]  # (B, H, C, d) each
    shared = _split(asked.flatten(2, 3) @ keys.mT, 2, n, k) + view.hidden  # (B, H, n, k, C)
    scores = [(asked * first_keys).sum(-1, keepdim=True), shared]
    if own is not None:
        scores.append(asked @ own.rows[layer, 0].mT + own.hidden)
    weights = torch.softmax(torch.cat(scores, -1), -1)  # (B, H, n, k, 1 + C + t)
    end = 1 + keys.shape[2]
    found = weights[..., :1] * first_values + _split(weights[..., 1:end].flatten(2, 3) @ values, 2, n, k)
    return found if own is None else found + weights[..., end:] @ own.rows[layer, 1]


def _split(tensor: Tensor, axis: int, *sizes: int) -> Tensor:
    """Return the tensor with an axis split into several."""
    return tensor.reshape(*tensor.shape[:axis], *sizes, *tensor.shape[axis + 1 :])


def _hide(other: Tensor) -> Tensor:
    """Return -inf if True, else 0, (B, n, C) to (B, 1, n, 1, C)."""
    return torch.zeros(other.shape).masked_fill_(other, -torch.inf)[:, None, :, None]
