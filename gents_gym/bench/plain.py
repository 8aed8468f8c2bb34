"""The yardstick for TS-Gen: a plain implementation of the paper's algorithm for one task."""

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from gents_gym.models.paper import PaperModel


class PlainTSGen:
    """TS-Gen with the paper's model and logistic policies, written straightforwardly in torch and scikit-learn.

    All actions of a row go through the head at once, and the statistics of the observations are kept; with each row
    they are computed again as in the paper, (XᵀX + I)^-1 and XᵀY. It saves work in one point: a statistic that the
    paper repeats 100 times enters once, with the sum of the copies' weights.
    """

    def __init__(self, model: PaperModel, action_features: np.ndarray, horizon: int) -> None:
        """Start one task with features (A, F)."""
        self._model, self._horizon = model, horizon
        self._features = model.scale_features(torch.tensor(action_features))
        n_actions, size = len(action_features), model.size
        self._squares, self._products = torch.zeros(n_actions, size, size), torch.zeros(n_actions, size)
        self._first = torch.cat([model.plain, model.folded], 1)
        self._contexts: list[Tensor] = []
        self._played: list[tuple[int, float]] = []

    @torch.no_grad()
    def act(self, context: np.ndarray, rng: np.random.Generator) -> int:
        """Return an action for the context (D,)."""
        model, t = self._model, len(self._contexts)
        later = model.bank[rng.integers(len(model.bank), size=self._horizon - t - 1)]
        contexts = torch.cat([*(row[None] for row in self._contexts), torch.tensor(context)[None], later])
        squares, products = self._squares, self._products
        table = np.empty((self._horizon, len(self._features)))
        uniform = torch.tensor(rng.random(table.shape, np.float32))
        for i, row in enumerate(model.rows(contexts)):
            outcome = (uniform[i] < self._chance(row, squares, products)).float()
            missing = torch.ones(len(outcome))
            if i < t:
                action, seen = self._played[i]
                outcome[action], missing[action] = seen, 0.0
            squares = squares + missing[:, None, None] * torch.outer(row, row)
            products = products + (missing * outcome)[:, None] * row
            table[i] = outcome
        return int(np.argmax([self._fit(contexts.numpy(), column, context) for column in table.T]))

    def observe(self, context: np.ndarray, action: int, outcome: float) -> None:
        """Add an observed row."""
        row = self._model.rows(torch.tensor(context))
        self._squares[action] += torch.outer(row, row)
        self._products[action] += outcome * row
        self._contexts.append(torch.tensor(context))
        self._played.append((action, outcome))

    def _chance(self, row: Tensor, squares: Tensor, products: Tensor) -> Tensor:
        inverse = torch.linalg.inv(squares + torch.eye(len(row)))
        statistics = torch.cat([inverse.flatten(1), (inverse @ products[:, :, None])[:, :, 0]], 1)
        plain = torch.cat([self._features, row.expand(len(products), -1)], 1)
        inputs = torch.cat([plain, statistics], 1)
        return torch.sigmoid(self._model.last(self._model.hidden(inputs @ self._first.T + self._model.bias)))[:, 0]

    def _fit(self, contexts: np.ndarray, column: np.ndarray, context: np.ndarray) -> Any:
        if column.min() == column.max():
            return column[0]
        return LogisticRegression().fit(contexts, column).predict_proba(context[None])[0, 1]
