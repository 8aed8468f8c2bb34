"""The ``paper`` model: summary statistics of the history into an MLP head, as the paper describes it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from gents_gym.checks import InputError, check_integer
from gents_gym.models.belief import Kernel, RowByRow
from gents_gym.models.context_kernel import ContextRows, context_network, map_contexts
from gents_gym.models.paper_kernel import impute_paper, read_head
from gents_gym.models.sequence import SequenceModel

MOST_LAYERS = 100  # so that a forged size does not build layers without end


@dataclass(frozen=True)
class PaperConfig:
    """Sizes of a paper model."""

    action_dim: int  # F
    context_dim: int  # D
    hidden_layers: int = 3  # linear layers between the first and the last one; "simpler models" have fewer
    width: int = 100  # of every hidden layer
    repeats: int = 100  # copies of the statistics at the head's input
    context_features: int = 0  # size of the learned φ̂(X); 0: the context itself
    context_width: int = 100  # hidden width of φ̂, two hidden layers

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name in ("action_dim", "context_dim", "width", "repeats", "context_width"):
            check_integer(name, getattr(self, name), 1)
        for name in ("hidden_layers", "context_features"):
            check_integer(name, getattr(self, name), 0)
        if self.hidden_layers > MOST_LAYERS:
            raise InputError(f"hidden_layers must be at most {MOST_LAYERS}, got {self.hidden_layers}")


class PaperState(NamedTuple):
    """Statistics of N actions' histories: (XᵀX + I)^-1, (N, K, K), and XᵀY, (N, K); and the scaled action features."""

    inverse: Tensor
    products: Tensor
    action_features: Tensor


class PaperModel(SequenceModel):
    """An MLP on (Z, X, statistics of the history), the statistics (XᵀX + I)^-1 and XᵀY.

    What the paper leaves open, and what is chosen here:

    - Scaling. Contexts and features are standardised by the training rows' moments. XᵀY grows with the history, and a
      head that reads it raw does not train well. The head reads β̂ = (XᵀX + I)^-1 XᵀY in its place: the same
      information, since (XᵀX + I)^-1 stands beside it, and bounded.
    - Repeats. A statistic repeated 100 times equals one input whose weight is the sum of the copies'. That sum is the
      parameter here, so no 3,007-wide product is ever made. Its initial value has the distribution of the sum of 100
      default initial weights. Adam moves each of 100 equal copies by the same step, so their sum moves 100 times as
      far and decays as slowly as one: its own learning rate is 100 times the others', its weight decay a hundredth.
    - Learned features. Where φ̂ is learned, the rows of X are (1, φ̂(X)), with the constant that φ̂ could learn, and the
      head reads that row for the current context too. φ̂ has two hidden layers and begins at features that all actions'
      logits are linear in (``gents_gym.training.start.fit_context_map``); gradients reach it through the statistics.
    - Initialisation: PyTorch's default for the 3,007-wide layer, and for the others. Activations: ReLU.
    - Schedule: the learning rate, chosen by validation from {0.1, 0.01, 0.001}, rises over the first 30 % of all
      steps and then falls to zero along a cosine.
    """

    kind = "paper"
    config_class = PaperConfig

    def __init__(self, config: PaperConfig) -> None:
        """Make a model with fresh weights."""
        super().__init__(config)
        self.context_map = context_network(config)  # φ̂; empty, which is the identity, where it is not learned
        self.size = 1 + config.context_features if config.context_features else config.context_dim  # K
        plain = config.action_dim + self.size
        statistics = self.size**2 + self.size
        bound = (plain + statistics * config.repeats) ** -0.5
        self.plain = nn.Parameter(torch.empty(config.width, plain).uniform_(-bound, bound))
        spread = bound * (config.repeats / 3) ** 0.5  # standard deviation of the sum of so many uniform numbers
        self.folded = nn.Parameter(torch.randn(config.width, statistics) * spread)  # all copies' weights, summed
        self.bias = nn.Parameter(torch.empty(config.width).uniform_(-bound, bound))
        hidden = (nn.Linear(config.width, config.width) for _ in range(config.hidden_layers))
        self.hidden = nn.Sequential(nn.ReLU(), *(part for layer in hidden for part in (layer, nn.ReLU())))
        self.last = nn.Linear(config.width, 1)

    def parameter_groups(self, learning_rate: float, weight_decay: float) -> list[dict[str, Any]]:
        """Return two groups: the folded weights move as 100 copies' sum does, the others as they are."""
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
        hidden = self._hidden(state.action_features, self.rows(context), _flatten(state))
        return torch.sigmoid(self.last(hidden)[..., 0])

    def append(self, state: PaperState, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> PaperState:
        """Return the statistics with a row more, by a rank-one update, in the rows that ``where`` picks."""
        return add_row(state, self.rows(context), outcome, where)

    def features(self, action_features: Tensor, context: Tensor) -> Tensor:
        """Return the last hidden layer with an empty history, (N, width)."""
        state = self.start(action_features)
        return self._hidden(state.action_features, self.rows(context), _flatten(state))

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences, (N, T) or at the entries ``at``."""
        at = torch.arange(contexts.shape[1]) if at is None else at
        z, rows = self.scale_features(action_features), self.rows(contexts)  # (N, T, K)
        if self.config.context_features:
            statistics = _statistics(rows, outcomes, at)
        else:
            statistics = self._scan(action_features, contexts, outcomes, at)
        each = z[:, None].expand(-1, len(at), -1)
        logits = self.last(self._hidden(each, rows[:, at], statistics))[..., 0]
        return -binary_cross_entropy_with_logits(logits, outcomes[:, at], reduction="none")

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X), (..., D) to (..., K-1); None where it is not learned."""
        return map_contexts(self, contexts)[..., 1:] if self.config.context_features else None

    def kernel(self) -> Kernel:
        """Return the compiled kernel; a subclass's own methods are not in it, and go row by row."""
        return PaperKernel(self) if type(self) is PaperModel else RowByRow(self)

    def rows(self, contexts: Tensor) -> Tensor:
        """Return the contexts in the model's units, or (1, φ̂(X)) of them, (..., D) to (..., K)."""
        mapped = self.context_map(self.scale_contexts(contexts))
        return torch.cat([torch.ones_like(mapped[..., :1]), mapped], -1) if self.config.context_features else mapped

    def _scan(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor) -> Tensor:
        """Return the statistics before the entries ``at``, (N, n, K² + K), row after row."""
        wanted = set(at.tolist())
        seen = []
        state = self.start(action_features)
        with torch.no_grad():  # the statistics have no parameters
            for t in range(int(at[-1]) + 1):
                if t in wanted:
                    seen.append(_flatten(state))
                state = self.append(state, contexts[:, t], outcomes[:, t])
        return torch.stack(seen, 1)

    def _hidden(self, action_features: Tensor, context: Tensor, statistics: Tensor) -> Tensor:
        plain = torch.cat([action_features, context], -1)
        return self.hidden(plain @ self.plain.T + statistics @ self.folded.T + self.bias)


class PaperKernel(RowByRow):
    """Tables of the paper model by library products and compiled loops."""

    def __init__(self, model: PaperModel) -> None:
        super().__init__(model)
        self._paper, self._head, self._rows = model, read_head(model), ContextRows(model)

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return the contexts as histories keep them, (..., D) to (..., K)."""
        return self._rows(contexts)

    def features(self, rows: np.ndarray) -> np.ndarray | None:
        """Return φ̂(X); None where it is not learned."""
        return rows[..., 1:] if self._paper.config.context_features else None

    def absorb(
        self, state: PaperState, task: np.ndarray, action: np.ndarray, rows: np.ndarray, outcome: np.ndarray, shape: Any
    ) -> PaperState:
        """Return the statistics with the rows appended, by the model's own update."""
        where = torch.zeros(shape, dtype=torch.bool)
        where[task, action] = True
        each, outcomes = torch.zeros(shape[0], rows.shape[1]), torch.zeros(shape[0])
        each[task], outcomes[task] = torch.from_numpy(rows), torch.from_numpy(outcome)
        row, outcome_of_each = (part.repeat_interleave(shape[1], 0) for part in (each, outcomes))
        return add_row(state, row, outcome_of_each, where.reshape(-1))

    def generate(
        self, state: PaperState, rows: np.ndarray, played: np.ndarray, seen: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return tables (B, T', A) by the compiled loop."""
        return impute_paper(self._head, state, rows, played, seen, noise)


def add_row(state: PaperState, row: Tensor, outcome: Tensor, where: Tensor | None) -> PaperState:
    """Return the statistics with a row (N, K) more, by a rank-one update, in the rows that ``where`` picks."""
    row = row if where is None else row * where[:, None]
    direction = (state.inverse * row[:, None]).sum(2)  # (N, K); such small matrices multiply slower by bmm
    gain = direction / (1 + (direction * row).sum(1, keepdim=True))
    inverse = state.inverse - gain[:, :, None] * direction[:, None]
    return state._replace(inverse=inverse, products=state.products + row * outcome[:, None])


def _statistics(rows: Tensor, outcomes: Tensor, at: Tensor) -> Tensor:
    """Return the statistics before the entries ``at``, (N, n, K² + K), all at once: gradients go through them."""
    size = rows.shape[2]
    squares = (rows[..., None] * rows[..., None, :]).flatten(2)  # (N, T, K²)
    before = (torch.arange(rows.shape[1]) < at[:, None]).to(rows.dtype)  # (n, T)
    sums = before @ torch.cat([squares, rows * outcomes[..., None]], 2)  # (N, n, K² + K)
    inverse = torch.linalg.inv(sums[..., : size * size].view(*sums.shape[:2], size, size) + torch.eye(size))
    coefficients = (inverse * sums[..., None, size * size :]).sum(3)  # β̂, (N, n, K)
    return torch.cat([inverse.flatten(2), coefficients], 2)


def _flatten(state: PaperState) -> Tensor:
    """Return ((XᵀX + I)^-1, β̂) as rows, (N, K² + K)."""
    coefficients = (state.inverse * state.products[:, None]).sum(2)  # β̂, (N, K)
    return torch.cat([state.inverse.flatten(1), coefficients], 1)
