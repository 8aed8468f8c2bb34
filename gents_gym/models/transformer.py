"""The ``transformer`` model: an action's rows as tokens, and attention from each row to the rows before it.

The first token holds the action's features Z. Row t has two tokens: a query, which holds its context, and an
observation, which holds its context and outcome. Both see the first token and the observations of earlier rows; an
observation also sees itself. Nothing sees a query. So keys and values come from observations alone, and those of a
history stay as they are when a row is appended: they are the cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import (
    cross_entropy,
    linear,
    logsigmoid,
    one_hot,
    pad,
    scaled_dot_product_attention,
    softplus,
)

from gents_gym.checks import InputError, check_integer, check_memory
from gents_gym.likelihoods import BERNOULLI, Categorical, make_likelihood
from gents_gym.models.sequence import SequenceModel, check_sequences
from gents_gym.models.transformer_belief import TransformerBelief
from gents_gym.models.transformer_kernel import LEAST_VARIANCE, SOFTPLUS_ONE
from gents_gym.types import TaskInfo

FAR = 10.0  # where entries of padded contexts are clipped


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a transformer, and what its outcomes are."""

    action_dim: int  # F
    context_dim: int  # D
    width: int = 64  # of a token, W
    layers: int = 3
    heads: int = 4
    context_features: int = 0  # size of a learned map of (X, Z) that tokens hold beside X; 0: none
    context_width: int = 128  # hidden width of that map, one hidden layer
    longest: int = 1024  # rows that the history of an action may have
    positions: int = 0  # 1: observations know their place in the history, as drift needs; 0: they do not
    padded: int = 0  # 1: contexts of fewer entries get zeros behind them, and action features are not read; 0: neither
    likelihood: str = "bernoulli"  # or "gaussian", or "categorical(C)"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name in ("action_dim", "context_dim", "width", "layers", "heads", "context_width", "longest"):
            check_integer(name, getattr(self, name), 1)
        check_integer("context_features", self.context_features, 0)
        for name in ("positions", "padded"):
            if check_integer(name, getattr(self, name), 0) > 1:
                raise InputError(f"{name} must be 0 or 1, got {getattr(self, name)}")
        if self.width % self.heads:
            raise InputError(f"width must be a multiple of heads, got {self.width} and {self.heads}")
        likelihood = make_likelihood(self.likelihood)
        codes = likelihood.n_outcomes if isinstance(likelihood, Categorical) else 1
        inputs = self.action_dim + self.context_dim + self.context_features
        weights = 12 * self.layers * self.width**2 + self.width * (3 + codes) * (1 + inputs)
        weights += self.context_width * inputs + self.longest * (self.width if self.positions else self.context_dim)
        names = ("layers", "width", "context_dim", "context_features", "context_width", "longest")
        check_memory(4 * weights, **{name: getattr(self, name) for name in names})


class Block(nn.Module):
    """One layer: attention to memory, then a network of each token on its own, both added to the token."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.memory, self.mix = (
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.Linear(width, width),
        )
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for last in (self.mix, self.narrow):  # so that tokens do not grow with depth at first
            last.weight.data.mul_((2 * layers) ** -0.5)

    def queries(self, tokens: Tensor) -> Tensor:
        """Return what tokens ask, (N, n, W) to (N, H, n, W/H)."""
        return self._split(self.query(self.norm(tokens)))

    def remember(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of tokens, (N, n, W) to (N, H, n, W/H) each."""
        keys, values = self.memory(self.norm(tokens)).chunk(2, -1)
        return self._split(keys), self._split(values)

    def finish(self, tokens: Tensor, found: Tensor) -> Tensor:
        """Return the tokens (N, n, W) after what attention found for them, (N, H, n, W/H)."""
        tokens = tokens + self.mix(found.transpose(1, 2).flatten(2))
        return tokens + self.narrow(nn.functional.gelu(self.widen(self.norm_out(tokens))))

    def _split(self, tokens: Tensor) -> Tensor:
        return tokens.reshape(*tokens.shape[:-1], self.heads, -1).transpose(1, 2)


class RawHistory(NamedTuple):
    """Histories of N actions as they are: features (N, F), contexts (N, R, D), outcomes (N, R) and counts (N,)."""

    action_features: Tensor
    contexts: Tensor
    outcomes: Tensor
    counts: Tensor


class TransformerModel(SequenceModel):
    """A causal transformer over the rows of one action.

    A query's token is linear in (X, Z), an observation's in (X, Z, y, X·y), with y as -1 or 1, standardised, or one of
    C. With ``context_features``, a learned map of (X, Z) goes with X in both, so that the first layer already compares
    rows in features that outcomes are closer to linear in. Without positions, what sets an earlier row apart from a
    later one is only that the earlier one does not see the later: predictions depend on the order of rows a little,
    and training on random orders makes that little smaller.

    There are two ways through it. Training predicts all rows at once. Agents play a :class:`TransformerBelief`, which
    keeps keys and values. ``start``, ``predict`` and ``append`` keep raw rows and predict from all of them again: that
    is slow and plain, and what the other two are compared with.
    """

    kind = "transformer"
    config_class = TransformerConfig
    scans = False
    outcome_scaling: Tensor  # (2,): what is taken off a Gaussian outcome, and what it is then multiplied by

    def __init__(self, config: TransformerConfig) -> None:
        """Make a model with fresh weights."""
        super().__init__(config)
        likelihood, width, size = self.likelihood, config.width, config.context_dim + config.context_features
        self.n_outcomes = likelihood.n_outcomes if isinstance(likelihood, Categorical) else 1
        n_outputs = self.n_outcomes + (likelihood.support is None)
        self.ordered, self.banked = config.positions > 0, not config.padded
        self.register_buffer("outcome_scaling", torch.zeros(2))
        self.outcome_scaling[1].fill_(1)
        self.first = nn.Linear(config.action_dim, width)
        self.context_map = _map(config) if config.context_features else None
        self.ask = nn.Linear(size + config.action_dim, width)
        self.tell = nn.Linear(size + config.action_dim + self.n_outcomes * (1 + size), width)
        self.place = nn.Embedding(config.longest, width) if config.positions else None
        self.blocks = nn.ModuleList(Block(width, config.heads, config.layers) for _ in range(config.layers))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, n_outputs)
        for end in (self.last.weight, self.last.bias):
            nn.init.zeros_(end)
        if self.place is not None:
            nn.init.zeros_(self.place.weight)

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> TransformerBelief:  # type: ignore[override]
        """Return the belief of B new tasks."""
        self.check_tasks(info)
        return TransformerBelief(self, info, rngs)

    def stack(self) -> list[Block]:
        """Return the layers, first to last."""
        return cast(list[Block], list(self.blocks))

    # What is given, in the model's units

    def fits(self, n_features: int, n_context: int) -> bool:
        """Return whether actions and contexts of these sizes can be played: if padded, with contexts up to D."""
        return n_context <= self.config.context_dim if self.config.padded else super().fits(n_features, n_context)

    def describe_sizes(self) -> str:
        """Return the sizes that can be played, in words."""
        return f"any and at most {self.config.context_dim}" if self.config.padded else super().describe_sizes()

    def check_tasks(self, info: TaskInfo) -> None:
        """Raise unless the tasks' contexts have the model's size, or at most that if they are padded."""
        if not self.config.padded:
            super().check_tasks(info)
        else:
            self._check_padded(info.context_dim)

    def scale_features(self, action_features: Tensor) -> Tensor:
        """Return the action features (N, F) in the model's units; zeros if they are not read."""
        if not self.config.padded:
            return super().scale_features(action_features)
        return action_features.new_zeros(len(action_features), self.config.action_dim)

    def scale_contexts(self, contexts: Tensor) -> Tensor:
        """Return the contexts in the model's units, with zeros behind those that are padded."""
        if not self.config.padded:
            return super().scale_contexts(contexts)
        return super().scale_contexts(self._pad(contexts)).clamp(-FAR, FAR)

    def _pad(self, contexts: Tensor) -> Tensor:
        """Return the contexts with zeros behind them, up to the model's size, if it pads them."""
        if not self.config.padded:
            return contexts
        self._check_padded(contexts.shape[-1])
        return pad(contexts, (0, self.config.context_dim - contexts.shape[-1]))

    def _check_padded(self, n_context: int) -> None:
        if n_context > (most := self.config.context_dim):
            raise InputError(f"contexts must have at most {most} entries for this model, got {n_context}")

    # Tokens

    def first_tokens(self, action_features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first tokens of N actions, (N, F) to (N, W), and their features in the model's units."""
        z = self.scale_features(action_features)
        return self.first(z), z

    def query_tokens(self, z: Tensor, contexts: Tensor) -> Tensor:
        """Return the tokens of rows to predict, (..., F) and (..., D) to (..., W)."""
        return self.ask(torch.cat([self._rows(z, contexts), z], -1))

    def observation_tokens(self, z: Tensor, contexts: Tensor, outcomes: Tensor, places: Tensor) -> Tensor:
        """Return the tokens of observed rows with these places in their histories, (..., F), (..., D) to (..., W)."""
        x, y = self._rows(z, contexts), self._code(outcomes)  # (..., K), (..., Q)
        cross = (x[..., None, :] * y[..., None]).flatten(-2)  # (..., Q·K)
        return self._placed(self.tell(torch.cat([x, z, y, cross], -1)), places)

    def open_tokens(self, z: Tensor, contexts: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return observation tokens without outcomes, (..., W), and what each number of a code adds, (..., Q, W)."""
        x, n, width = self._rows(z, contexts), self.n_outcomes, self.config.width
        sizes = [x.shape[-1] + z.shape[-1], n, n * x.shape[-1]]
        both, alone, cross = torch.split(self.tell.weight, sizes, 1)
        tokens = self._placed(linear(torch.cat([x, z], -1), both, self.tell.bias), places)
        cross = cross.reshape(width, n, -1).transpose(0, 1).flatten(0, 1)  # (Q·W, K)
        return tokens, linear(x, cross, alone.T.flatten()).reshape(*x.shape[:-1], n, width)

    def _placed(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return tokens (..., W) with their positions, if there are any; places behind the last position share it."""
        return tokens if self.place is None else tokens + self.place(places.clamp(max=self.config.longest - 1))

    def _rows(self, z: Tensor, contexts: Tensor) -> Tensor:
        """Return contexts in the model's units, with their map behind if there is one, (..., D) to (..., K)."""
        x = self.scale_contexts(contexts)
        return x if self.context_map is None else torch.cat([x, self.context_map(torch.cat([x, z], -1))], -1)

    def _code(self, outcomes: Tensor) -> Tensor:
        """Return outcomes as numbers of about unit size, (...) to (..., Q)."""
        if self.n_outcomes > 1:
            return one_hot(outcomes.long(), self.n_outcomes).to(torch.float32)
        if self.likelihood == BERNOULLI:
            return 2 * outcomes[..., None] - 1
        return ((outcomes - self.outcome_scaling[0]) * self.outcome_scaling[1])[..., None]

    # All rows at once

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences, (N, T) or at the entries ``at``."""
        check_sequences(action_features, contexts, outcomes)
        self.check_length(contexts.shape[1])
        asked = outcomes if at is None else outcomes[:, at]
        if not asked.numel():
            return torch.zeros_like(asked)
        return self._log_prob(self.last(self._hidden(action_features, contexts, outcomes, at)), asked)

    def _hidden(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None) -> Tensor:
        """Return the last layer at each row, or those ``at``, given the rows before it, (N, n, W)."""
        first, z = self.first_tokens(action_features)  # (N, W), (N, F)
        n_rows = contexts.shape[1] if at is None else int(at[-1]) + 1
        each = z[:, None].expand(-1, n_rows, -1)  # (N, T, F)
        past = (each[:, 1:], contexts[:, : n_rows - 1], outcomes[:, : n_rows - 1])
        told = self.observation_tokens(*past, torch.arange(n_rows - 1))
        memory = torch.cat([first[:, None], told], 1)  # (N, T, W): what row t sees is entries 0 to t
        chosen = slice(n_rows) if at is None else at
        tokens = self.query_tokens(each[:, chosen], contexts[:, chosen])  # (N, n, W)
        seen = None if at is None else torch.arange(n_rows) <= at[:, None]  # (n, T)
        for i, block in enumerate(self.stack()):
            keys, values = block.remember(memory)
            found = scaled_dot_product_attention(block.queries(tokens), keys, values, seen, is_causal=seen is None)
            tokens = block.finish(tokens, found)
            if i + 1 < self.config.layers:
                found = scaled_dot_product_attention(block.queries(memory), keys, values, is_causal=True)
                memory = block.finish(memory, found)
        return self.norm(tokens)

    def _log_prob(self, outputs: Tensor, outcomes: Tensor) -> Tensor:
        """Return log-probabilities of outcomes (...) given the network's outputs (..., n)."""
        if self.n_outcomes > 1:
            flat = cross_entropy(outputs.flatten(0, -2), outcomes.flatten().long(), reduction="none")
            return -flat.view(outcomes.shape)
        if self.likelihood == BERNOULLI:
            return logsigmoid(outputs[..., 0] * (2 * outcomes - 1))
        mean, variance = self.parameters_of(outputs).unbind(-1)
        return -0.5 * (torch.log(2 * torch.pi * variance) + (outcomes - mean) ** 2 / variance)

    def parameters_of(self, outputs: Tensor) -> Tensor:
        """Return the likelihood's parameters that the network's outputs (..., n) stand for."""
        if self.n_outcomes > 1:
            return torch.softmax(outputs, -1)
        if self.likelihood == BERNOULLI:
            return torch.sigmoid(outputs[..., 0])
        shift, scale = self.outcome_scaling
        variance = softplus(outputs[..., 1] + SOFTPLUS_ONE) + LEAST_VARIANCE  # 1 at first
        return torch.stack([outputs[..., 0] / scale + shift, variance / scale**2], -1)

    # Row by row, from raw histories

    def start(self, action_features: Tensor) -> RawHistory:
        """Return empty histories of N actions, (N, F)."""
        self.scale_features(action_features)  # for its check
        size, room = len(action_features), self.config.longest
        rows = torch.zeros(size, room, self.config.context_dim), torch.zeros(size, room)
        return RawHistory(action_features.clone(), *rows, torch.zeros(size, dtype=torch.int64))

    def predict(self, state: RawHistory, context: Tensor) -> Tensor:
        """Return the likelihood's parameters in the contexts, (N, D) to (N, ...)."""
        return self.parameters_of(self.last(self._latest(state, context)))

    def append(self, state: RawHistory, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> RawHistory:
        """Return the histories with a row more, in the rows that ``where`` picks."""
        where = torch.ones(len(context), dtype=torch.bool) if where is None else where
        self.check_length(int((state.counts + where).max()))
        rows = torch.nonzero(where)[:, 0]
        at, contexts, outcomes = state.counts[rows], state.contexts.clone(), state.outcomes.clone()
        contexts[rows, at], outcomes[rows, at] = self._pad(context)[rows], outcome[rows]
        return RawHistory(state.action_features, contexts, outcomes, state.counts + where)

    def features(self, action_features: Tensor, context: Tensor) -> Tensor:
        """Return the last layer with an empty history, (N, W)."""
        row = self._pad(context)[:, None], context.new_zeros(len(context), 1)
        return self._hidden(action_features, *row, torch.tensor([0]))[:, 0]

    def _latest(self, state: RawHistory, context: Tensor) -> Tensor:
        """Return the last layer at a row (N, D) behind the histories, (N, W)."""
        self.scale_contexts(context)  # for its check
        context = self._pad(context)
        found = context.new_zeros(len(context), self.config.width)
        for count in sorted(set(state.counts.tolist())):
            own = torch.nonzero(state.counts == count)[:, 0]
            contexts = torch.cat([state.contexts[own, :count], context[own, None]], 1)
            outcomes = torch.cat([state.outcomes[own, :count], torch.zeros(len(own), 1)], 1)
            hidden = self._hidden(state.action_features[own], contexts, outcomes, torch.tensor([count]))
            found[own] = hidden[:, 0]
        return found

    def check_length(self, n_rows: int) -> None:
        """Raise if a history of so many rows is longer than the model was made for."""
        if n_rows > self.config.longest:
            raise InputError(f"histories must have at most {self.config.longest} rows for this model, got {n_rows}")

    def check_places(self, n_rows: int) -> None:
        """Raise if rows have positions, and a history of so many observed rows has more than there are."""
        if self.place is not None:
            self.check_length(n_rows)

    def parameter_groups(self, learning_rate: float, weight_decay: float) -> list[dict[str, Any]]:
        """Return three groups: vectors, which do not decay, matrices, and those of the layers, for Muon."""
        parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        for name, parameter in self.named_parameters():
            parts[0 if parameter.ndim < 2 else 1 + name.startswith("blocks.")].append(parameter)
        options = ({"weight_decay": 0.0}, {"weight_decay": weight_decay}, {"weight_decay": weight_decay, "muon": True})
        return [{"params": part, "lr": learning_rate, **own} for part, own in zip(parts, options, strict=True)]


def _map(config: TransformerConfig) -> nn.Sequential:
    """Return the map of (X, Z) in the model's units, (..., D+F) to (..., K)."""
    first = nn.Linear(config.context_dim + config.action_dim, config.context_width)
    return nn.Sequential(first, nn.GELU(), nn.Linear(config.context_width, config.context_features))
