"""Where gradients begin: historical rows in, a first map of contexts and a filter model's first prior out."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from gents_gym.models.filter import FilterModel
from gents_gym.models.paper import PaperModel
from gents_gym.numerics.newton import LogisticProblems
from gents_gym.training.data import Batch, RowSets

ROWS, ITERATIONS = 300, 12  # rows of an action, and rounds of EM: gradients do the rest
LEAST_ACTIONS, FOR_EACH = 1000, 30  # actions, and actions per action feature, where there are so many
PENALTIES = np.logspace(-2, 6, 17)  # ridge penalties to choose from
MAP_EM = 4  # rounds of EM where the context's map is yet to change
MAP_ROUNDS, MAP_STEPS, MAP_BATCH, MAP_RATE = 5, 1000, 2048, 0.01  # of φ̂: rounds, steps of each, rows, learning rate


def start_filter(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Fit the context's map, where it is learned, and the prior."""
    start_paper(model, rows, rng)
    fit_prior_maps(model, rows, rng)


def start_paper(model: FilterModel | PaperModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Fit the context's map, where it is learned; all else starts at random."""
    if model.config.context_features:
        fit_context_map(model, rows, rng)


def fit_context_map(model: FilterModel | PaperModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's φ̂ to features that every action's logits are linear in, each of mean 0 and variance 1.

    First one logit is learned for all actions. Then the last layer is set to the directions in which actions differ
    most from it: gradients would take very long to find those that matter little. Then, in turn, each action's
    coefficients given φ̂, and φ̂ given those.
    """
    rows = rows.choose(_choose(rows, rng))
    batch = rows.resample(np.arange(len(rows)), ROWS, replacement=False, rng=rng)
    network = model.context_map
    coefficients = np.zeros((len(rows), 1 + model.config.context_features), np.float32)
    coefficients[:, 1] = 1
    _learn(model, rows, coefficients, rng)
    _spread_out(model, batch)
    for _ in range(MAP_ROUNDS):
        _standardise(network, model.scale_contexts(torch.from_numpy(rows.contexts)))
        x = _with_one(network, model.scale_contexts(batch.contexts))
        _learn(model, rows, _fit_hierarchy(model, batch, x).modes.astype(np.float32), rng)
    _standardise(network, model.scale_contexts(torch.from_numpy(rows.contexts)))


def _learn(model: FilterModel | PaperModel, rows: RowSets, coefficients: np.ndarray, rng: np.random.Generator) -> None:
    """Fit φ̂ to single rows where P(Y=1) = σ(c_a·(1, φ̂(X))) with given coefficients (N, 1+P)."""
    network = model.context_map
    owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    optimizer = torch.optim.Adam(network.parameters(), lr=MAP_RATE)
    for step in range(MAP_STEPS):
        optimizer.param_groups[0]["lr"] = MAP_RATE * 0.5 * (1 + math.cos(math.pi * step / MAP_STEPS))
        picked = rng.integers(len(owners), size=min(MAP_BATCH, len(owners)))
        own = torch.from_numpy(coefficients[owners[picked]])  # (n, 1+P)
        x = network(model.scale_contexts(torch.from_numpy(rows.contexts[picked])))  # (n, P)
        logits = own[:, 0] + (own[:, 1:] * x).sum(1)
        loss = binary_cross_entropy_with_logits(logits, torch.from_numpy(rows.outcomes[picked]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _spread_out(model: FilterModel | PaperModel, batch: Batch) -> None:
    """Set all of φ̂'s outputs but the first to the directions of its hidden layer in which actions differ most.

    A score test: with each action fitted on x = (1, first output), the scores of the hidden units h vary over actions
    as much as their information says, and more where the actions' coefficients on h differ.
    """
    contexts = model.scale_contexts(batch.contexts)
    x = _with_one(model.context_map, contexts)[..., :2]  # (n, R, 2)
    with torch.no_grad():
        h = model.context_map[:-1](contexts).numpy()  # (n, R, W)
    chances = _fit_hierarchy(model, batch, x).chances
    outcomes, weights = batch.outcomes.numpy(), batch.weights.numpy()
    error, spread = (weights * part for part in (outcomes - chances, chances * (1 - chances)))  # (n, R)
    weighted = h * spread[..., None].astype(np.float32)
    among = np.einsum("nrw,nrv->wv", weighted, h, optimize=True)
    across = weighted.swapaxes(1, 2) @ x  # (n, W, 2)
    within = (x * spread[..., None]).swapaxes(1, 2) @ x + 1e-3 * np.eye(2)  # (n, 2, 2)
    share = np.linalg.solve(within, across.swapaxes(1, 2))  # (n, 2, W): what x says of h
    scores = (error[:, None] @ h)[:, 0] - ((error[:, None] @ x) @ share)[:, 0]  # (n, W)
    information = among - np.einsum("nwk,nkv->wv", across, share)
    information += (1 + 1e-3 * np.trace(information) / len(information)) * np.eye(len(information))  # units may idle
    last: Any = model.context_map[-1]
    _, directions = eigh(scores.T @ scores, information)  # in rising order
    most = torch.from_numpy(directions[:, ::-1][:, : len(last.weight) - 1].T.copy())  # a narrow layer has fewer
    with torch.no_grad():
        last.weight[1 : 1 + len(most)] = most


class Hierarchy(NamedTuple):
    """A hierarchical logistic regression: its prior, and the fit of each of n actions."""

    maps: np.ndarray  # (1+F, K): the prior's mean is linear in (1, Z)
    covariance: np.ndarray  # (K, K)
    modes: np.ndarray  # (n, K)
    chances: np.ndarray  # (n, R)


def _fit_hierarchy(model: FilterModel | PaperModel, batch: Batch, x: np.ndarray, iterations: int = MAP_EM) -> Hierarchy:
    """Fit rows x (n, R, K) by EM with Laplace approximations.

    In turn: each action's coefficients given the prior (mode and covariance), and the prior given those: the means
    regressed on (1, Z), the covariance of what is left plus the mean of the covariances. Actions with few
    rows count with what they know.
    """
    with torch.no_grad():
        z = model.scale_features(batch.action_features).numpy().astype(np.float64)  # (n, F)
    y, weights = (part.numpy().astype(np.float64)[..., None] for part in (batch.outcomes, batch.weights))
    size = x.shape[2]
    maps, means, covariance = np.zeros((1 + z.shape[1], size)), np.zeros((len(z), size)), np.eye(size)
    modes = np.zeros((len(z), 1, size))
    for _ in range(iterations):
        problems = LogisticProblems(x, y, np.linalg.inv(covariance), means[:, None], weights)
        modes, chances = problems.solve(modes, tolerance=1e-4)
        spread = np.linalg.inv(problems.hessian(chances))[:, 0]  # (n, K, K)
        maps, means, left = ridge(z, modes[:, 0])
        covariance = left.T @ left / len(left) + spread.mean(axis=0)
    return Hierarchy(maps, covariance, modes[:, 0], chances[..., 0])


def fit_prior_maps(model: FilterModel, rows: RowSets, rng: np.random.Generator) -> None:
    """Set the model's prior to that of a hierarchical logistic regression on (1, φ̂(X))."""
    batch = rows.resample(_choose(rows, rng), ROWS, replacement=False, rng=rng)
    with torch.no_grad():
        x = model.rows(batch.contexts).numpy().astype(np.float64)  # (n, R, K)
    maps, covariance, _, _ = _fit_hierarchy(model, batch, x, ITERATIONS)
    root = np.linalg.cholesky(covariance)
    diagonal = np.diag(root)
    with torch.no_grad():
        model.prior_mean.copy_(torch.from_numpy(maps.T))
        model.prior_scale.zero_()[:, 0] = torch.from_numpy(np.log(diagonal))
        model.prior_lower.copy_(torch.from_numpy(np.tril(root / diagonal[:, None], -1)))


def _choose(rows: RowSets, rng: np.random.Generator) -> np.ndarray:
    n_wanted = max(LEAST_ACTIONS, FOR_EACH * rows.action_features.shape[1])
    return rng.permutation(len(rows))[:n_wanted]


def _with_one(network: nn.Sequential, contexts: Tensor) -> np.ndarray:
    """Return (1, φ̂(X)) in float64, (..., D) to (..., 1+P)."""
    with torch.no_grad():
        mapped = network(contexts).double().numpy()
    return np.concatenate([np.ones_like(mapped[..., :1]), mapped], axis=-1)


def _standardise(network: nn.Sequential, contexts: Tensor) -> None:
    """Fold into the last layer what gives the network's outputs mean 0 and variance 1 over ``contexts``."""
    last: Any = network[-1]
    with torch.no_grad():
        found = torch.cat([network(part) for part in torch.split(contexts, 10_000)]).double()
        spread = found.std(0)
        scale = 1 / torch.where(spread > 1e-6, spread, 1)
        last.weight.mul_(scale[:, None])
        last.bias.sub_(found.mean(0)).mul_(scale)


def ridge(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regress each column of y (n, K) on (1, z), its penalty chosen by leave-one-out errors.

    Returns:
        The maps (1+F, K), the fitted values (n, K) and the leave-one-out errors (n, K).
    """
    middle, level = z.mean(axis=0), y.mean(axis=0)
    u, s, vt = np.linalg.svd(z - middle, full_matrices=False)
    projected = u.T @ (y - level)  # (r, K)
    best = np.full(y.shape[1], np.inf)
    maps, fitted, left = np.zeros((1 + z.shape[1], y.shape[1])), np.zeros_like(y), np.zeros_like(y)
    for penalty in PENALTIES:
        kept = s**2 / (s**2 + penalty)
        guess = level + u @ (kept[:, None] * projected)
        leverage = 1 / len(z) + (u**2) @ kept  # (n,)
        errors = (y - guess) / np.maximum(1 - leverage, 1e-9)[:, None]
        better = (errors**2).mean(axis=0) < best
        best = np.where(better, (errors**2).mean(axis=0), best)
        slopes = vt.T @ ((s / (s**2 + penalty))[:, None] * projected)  # (F, K)
        maps[1:, better] = slopes[:, better]
        maps[0, better] = (level - middle @ slopes)[better]
        fitted[:, better], left[:, better] = guess[:, better], errors[:, better]
    return maps, fitted, left
