"""The kind ``paper``: an MLP head on summary statistics of the history, with the paper's choices and ours."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear

from gents_gym.checks import check_flag, check_integer, check_memory
from gents_gym.models.belief import Kernel, RowByRow
from gents_gym.models.context_kernel import ContextRows, context_network, context_weights, map_contexts
from gents_gym.models.paper_kernel import impute_paper, read_head
from gents_gym.models.rectified_layer import apply_layers
from gents_gym.models.sequence import SequenceModel, check_sequences
from gents_gym.models.statistics_kernel import Statistics

LAYER = 500  # number of weights that take as much memory as a layer's Python objects


@dataclass(frozen=True)
class PaperConfig:
    """Sizes and choices of a paper model."""

    action_dim: int  # F
    context_dim: int  # D
    hidden_layers: int = 3  # linear layers between the first and the last one; "simpler models" have fewer
    width: int = 100  # width of every hidden layer
    repeats: int = 100  # copies of the statistics at the head's input
    context_features: int = 0  # size of the learned φ̂(X); 0: the context itself
    context_width: int = 100  # hidden width of φ̂, two hidden layers
    raw: bool = False  # the head reads XᵀY itself, not the bounded β̂ = (XᵀX + I)^-1 XᵀY
    intercept: bool | None = None  # whether rows of X have a leading 1; None: only if φ̂ is learned
    plain_context: bool = False  # the head reads the current context itself, not its row of X

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name in ("action_dim", "context_dim", "width", "repeats", "context_width"):
            check_integer(name, getattr(self, name), 1)
        for name in ("hidden_layers", "context_features"):
            check_integer(name, getattr(self, name), 0)
        for name in ("raw", "plain_context", *(() if self.intercept is None else ("intercept",))):
            check_flag(name, getattr(self, name))
        weights = self.hidden_layers * (self.width**2 + LAYER) + self.width * self.size**2 + context_weights(self)
        names = ("hidden_layers", "width", "context_dim", "context_features", "context_width")
        check_memory(4 * weights, **{name: getattr(self, name) for name in names})

    @property
    def lead(self) -> int:
        """The number of leading ones in a row of X."""
        return int(bool(self.context_features) if self.intercept is None else self.intercept)

    @property
    def size(self) -> int:
        """K, the entries of a row of X."""
        return self.lead + (self.context_features or self.context_dim)


class PaperState(NamedTuple):
    """Statistics of N actions' histories: (XᵀX + I)^-1, (N, K, K), and XᵀY, (N, K); and the scaled action features."""

    inverse: Tensor
    products: Tensor
    action_features: Tensor


class PaperModel(SequenceModel):
    """An MLP on (Z, X, statistics of the history), the statistics being (XᵀX + I)^-1 and XᵀY.

    What the paper leaves open, and what is chosen here:

    - Scaling. Contexts and features are standardised by the training rows' moments. XᵀY grows with the history, and a
      head that reads it raw does not train well. Instead, the head reads β̂ = (XᵀX + I)^-1 XᵀY, which is bounded and,
      together with (XᵀX + I)^-1, holds the same information. The preset ``literal`` does neither.
    - Repeats. A statistic repeated 100 times equals one input whose weight is the sum of the 100 weights. That sum is
      the parameter here, so no 3,007-wide product is ever computed. Its initial value has the distribution of the sum
      of 100 default initial weights. Adam moves each of 100 equal copies by the same step, so their sum moves 100 times
      as far and decays as slowly as one. So its learning rate is 100 times that of the others, and its weight decay a
      hundredth.
    - Learned features. If φ̂ is learned, the rows of X are (1, φ̂(X)), with a constant that φ̂ could also learn, and
      the head reads that row for the current context too. φ̂ has two hidden layers and starts from features that all
      actions' logits are linear in (``gents_gym.training.start.fit_context_map``); gradients reach it through the
      statistics. In ``literal`` the rows are φ̂(X), the head reads X, and φ̂ starts at random.
    - Initialisation: PyTorch's default for the 3,007-wide layer, and for the others. Activations: ReLU.
    - Schedule: the learning rate, chosen by validation among those of the training, rises over the first 30 % of all
      steps and then falls to zero along a cosine. In ``literal`` it is constant.
    """

    kind = "paper"
    config_class = PaperConfig

    def __init__(self, config: PaperConfig) -> None:
        """Make a model with fresh weights."""
        super().__init__(config)
        self.context_map = context_network(config)  # φ̂; if it is not learned, it is empty, which is the identity
        self.size = config.size  # K
        plain = config.action_dim + (config.context_dim if config.plain_context else self.size)
        statistics = self.size**2 + self.size
        bound = (plain + statistics * config.repeats) ** -0.5
        self.plain = nn.Parameter(torch.empty(config.width, plain).uniform_(-bound, bound))
        self.folded = nn.Parameter(torch.zeros(config.width, statistics))  # all copies' weights, summed
        for _ in range(0 if self.folded.is_meta else config.repeats):
            self.folded.data += torch.empty_like(self.folded).uniform_(-bound, bound)
        self.bias = nn.Parameter(torch.empty(config.width).uniform_(-bound, bound))
        hidden = (nn.Linear(config.width, config.width) for _ in range(config.hidden_layers))
        self.hidden = nn.Sequential(nn.ReLU(), *(part for layer in hidden for part in (layer, nn.ReLU())))
        self.last = nn.Linear(config.width, 1)

    def parameter_groups(self, learning_rate: float, weight_decay: float) -> list[dict[str, Any]]:
        """Return two groups: the folded weights, which move as the sum of 100 copies does, and the others."""
        repeats = self.config.repeats
        others = [parameter for name, parameter in self.named_parameters() if name != "folded"]
        return [
            {"params": [self.folded], "lr": learning_rate * repeats, "weight_decay": weight_decay / repeats},
            {"params": others, "lr": learning_rate, "weight_decay": weight_decay},
        ]

    def start(self, action_features: Tensor) -> PaperState:
        """Return the statistics of empty histories, (N, F)."""
        z = self.scale_features(action_features)
        n_actions, size = len(z), self.size
        return PaperState(torch.eye(size).repeat(n_actions, 1, 1), torch.zeros(n_actions, size), z)

    def predict(self, state: PaperState, context: Tensor) -> Tensor:
        """Return P(Y=1) in the contexts, (N, D) to (N,)."""
        hidden = self._hidden(state.action_features, self._current(context), self._flatten(state))
        return torch.sigmoid(self.last(hidden)[..., 0])

    def append(self, state: PaperState, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> PaperState:
        """Return the statistics with one more row, by a rank-one update, in the rows that ``where`` picks."""
        return add_row(state, self.rows(context), outcome, where)

    def features(self, action_features: Tensor, context: Tensor) -> Tensor:
        """Return the last hidden layer with an empty history, (N, width)."""
        state = self.start(action_features)
        return self._hidden(state.action_features, self._current(context), self._flatten(state))

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences, (N, T) or at the entries ``at``."""
        check_sequences(action_features, contexts, outcomes)
        at = torch.arange(contexts.shape[1]) if at is None else at
        rows = self.rows(contexts)
        statistics = Statistics.apply(rows, outcomes, at, self.config.raw)  # type: ignore[no-untyped-call]
        each = self.scale_features(action_features)
        logits = self.last(self._hidden(each, self._current(contexts[:, at]), statistics))[..., 0]
        return -binary_cross_entropy_with_logits(logits, outcomes[:, at], reduction="none")

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X), (..., D) to its size; None if it is not learned."""
        return map_contexts(self, contexts)[..., self.config.lead :] if self.config.context_features else None

    def kernel(self) -> Kernel:
        """Return the compiled kernel; a subclass with its own methods goes row by row instead."""
        return PaperKernel(self) if type(self) is PaperModel else RowByRow(self)

    def rows(self, contexts: Tensor) -> Tensor:
        """Return the scaled contexts, or φ̂ of them, with a leading 1 if there is one, (..., D) to (..., K)."""
        mapped = apply_layers(self.context_map, self.scale_contexts(contexts))
        return torch.cat([torch.ones_like(mapped[..., :1]), mapped], -1) if self.config.lead else mapped

    def _current(self, contexts: Tensor) -> Tensor:
        """Return what the head reads of the current context: its row of X, or the context itself."""
        return self.scale_contexts(contexts) if self.config.plain_context else self.rows(contexts)

    def _flatten(self, state: PaperState) -> Tensor:
        """Return ((XᵀX + I)^-1, β̂ or XᵀY) as rows, (N, K² + K)."""
        return torch.cat([state.inverse.flatten(1), summary(state, self.config.raw)], 1)

    def _hidden(self, action_features: Tensor, context: Tensor, statistics: Tensor) -> Tensor:
        """Return the last hidden layer; action features are (N, F), the others (N, K) and (N, K² + K) or sequences."""
        known = linear(action_features, self.plain[:, : self.config.action_dim], self.bias)  # (N, width)
        weights = torch.cat([self.plain[:, self.config.action_dim :], self.folded], 1)
        units = linear(torch.cat([context, statistics], -1), weights)
        return apply_layers(self.hidden, units + (known if units.ndim == 2 else known[:, None]))


class PaperKernel(RowByRow):
    """Tables of the paper model, by compiled loops."""

    def __init__(self, model: PaperModel) -> None:
        super().__init__(model)
        self._paper, self._head, self._rows = model, read_head(model), ContextRows(model)

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return the contexts as histories keep them, (..., D) to (..., K), followed by what the head reads."""
        rows = self._rows(contexts)
        if not self._paper.config.plain_context:
            return rows
        return np.concatenate([rows, self._rows.scale(contexts)], axis=-1)

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X); None if it is not learned."""
        config = self._paper.config
        return rows[..., config.lead : config.size] if config.context_features else None

    def absorb(
        self, state: PaperState, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray, shape: Any
    ) -> PaperState:
        """Append the rows in place, only to the played actions' statistics, by the model's own update."""
        played = torch.from_numpy(task * shape[1] + action)
        some = PaperState(*(part[played] for part in state))
        row = torch.from_numpy(np.ascontiguousarray(rows[:, : self._paper.size]))
        after = add_row(some, row, torch.from_numpy(outcome), None)
        state.inverse[played], state.products[played] = after.inverse, after.products
        return state

    def generate(
        self, state: PaperState, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A), by the compiled loop."""
        return impute_paper(self._head, state, rows, played, seen, noise)


def add_row(state: PaperState, row: Tensor, outcome: Tensor, where: Tensor | None) -> PaperState:
    """Return the statistics with one more row (N, K), by a rank-one update, in the rows that ``where`` picks."""
    row = row if where is None else row * where[:, None]
    direction = (state.inverse * row[:, None]).sum(2)  # (N, K); bmm is slower for such small matrices
    gain = direction / (1 + (direction * row).sum(1, keepdim=True))
    inverse = state.inverse - gain[:, :, None] * direction[:, None]
    return state._replace(inverse=inverse, products=state.products + row * outcome[:, None])


def summary(state: PaperState, raw: bool) -> Tensor:
    """Return XᵀY, or β̂ = (XᵀX + I)^-1 XᵀY, (N, K)."""
    return state.products if raw else (state.inverse * state.products[:, None]).sum(2)
