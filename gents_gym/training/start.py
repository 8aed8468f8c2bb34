"""Finds the starting point of training: an initial map of contexts, and a filter model's initial prior."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from gents_gym.likelihoods import GAUSSIAN
from gents_gym.models.filter import FilterModel
from gents_gym.models.filter_gaussian import GaussianForm
from gents_gym.models.paper import PaperModel
from gents_gym.models.transformer import TransformerModel
from gents_gym.training.context_map import ROWS, fit_batch, fit_context_map
from gents_gym.training.data import RowSets

ITERATIONS = 12  # rounds of EM: gradients do the rest
EARLY = 50  # number of first rows used if coefficients drift
LEAST_ACTIONS, FOR_EACH = 1000, 30  # actions to fit to, or as many per action feature if that is more


def start_filter(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Fit the outcomes' scaling, the context's map if it is learned, and the prior."""
    if isinstance(model.form, GaussianForm):
        rows = scale_outcomes(model.form, rows)
    start_paper(model, rows, rng)
    fit_prior_maps(model, rows, rng)


def start_paper(model: FilterModel | PaperModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Fit the context's map if it is learned; everything else starts at random."""
    if model.config.context_features:
        fit_context_map(model, rows.choose(_choose(rows, rng)), rng)


def start_transformer(model: TransformerModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Fit the scaling of Gaussian outcomes, and half of the map of (X, Z) to X alone; all else starts at random.

    A model of padded contexts starts with a random map: its tasks have no features in common.
    """
    if rows.likelihood == GAUSSIAN:
        rows = scale_outcomes(model, rows)
    if model.context_map is None or model.config.padded:
        return
    first, bend, last = cast(tuple[nn.Linear, nn.GELU, nn.Linear], tuple(model.context_map))
    width, size = len(first.weight) // 2, len(last.weight) // 2
    if not width or not size:
        return
    ends = _part(first, width, model.config.context_dim), _part(last, size, width)
    half = _Half(nn.Sequential(ends[0], bend, ends[1]), model.scale_contexts, model.scale_features)
    fit_context_map(half, rows.choose(_choose(rows, rng)), rng)
    with torch.no_grad():
        for whole, fitted in zip((first, last), ends, strict=True):
            n_outputs, n_inputs = fitted.weight.shape
            whole.weight[:n_outputs] = 0
            whole.weight[:n_outputs, :n_inputs] = fitted.weight
            whole.bias[:n_outputs] = fitted.bias


@dataclass
class _Half:
    """A part of a transformer's map, as a φ̂ to fit."""

    context_map: nn.Sequential
    scale_contexts: Callable[[Tensor], Tensor]
    scale_features: Callable[[Tensor], Tensor]


def _part(linear: nn.Linear, n_outputs: int, n_inputs: int) -> nn.Linear:
    """Return a layer of its own with the first weights of a layer."""
    part: nn.Linear = skip_init(nn.Linear, n_inputs, n_outputs)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        part.weight.copy_(linear.weight[:n_outputs, :n_inputs])
        part.bias.copy_(linear.bias[:n_outputs])
    return part


def scale_outcomes(form: GaussianForm | TransformerModel, rows: RowSets) -> RowSets:
    """Set the form's scaling to that of the rows' outcomes, and return the rows with scaled outcomes."""
    spread = float(rows.outcomes.std(dtype=np.float64))
    form.outcome_scaling = torch.tensor([float(rows.outcomes.mean(dtype=np.float64)), 1 / spread if spread else 1.0])
    shift, scale = form.outcome_scaling.numpy()
    return replace(rows, outcomes=(rows.outcomes - shift) * scale)


def fit_prior_maps(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's prior, and the noise of Gaussian outcomes, to those of a hierarchical regression on (1, φ̂(X))."""
    chosen = _choose(rows, rng)
    early = rows.sequences(chosen, EARLY) if model.ordered else None  # over these rows, coefficients have hardly moved
    batch = early or rows.resample(chosen, ROWS, replacement=False, rng=rng)
    with torch.no_grad():
        x = model.rows(batch.contexts)[..., : model.size].numpy().astype(np.float64)  # (n, R, K)
    fitted = fit_batch(model, batch, x, rows.likelihood, ITERATIONS)
    root = np.linalg.cholesky(fitted.covariance)
    diagonal = np.diag(root)
    with torch.no_grad():
        model.prior_mean.copy_(torch.from_numpy(fitted.maps.T))
        model.prior_scale.zero_()[:, 0] = torch.from_numpy(np.log(diagonal))
        model.prior_lower.copy_(torch.from_numpy(np.tril(root / diagonal[:, None], -1)))
    if isinstance(model.form, GaussianForm):
        model.form.set_noise(fitted.noise)


def _choose(rows: RowSets, rng: np.random.Generator) -> np.ndarray:
    n_wanted = max(LEAST_ACTIONS, FOR_EACH * rows.action_features.shape[1])
    return rng.permutation(len(rows))[:n_wanted]
