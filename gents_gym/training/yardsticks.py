"""Measures the losses that a trained model has to beat: a constant, running base rates and a pooled regression."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LinearRegression, LogisticRegression

from gents_gym.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood
from gents_gym.models.sequence import SequenceModel
from gents_gym.randomness import stream
from gents_gym.training.data import Batch, RowSets

ACTIONS, ROWS = 1000, 100_000  # most training actions for the base rates, and most rows for the regression
BLOCK = 100  # actions predicted at once
STRENGTHS = (-4.0, 10.0)  # range of the logarithm of a prior's strength, in rows
SMOOTHING = 0.5  # pseudo-rows of each outcome, so that no probability is 0
TINY = 1e-12  # the least variance
# A model that explains a smaller share of what the best yardstick leaves unexplained hardly beats it.
LEAST_SHARE = 0.05


def measure_yardsticks(
    model: SequenceModel, rows: RowSets, validation: RowSets, horizon: int, seed: int = 0
) -> dict[str, float]:
    """Return held-out losses in nats per step, over the first ``horizon`` rows of each action of ``validation``.

    - ``constant``: one prediction for all rows, the mean outcome of the training rows.
    - ``base rate``: the running mean of the action's own outcomes so far, smoothed by a conjugate prior (Beta,
      Dirichlet or Normal) around the constant, whose strength has the largest likelihood on training rows.
    - ``regression``: one logistic, multinomial or least-squares regression on (Z, X) for all actions, as scikit-learn
      fits it by default.

    Args:
        model: The trained model. Its scaling of Z and X is used, so if it is blind to Z, the yardsticks are too.
        rows: The training rows.
        validation: Rows of other actions.
        horizon: T.
        seed: Seed of the sample of training actions and rows.
    """
    rng = stream(seed, "training", 1, "train")
    likelihood = rows.likelihood
    center, variance = fit_constant(likelihood, rows.outcomes)
    some = rows.sequences(np.sort(rng.permutation(len(rows))[:ACTIONS]), horizon)
    strength, noise = fit_base_rate(likelihood, center, some)
    regression = Regression(model, rows, np.sort(rng.permutation(len(rows.outcomes))[:ROWS]))
    sums, count = np.zeros(3), 0.0
    for actions in np.array_split(np.arange(len(validation)), -(-len(validation) // BLOCK)):
        batch = validation.sequences(actions, horizon)
        outcomes, weights = batch.outcomes.numpy(), batch.weights.numpy()
        means, inflation = base_rates(one_hot(likelihood, outcomes), center, strength)
        losses = (
            -log_prob(likelihood, center, variance, outcomes),
            -log_prob(likelihood, means, noise * inflation, outcomes),
            -log_prob(likelihood, regression.predict(batch), regression.variance, outcomes),
        )  # (n, T) each
        sums += [(loss * weights).sum() for loss in losses]
        count += weights.sum()
    return dict(zip(("constant", "base rate", "regression"), (sums / count).tolist(), strict=True))


def one_hot(likelihood: Likelihood, outcomes: np.ndarray) -> np.ndarray:
    """Return outcomes (...) as indicators of each possible outcome, (..., C), or unchanged, (..., 1), if Gaussian."""
    if isinstance(likelihood, Gaussian):
        return outcomes[..., None].astype(np.float64)
    return (outcomes[..., None] == likelihood.support).astype(np.float64)


def log_prob(
    likelihood: Likelihood, means: np.ndarray, variance: np.ndarray | float, outcomes: np.ndarray
) -> np.ndarray:
    """Return log-probabilities of outcomes (...) with mean indicators (..., C); only Gaussians have a variance."""
    if isinstance(likelihood, Categorical):
        parameters = np.broadcast_to(means, (*outcomes.shape, means.shape[-1]))
    elif isinstance(likelihood, Bernoulli):
        parameters = means[..., 1]
    else:
        parameters = np.stack(np.broadcast_arrays(means[..., 0], variance), axis=-1)
    return likelihood.log_prob(parameters, outcomes)


def fit_constant(likelihood: Likelihood, outcomes: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the mean indicators (C,) of outcomes (M,), and the variance."""
    if isinstance(likelihood, Gaussian):
        return outcomes.mean(dtype=np.float64, keepdims=True), max(float(outcomes.var(dtype=np.float64)), TINY)
    counts = np.bincount(outcomes.astype(np.int64), minlength=len(likelihood.support)) + SMOOTHING
    return counts / counts.sum(), 1.0


def base_rates(targets: np.ndarray, center: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted indicators before each row, (n, T, C), and the factor of the noise there, (T,).

    The prior counts as ``strength`` rows with the mean ``center`` (C,). The variance of a Normal prediction is that of
    an outcome plus that of the mean, which falls with the number of rows.
    """
    rows = strength + np.arange(targets.shape[1])  # (T,)
    before = np.cumsum(targets, axis=1) - targets
    return (strength * center + before) / rows[:, None], 1 + 1 / rows


def fit_base_rate(likelihood: Likelihood, center: np.ndarray, batch: Batch) -> tuple[float, float]:
    """Return the strength of the prior with the largest likelihood on a batch, and the variance of an outcome."""
    outcomes, weights = batch.outcomes.numpy(), batch.weights.numpy()
    targets = one_hot(likelihood, outcomes)

    def noise(means: np.ndarray, inflation: np.ndarray) -> float:
        squares = (outcomes - means[..., 0]) ** 2 / inflation
        return max(float((weights * squares).sum() / weights.sum()), TINY)

    def loss(log_strength: float) -> float:
        means, inflation = base_rates(targets, center, math.exp(log_strength))
        variance = noise(means, inflation) * inflation
        return -float((weights * log_prob(likelihood, means, variance, outcomes)).sum())

    strength = math.exp(minimize_scalar(loss, bounds=STRENGTHS, method="bounded").x)
    return strength, noise(*base_rates(targets, center, strength))


class Regression:
    """One regression of outcomes on (Z, X) for all actions, fitted to selected rows."""

    def __init__(self, model: SequenceModel, rows: RowSets, picked: np.ndarray) -> None:
        """Fit the training rows ``picked``, (n,)."""
        self._shifts, self._scales = zip(model.action_scaling.numpy(), model.context_scaling.numpy(), strict=True)
        self._likelihood = rows.likelihood
        owners = np.searchsorted(rows.offsets, picked, side="right") - 1
        inputs, outcomes = self._inputs(rows.action_features[owners], rows.contexts[picked]), rows.outcomes[picked]
        self._constant, self.variance = fit_constant(rows.likelihood, outcomes)
        self._count = len(picked)
        if isinstance(rows.likelihood, Gaussian):
            self._fit = LinearRegression().fit(inputs, outcomes)
            self.variance = max(float(((outcomes - self._fit.predict(inputs)) ** 2).mean()), TINY)
        else:
            is_constant = (outcomes == outcomes[0]).all()
            self._fit = None if is_constant else LogisticRegression(max_iter=1000).fit(inputs, outcomes)

    def predict(self, batch: Batch) -> np.ndarray:
        """Return the mean indicators along the sequences, (n, T, C)."""
        shape = batch.outcomes.shape
        each = batch.action_features.numpy()[:, None].repeat(shape[1], axis=1)
        inputs = self._inputs(each, batch.contexts.numpy()).reshape(shape.numel(), -1)
        return self._means(inputs).reshape(*shape, -1)

    def _inputs(self, action_features: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        scaled = [
            (part - shift) * scale
            for part, shift, scale in zip((action_features, contexts), self._shifts, self._scales, strict=True)
        ]
        return np.concatenate(scaled, axis=-1).astype(np.float64)

    def _means(self, inputs: np.ndarray) -> np.ndarray:
        """Return the mean indicators of rows, (n, F+D) to (n, C)."""
        if self._fit is None:
            return np.broadcast_to(self._constant, (len(inputs), len(self._constant)))
        if isinstance(self._likelihood, Gaussian):
            return self._fit.predict(inputs)[:, None]
        found = np.full((len(inputs), len(self._constant)), SMOOTHING)
        found[:, self._fit.classes_.astype(int)] += self._count * self._fit.predict_proba(inputs)
        return found / found.sum(axis=1, keepdims=True)


def share_explained(likelihood: Likelihood, loss: float, yardstick: float) -> float:
    """Return the share of a yardstick's unexplained loss, or variance, that a model explains."""
    if isinstance(likelihood, Gaussian):
        return 1 - math.exp(2 * (loss - yardstick))
    return 1 - loss / yardstick if yardstick > 0 else 0.0


def judge(likelihood: Likelihood, loss: float, yardsticks: dict[str, float]) -> str | None:
    """Return a sentence with advice if a model hardly beats the best yardstick; None if it does beat it."""
    name, best = min(yardsticks.items(), key=lambda item: item[1])
    share = share_explained(likelihood, loss, best)
    if share >= LEAST_SHARE:
        return None
    what = "variance" if isinstance(likelihood, Gaussian) else "loss"
    if share > 0:
        verdict = f"The model hardly beats the {name}: its {what} is only {share:.1%} lower"
    else:
        verdict = f"The model does not beat the {name}"
    cure = "it needs more actions, more rows or more epochs"
    return f"{verdict} ({loss:.4f} against {best:.4f} nats per step). Either the data say no more, or {cure}."
