"""Measures held-out losses of models, in nats per step, and compares them with the exact p*."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from gents_gym.checks import InputError
from gents_gym.drawing.canvas import canvas, finish, to_bytes
from gents_gym.drawing.style import model_looks
from gents_gym.models.exact import ExactModel
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.types import ActionRows, PublishesTruth, TaskDistribution

PREFIXES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500)


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of each action summed over the rows before each prefix length, (N, P), by model."""

    prefixes: tuple[int, ...]
    sums: dict[str, np.ndarray]
    errors: dict[str, np.ndarray] = field(default_factory=dict)  # standard errors of sums that are estimates, (N, P)

    def mean(self, name: str, prefix: int) -> tuple[float, float]:
        """Return the mean loss per step of the first ``prefix`` rows and its standard error over actions."""
        values = self.sums[name][:, self.prefixes.index(prefix)] / prefix
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

    def by_step(self, name: str) -> np.ndarray:
        """Return each action's mean loss over the rows between a prefix length and the previous one, (N, P)."""
        sums = self.sums[name]
        return np.diff(sums, axis=1, prepend=np.zeros((len(sums), 1))) / np.diff([0, *self.prefixes])

    def error(self, name: str, prefix: int) -> float:
        """Return the Monte-Carlo error of an estimated model's mean loss per step: the root of its mean square.

        It combines the estimates' standard errors with the bias of a mean's logarithm, half the squared errors.
        It does not include the error over actions.
        """
        squares = self.errors[name][:, self.prefixes.index(prefix)] ** 2
        return float(np.hypot(np.sqrt(squares.mean() / len(squares)), squares.mean() / 2) / prefix)

    def gap(self, name: str, other: str, prefix: int) -> tuple[float, float]:
        """Return the mean of one model's loss minus another's per step, paired by action, and its standard error."""
        at = self.prefixes.index(prefix)
        values = (self.sums[name][:, at] - self.sums[other][:, at]) / prefix
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

    def closed(self, name: str, far: str, near: str, prefix: int) -> tuple[float, float]:
        """Return the share of the distance from ``far`` to ``near`` that a model closes, and its standard error.

        It uses the mean losses over the first ``prefix`` rows; the error is by the delta method, paired by action.
        """
        at = self.prefixes.index(prefix)
        whole, left = ((self.sums[one] - self.sums[near])[:, at] for one in (far, name))
        share = left.mean() / whole.mean()
        error = (left - share * whole).std(ddof=1) / (np.sqrt(len(left)) * abs(whole.mean()))
        return float(1 - share), float(error)


def exact_model(distribution: TaskDistribution) -> ExactModel:
    """Return p* of a setting that publishes its truth; if φ is hidden, it reads the rows' hidden features."""
    if not isinstance(distribution, PublishesTruth):
        raise InputError(f"exact is p* of settings that publish their truth, got {type(distribution).__name__}")
    return ExactModel(distribution.truth)


def measure(
    models: Mapping[str, SequenceModel | ExactModel],
    rows: ActionRows,
    seed: int = 0,
    on_model: Callable[[str], None] | None = None,
    prefixes: Sequence[int] = PREFIXES,
) -> Losses:
    """Return all models' losses on the same rows, over each prefix length and over all rows."""
    length = rows.contexts.shape[1]
    for model in models.values():
        if isinstance(model, SequenceModel):
            model.check_space(rows.space)
            if model.likelihood != rows.likelihood:
                raise InputError(
                    f"models must be of {rows.likelihood} outcomes for these rows, got {model.likelihood} ones"
                )
    prefixes = tuple(sorted({prefix for prefix in prefixes if prefix < length} | {length}))
    sums, errors = {}, {}
    for name, model in models.items():
        if isinstance(model, ExactModel):
            sums[name], errors[name] = _exact_sums(model, rows, prefixes, seed)
        else:
            sums[name] = _model_sums(model, rows, prefixes)
        if on_model is not None:
            on_model(name)
    return Losses(prefixes, sums, errors)


def _exact_sums(
    model: ExactModel, rows: ActionRows, prefixes: tuple[int, ...], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of p*'s losses and their Monte-Carlo standard errors, (N, P) each."""
    rng = stream(seed, "training", 1, "test")
    features = rows.action_features if rows.hidden_features is None else rows.hidden_features
    blocks = np.array_split(np.arange(len(rows)), -(-len(rows) // 500))

    def estimate(block: np.ndarray, prefix: int) -> np.ndarray:
        x, y = rows.contexts[block, :prefix], rows.outcomes[block, :prefix]
        return np.stack(model.estimate_marginal(features[block], x, y, rng))  # (2, n)

    found = [np.concatenate([estimate(block, prefix) for block in blocks], axis=1) for prefix in prefixes]
    log_marginals, errors = np.stack(found, axis=2)  # (N, P) each
    return -log_marginals, errors


def _model_sums(model: SequenceModel, rows: ActionRows, prefixes: tuple[int, ...]) -> np.ndarray:
    found = []
    for block in np.array_split(np.arange(len(rows)), -(-len(rows) // 500)):
        z, x, y = (torch.tensor(part[block]) for part in (rows.action_features, rows.contexts, rows.outcomes))
        with torch.no_grad():
            losses = -model.log_prob(z, x, y)  # (n, T)
        found.append(losses.double().cumsum(1)[:, [prefix - 1 for prefix in prefixes]].numpy())
    return np.concatenate(found)


def order_spread(model: SequenceModel, rows: ActionRows, n_orders: int = 20, seed: int = 0) -> np.ndarray:
    """Return how much the order of rows matters: the last row's log-probability after the others in random orders.

    Args:
        model: The model. One that reads rows as a set has a spread of 0 but for rounding.
        rows: The rows of N actions.
        n_orders: How many orders there are, the same for all actions.
        seed: Their seed.

    Returns:
        Each action's standard deviation over the orders, in nats, (N,).
    """
    z, x, y = (torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))
    rng, last, found = stream(seed, "training", 2, "test"), x.shape[1] - 1, []
    for _ in range(n_orders):
        order = torch.from_numpy(np.append(rng.permutation(last), last))
        with torch.no_grad():
            found.append(model.log_prob(z, x[:, order], y[:, order], torch.tensor([last]))[:, 0].double().numpy())
    return np.std(found, axis=0, ddof=1)


def draw_losses_by_step(losses: Losses, reference: str | None) -> bytes:
    """Return a PNG: the mean loss between prefix lengths by model and, next to it, the excess over the reference."""
    figure, (left, right) = canvas(2, (11, 4.4))
    looks = model_looks(losses.sums)
    edges = np.array([0, *losses.prefixes])
    steps = {name: losses.by_step(name) for name in losses.sums}
    for name, values in steps.items():
        style = {"linewidth": 1.5, "baseline": None, **looks[name].style}
        left.stairs(values.mean(axis=0), edges + 0.5, label=name, **style)
        if reference is not None and name != reference:
            above = values - steps[reference]
            right.stairs(above.mean(axis=0), edges + 0.5, label=f"{name} − {reference}", **style)
    titles = [(left, "loss")] + ([(right, f"loss above {reference}")] if reference is not None else [])
    for panel, title in titles:
        panel.set_xscale("log")
        finish(panel, "step", "nats per step", title)
    if reference is None:
        right.set_visible(False)
    else:
        right.set_yscale("symlog", linthresh=1e-4)
    return to_bytes(figure)
