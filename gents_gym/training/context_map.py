"""Finds an initial map φ̂ of contexts: features in which the predictors of many actions are linear."""

import math
from typing import Any, Protocol, cast

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from torch.nn.utils import skip_init

from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical, Likelihood
from gents_gym.training.data import Batch, RowSets
from gents_gym.training.hierarchy import Hierarchy, fit_hierarchy

ROWS = 300  # rows per action
MAP_EM = 4  # rounds of EM while the context's map still changes
# Training of φ̂: rounds, steps of each, rows, learning rate.
MAP_ROUNDS, MAP_STEPS, MAP_BATCH, MAP_RATE = 5, 1000, 2048, 0.01


class HasContextMap(Protocol):
    """What a model with a φ̂ has, as far as it is asked here."""

    context_map: nn.Sequential

    def scale_contexts(self, contexts: Tensor) -> Tensor:
        """Return contexts in the model's units, (..., D)."""

    def scale_features(self, action_features: Tensor) -> Tensor:
        """Return action features in the model's units, (N, F)."""


def fit_context_map(model: HasContextMap, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's φ̂ to features that every action's predictors are linear in, each of mean 0 and variance 1.

    First, one predictor is learned for all actions. Then the last layer is set to the directions in which actions
    differ most from it, because gradients would take very long to find the weak ones. Then it alternates between
    fitting each action's coefficients given φ̂, and φ̂ given the coefficients.
    """
    batch = rows.resample(np.arange(len(rows)), ROWS, replacement=False, rng=rng)
    network, contexts = model.context_map, model.scale_contexts(torch.from_numpy(rows.contexts))
    _learn_shared(model, rows, batch, rng)
    _spread_out(model, batch, rows.likelihood)
    for _ in range(MAP_ROUNDS):
        _standardise(network, contexts)
        x = _with_one(network, model.scale_contexts(batch.contexts))  # (n, R, 1+P)
        modes = fit_batch(model, batch, x, rows.likelihood).modes.astype(np.float32)
        _learn(model, network, rows, modes.reshape(len(rows), -1, x.shape[2]), rng)
    _standardise(network, contexts)


def fit_batch(
    model: HasContextMap, batch: Batch, x: np.ndarray, likelihood: Likelihood, iterations: int = MAP_EM
) -> Hierarchy:
    """Fit a hierarchical regression of a batch's outcomes on rows x (n, R, K)."""
    with torch.no_grad():
        z = model.scale_features(batch.action_features).numpy().astype(np.float64)  # (n, F)
    return fit_hierarchy(likelihood, z, x, batch.outcomes.numpy(), batch.weights.numpy(), iterations)


def _learn_shared(model: HasContextMap, rows: RowSets, batch: Batch, rng: np.random.Generator) -> None:
    """Make φ̂'s first output a predictor for all actions.

    Categories have several predictors. They are learned with a separate last layer, and the first output becomes the
    direction of the hidden layer that explains most of them.
    """
    network, last = model.context_map, cast(nn.Linear, model.context_map[-1])
    if not isinstance(rows.likelihood, Categorical):
        coefficients = np.zeros((len(rows), 1, 1 + last.out_features), np.float32)
        coefficients[..., 1] = 1
        _learn(model, network, rows, coefficients, rng)
        return
    n_predictors = rows.likelihood.n_outcomes - 1
    # Not initialised at random, because that would use the global generator.
    for_each = skip_init(nn.Linear, last.in_features, n_predictors)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for_each.weight.zero_()
        for_each.bias.zero_()
    shared = nn.Sequential(*list(network)[:-1], for_each)
    each = np.eye(n_predictors, 1 + n_predictors, 1, dtype=np.float32)  # coefficients of (1, outputs)
    _learn(model, shared, rows, np.broadcast_to(each, (len(rows), *each.shape)), rng)
    _spread_out(model, batch, rows.likelihood, n_kept=0)
    _standardise(network, model.scale_contexts(torch.from_numpy(rows.contexts)))


def _learn(
    model: HasContextMap,
    network: nn.Sequential,
    rows: RowSets,
    coefficients: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Fit a network φ̂ to single rows, with predictors c_a·(1, φ̂(X)) and given coefficients (N, Q, 1+P)."""
    owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    optimizer = torch.optim.Adam(network.parameters(), lr=MAP_RATE)
    for step in range(MAP_STEPS):
        optimizer.param_groups[0]["lr"] = MAP_RATE * 0.5 * (1 + math.cos(math.pi * step / MAP_STEPS))
        picked = rng.integers(len(owners), size=min(MAP_BATCH, len(owners)))
        own = torch.from_numpy(coefficients[owners[picked]])  # (n, Q, 1+P)
        x = network(model.scale_contexts(torch.from_numpy(rows.contexts[picked])))  # (n, P)
        predictors = own[..., 0] + (own[..., 1:] * x[:, None]).sum(2)  # (n, Q)
        loss = _loss(rows.likelihood, predictors, torch.from_numpy(rows.outcomes[picked]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _loss(likelihood: Likelihood, predictors: Tensor, outcomes: Tensor) -> Tensor:
    """Return the mean loss of outcomes (n,) given their predictors (n, Q)."""
    if likelihood == BERNOULLI:
        return binary_cross_entropy_with_logits(predictors[:, 0], outcomes)
    if likelihood == GAUSSIAN:
        return mse_loss(predictors[:, 0], outcomes)
    return cross_entropy(torch.cat([torch.zeros_like(predictors[:, :1]), predictors], 1), outcomes.long())


def _spread_out(model: HasContextMap, batch: Batch, likelihood: Likelihood, n_kept: int = 1) -> None:
    """Set φ̂'s outputs, except the kept ones, to the directions of its hidden layer in which actions differ most.

    This is a score test: with each action fitted on x = (1, kept outputs), the scores of the hidden units h vary over
    actions as much as their information predicts, and more if the actions' coefficients on h differ.
    """
    contexts = model.scale_contexts(batch.contexts)
    x = _with_one(model.context_map, contexts)[..., : 1 + n_kept]  # (n, R, 1+S)
    with torch.no_grad():
        h = model.context_map[:-1](contexts).numpy()  # (n, R, W)
    fitted = fit_batch(model, batch, x, likelihood)
    tests = [_score_test(h, x, *each) for each in zip(fitted.errors, fitted.information, strict=True)]
    scores = np.concatenate([test[0] for test in tests])  # (Q·n, W)
    information = np.sum([test[1] for test in tests], axis=0)
    # Units may be inactive.
    information += (1 + 1e-3 * np.trace(information) / len(information)) * np.eye(len(information))
    _, directions = eigh(scores.T @ scores, information)  # in rising order
    last: Any = model.context_map[-1]
    most = torch.from_numpy(directions[:, ::-1][:, : len(last.weight) - n_kept].T.copy())  # a narrow layer has fewer
    with torch.no_grad():
        last.weight[n_kept : n_kept + len(most)] = most


def _score_test(h: np.ndarray, x: np.ndarray, error: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the actions' scores of units h after projecting out x, (n, W), and their information, (W, W).

    Args:
        h: The units, (n, R, W).
        x: The inputs that the predictor was fitted on, (n, R, S).
        error: The predictor's scores, (n, R).
        spread: Their information, (n, R).
    """
    weighted = h * spread[..., None].astype(np.float32)
    among = np.einsum("nrw,nrv->wv", weighted, h, optimize=True)
    across = weighted.swapaxes(1, 2) @ x  # (n, W, S)
    within = (x * spread[..., None]).swapaxes(1, 2) @ x + 1e-3 * np.eye(x.shape[2])  # (n, S, S)
    share = np.linalg.solve(within, across.swapaxes(1, 2))  # (n, S, W): the regression of h on x
    scores = (error[:, None] @ h)[:, 0] - ((error[:, None] @ x) @ share)[:, 0]  # (n, W)
    return scores, among - np.einsum("nwk,nkv->wv", across, share)


def _with_one(network: nn.Sequential, contexts: Tensor) -> np.ndarray:
    """Return (1, φ̂(X)) in float64, (..., D) to (..., 1+P)."""
    with torch.no_grad():
        mapped = network(contexts).double().numpy()
    return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1)


def _standardise(network: nn.Sequential, contexts: Tensor) -> None:
    """Rescale the last layer so that the network's outputs have mean 0 and variance 1 over ``contexts``."""
    last: Any = network[-1]
    with torch.no_grad():
        found = torch.cat([network(part) for part in torch.split(contexts, 10_000)]).double()
        spread = found.std(0)
        scale = 1 / torch.where(spread > 1e-6, spread, 1)
        last.weight.mul_(scale[:, None])
        last.bias.sub_(found.mean(0)).mul_(scale)
