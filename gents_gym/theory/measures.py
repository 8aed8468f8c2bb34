"""Measures what the proofs bound: divergence of actions, information, entropy, loss, and Proposition 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gents_gym.checks import check_integer
from gents_gym.models.exact import ExactModel
from gents_gym.models.sequence import SequenceModel
from gents_gym.theory.coding import code_length
from gents_gym.theory.estimates import (
    Estimate,
    corrected_entropy,
    count_actions,
    divergence,
    estimate,
    one_step,
    plug_in_entropy,
    pooled_ratio,
)
from gents_gym.theory.histories import EXACT, Histories, exact_info, follow, play, prior_labels
from gents_gym.training.losses import Losses, exact_model, measure
from gents_gym.types import TaskDistribution, Tasks

CODED = 4  # label sequences of each task that are coded
EDGES = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98, 1.01)  # of Proposition 1's bins
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)  # decisions that are measured, besides the last one


def measure_losses(
    distribution: TaskDistribution, models: Mapping[str, SequenceModel], horizon: int, n_rows: int, seed: int = 0
) -> Losses:
    """Return the losses of models and p* on ``n_rows`` single actions of the test split, by prefix length."""
    rows = distribution.sample_actions(seed, range(check_integer("loss_actions", n_rows, 2)), horizon, "test")
    return measure({**models, EXACT: exact_model(distribution)}, rows, seed)


def gap_growth(losses: Losses, name: str, n_actions: int) -> list[Estimate]:
    """Return ℓ(p_θ) - ℓ(p*) of whole tasks, outcomes given contexts, for each prefix length as the horizon.

    Given their features, the actions of a task are independent, so a task's gap is A times an action's.
    """
    above = n_actions * (losses.sums[name] - losses.sums[EXACT])  # (N, P)
    return [estimate(above[:, i]) for i in range(len(losses.prefixes))]


def divergences(histories: Histories, n_actions: int) -> dict[str, list[tuple[Estimate, Estimate]]]:
    """Return KL and total variation from p*'s actions to each model's, by step; "exact" is the Monte-Carlo floor.

    The floor comes from two independent sets of p*'s own draws.
    """
    half = histories.plays[EXACT].shape[2] // 2
    reference = count_actions(histories.plays[EXACT][..., :half], n_actions)  # (S, B, A)
    others = {**histories.plays, EXACT: histories.plays[EXACT][..., half:]}
    found = {name: divergence(reference, count_actions(plays, n_actions)) for name, plays in others.items()}
    return {
        name: [(estimate(kl), estimate(variation)) for kl, variation in zip(*each, strict=True)]
        for name, each in found.items()
    }


def over_task(steps: Sequence[int], values: Sequence[float], horizon: int) -> float:
    """Return the mean over all T decisions of values known at some, interpolated linearly."""
    return float(np.interp(np.arange(1, horizon + 1), steps, values).mean())


@dataclass(frozen=True)
class Information:
    """What TS-Gen on p* loses and learns at each step."""

    regret: list[Estimate]  # E_t of the next decision's regret
    gain: list[Estimate]  # I_t(π*(X_t; τ); (Y_t, A_t)), in nats
    ratio: list[Estimate | None]  # E[Δ_t²] / E[I_t]; None if the information is not clearly above 0
    total: Estimate  # Σ_t I_t


def information(histories: Histories, horizon: int) -> Information:
    """Return the information ratio along tasks."""
    assert histories.outcomes is not None
    found = [one_step(*parts) for parts in zip(histories.plays[EXACT], histories.outcomes, strict=True)]
    each = zip(*(step.gain for step in found), strict=True)  # a task's, by step
    totals = np.array([horizon * over_task(histories.steps, gains, horizon) for gains in each])
    return Information(
        [estimate(step.regret) for step in found],
        [estimate(step.gain) for step in found],
        [pooled_ratio(step) for step in found],
        estimate(totals),
    )


@dataclass(frozen=True)
class Entropy:
    """The entropy of π*(X_1:T) given Z and the contexts, from below and from above, in nats."""

    plug_in: float  # a lower bound on the entropy, at most log M
    code: Estimate  # an upper bound on the entropy
    single: float  # Σ_t H(π*(X_t)), at least the entropy


def policy_entropy(tasks: Tasks, draws: int, seed: int = 0) -> Entropy:
    """Return bounds on the entropy of the oracle's actions, from tables that p* draws given actions and contexts."""
    labels = prior_labels(tasks, draws, seed=seed)  # (B, M, T)
    truth = exact_info(tasks)
    assert truth.truth is not None
    model = ExactModel(truth.truth)
    priors, rows = zip(*model.prior(truth.action_features), strict=True), model.design(tasks.contexts)
    each = [
        [code_length(sequence, x, *prior) for sequence in mine[:CODED]]
        for mine, x, prior in zip(labels, rows, priors, strict=True)
    ]
    whole = [plug_in_entropy(np.unique(mine, axis=0, return_counts=True)[1]) for mine in labels]
    single = corrected_entropy(count_actions(labels.swapaxes(1, 2), tasks.n_actions)).sum(axis=1)  # (B,)
    return Entropy(float(np.mean(whole)), estimate(np.mean(each, axis=1)), float(single.mean()))


@dataclass(frozen=True)
class Bin:
    """Actions whose probability under a model lies in one interval."""

    count: int  # (task, step, action)
    predicted: float  # mean probability that TS-Gen plays the action
    observed: Estimate  # how often the oracle of the task's own table plays it


def matching(histories: Histories, name: str, n_actions: int) -> list[Bin]:
    """Return Proposition 1 as a reliability diagram: P(A_t = a | H_t) against how often the oracle plays a.

    Errors are those of a ratio of sums over tasks, so a task's steps may depend on each other.
    """
    plays = histories.plays[name]
    chance = count_actions(plays, n_actions) / plays.shape[2]  # (S, B, A)
    hit = histories.oracle[..., None] == np.arange(n_actions)
    found = []
    for low, high in pairwise(EDGES):
        inside = (chance >= low) & (chance < high)
        if count := int(inside.sum()):
            share = (hit & inside).sum() / count
            left = ((hit - share) * inside).sum(axis=(0, 2))  # (B,)
            error = float(np.sqrt((left**2).sum()) / count)
            found.append(Bin(count, float(chance[inside].mean()), Estimate(float(share), error)))
    return found


@dataclass(frozen=True)
class Measures:
    """All measurements of one environment; divergences, gaps and regrets by model."""

    steps: tuple[int, ...]  # the decisions that divergence and information are measured at
    prefixes: tuple[int, ...]  # the horizons that gaps are measured at
    divergence: dict[str, list[tuple[Estimate, Estimate]]]  # KL and total variation by step; "exact": the floor
    moved: dict[str, float]  # the mean over decisions of Σ_a |P(a) - Q(a)|
    information: Information
    entropy: Entropy
    matching: dict[str, list[Bin]]
    gaps: dict[str, list[Estimate]]  # nats per task, by prefix
    regret: dict[str, Estimate]  # regret of TS-Gen on the model, per period


def measure_all(
    distribution: TaskDistribution,
    tasks: Tasks,
    models: Mapping[str, SequenceModel],
    draws: int,
    n_rows: int,
    seed: int = 0,
) -> Measures:
    """Measure what the bounds bound.

    Args:
        distribution: The task distribution, with its truth.
        tasks: B of its tasks, to be played.
        models: Models of its setting, by name.
        draws: M, completed tables of each task, model and step.
        n_rows: Single actions whose losses are measured.
        seed: Seed of agents and rows.
    """
    horizon, n_actions = tasks.horizon, tasks.n_actions
    losses = measure_losses(distribution, models, horizon, n_rows, seed)
    steps = (*(step for step in STEPS if step < horizon), horizon)
    followed = follow(tasks, models, steps, draws, seed=seed)
    apart = divergences(followed, n_actions)
    return Measures(
        steps,
        losses.prefixes,
        apart,
        {name: 2 * over_task(steps, [tv.mean for _, tv in each], horizon) for name, each in apart.items()},
        information(followed, horizon),
        policy_entropy(tasks, draws, seed),
        {name: matching(followed, name, n_actions) for name in followed.plays},
        {name: gap_growth(losses, name, n_actions) for name in models},
        {name: estimate(play(tasks, model, seed=seed).mean(axis=1)) for name, model in models.items()},
    )
