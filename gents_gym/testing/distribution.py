"""Checks the contract of task distributions and raises at the first violation."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gents_gym.randomness import SPLITS
from gents_gym.testing.contract import breach, explained, global_generators_left_alone
from gents_gym.testing.watched import SEED_ADVICE
from gents_gym.types import ActionRows, TaskDistribution, Tasks

N_TASKS = 64  # tasks that means are compared with
N_ROWS = 200  # rows of a single action: so many coin flips are hardly equal by chance
SURE = 6  # standard errors beyond which a difference is not due to chance
TASK_ARRAYS = ("action_features", "contexts", "outcomes", "means", "hidden_features")
ROW_ARRAYS = ("action_features", "contexts", "outcomes")


def check_distribution(name: str, distribution: TaskDistribution) -> None:
    """Raise if the tasks or rows that ``distribution`` draws are not what an evaluation relies on."""
    sample = partial(_draw, name, "sample", Tasks, distribution.sample)
    sample_actions = partial(_draw, name, "sample_actions", ActionRows, distribution.sample_actions)
    with global_generators_left_alone(name, "tasks and rows were drawn", SEED_ADVICE):
        _check_draws(name, "sample", TASK_ARRAYS, sample)
        _check_draws(
            name, "sample_actions", ROW_ARRAYS, lambda seed, at, split: sample_actions(seed, at, N_ROWS, split)
        )
        tasks, history = sample(0, range(N_TASKS)), sample_actions(0, range(3), N_ROWS)
    _check_history(name, tasks, history)
    _check_rewards(name, tasks)


def _draw(name: str, verb: str, kind: type, draw: Callable[..., Any], *given: Any) -> Any:
    """Return what is drawn, or explain why it is not a ``kind``."""
    expected, advice = f"{kind.__name__} from {verb}", "whatever the seed, the indices and the split"
    with explained(f"{name} fails in {verb}", done=f"{verb} was called", expected=expected, advice=f"draw, {advice}"):
        drawn = draw(*given)
    if not isinstance(drawn, kind):
        _fail(name, f"{verb} was called", expected, repr(drawn), f"return gents_gym.{kind.__name__}, {advice}")
    return drawn


def _check_draws(name: str, verb: str, arrays: Sequence[str], draw: Any) -> None:
    """Raise unless what is drawn at an index depends on exactly (seed, split, index)."""
    first = draw(7, range(4), "train")
    alone = "only (seed, split, index) may determine what is drawn at an index"
    for how, found, at in (
        ("again", draw(7, range(4), "train"), [0, 1, 2, 3]),
        ("in another order and without the others", draw(7, [3, 1], "train"), [3, 1]),
        ("among more", draw(7, range(6), "train"), [0, 1, 2, 3, 4, 5]),
    ):
        expected, got = _pick(first, arrays, at), _pick(found, arrays, range(len(at)))
        for key in expected:
            # Matrix products may round differently for another number of rows, so the last digits may differ.
            left, right = expected[key], got[key][: len(expected[key])]
            if left.shape != right.shape or not np.allclose(left, right, rtol=1e-4, atol=1e-6):
                _fail(name, f"the same entries of {verb} were drawn {how}", alone, f"other {key}", SEED_ADVICE)
    same = "the same features, contexts and outcomes"
    for how, found in (
        ("with another seed", draw(8, range(4), "train")),
        *((f"from the split {split}", draw(7, range(4), split)) for split in SPLITS if split != "train"),
    ):
        if set(_contents(first, arrays)) & set(_contents(found, arrays)):
            _fail(name, f"{verb} drew {how}", "nothing in common", same, SEED_ADVICE)
    if len(set(_contents(first, arrays))) < len(first):
        _fail(name, f"{verb} drew 4 entries", "different ones", f"{same} twice", SEED_ADVICE)


def _pick(drawn: Tasks | ActionRows, arrays: Sequence[str], at: Sequence[int]) -> dict[str, np.ndarray]:
    at = [index for index in at if index < len(drawn)]
    return {key: value[at] for key in arrays if (value := getattr(drawn, key)) is not None}


def _contents(drawn: Tasks | ActionRows, arrays: Sequence[str]) -> list[bytes]:
    parts = _pick(drawn, arrays, range(len(drawn))).values()
    return [b"".join(array.tobytes() for array in entry) for entry in zip(*parts, strict=True)]


def _check_history(name: str, tasks: Tasks, history: ActionRows) -> None:
    sizes = {"context": history.contexts.shape[2], "feature": history.action_features.shape[1]}
    expected = {"context": tasks.context_dim, "feature": tasks.action_features.shape[2]}
    if sizes != expected:
        _fail(
            name, "single actions were drawn", f"the sizes of the tasks, {expected}", f"{sizes}", "use the same sizes"
        )
    if history.reward_fn is not tasks.reward_fn:
        seen = f"{history.reward_fn!r}"
        _fail(name, "single actions were drawn", f"the tasks' reward_fn, {tasks.reward_fn!r}", seen, "pass on the same")
    if history.likelihood != tasks.likelihood:
        rule, advice = f"the tasks' likelihood, {tasks.likelihood}", "state likelihood=... in Tasks and in ActionRows"
        _fail(name, "single actions were drawn", rule, f"{history.likelihood}", advice)


def _check_rewards(name: str, tasks: Tasks) -> None:
    """Raise unless rewards are finite and ``means`` are their expectations, as far as this many tasks can show."""
    done = f"{N_TASKS} tasks were drawn"
    advice = "map every outcome to a finite number in reward_fn"
    with explained(f"{name} has no rewards", done=done, expected="finite rewards R(Y)", advice=advice):
        rewards = tasks.rewards.astype(np.float64)
    if tasks.means is None:
        return
    means = tasks.means.astype(np.float64)
    residuals = rewards - means  # (B, T, A); with correct means, nothing known beforehand predicts them
    spread = means - means.mean()
    variance = _largest_variance(tasks, means)
    for what, weight in (("on average", np.ones_like(means)), ("where means are high", spread)):
        per_task = (residuals * weight).mean(axis=(1, 2))
        most = np.sqrt((weight**2 * variance).sum()) / means.size  # if all rewards are independent
        error = max(per_task.std(ddof=1) / np.sqrt(N_TASKS), most)  # rare rewards may all be equal in so few tasks
        if abs(per_task.mean()) > SURE * error + 1e-6:
            seen = (
                f"{what} they differ by {per_task.mean():.4f}, which is more than {SURE} standard errors of {error:.4f}"
            )
            advice = "means are E[R(Y)] given all true parameters, not outcomes, logits or estimates; None if unknown"
            _fail(name, done, "rewards that have the means as expectations", seen, advice)


def _largest_variance(tasks: Tasks, means: np.ndarray) -> np.ndarray:
    """Return the largest variance of rewards with these means, (B, T, A); 0 if there are infinitely many outcomes."""
    if tasks.likelihood.support is None:
        return np.zeros_like(means)
    worth = np.asarray(tasks.reward_fn(tasks.likelihood.support), np.float64)
    return ((means - worth.min()) * (worth.max() - means)).clip(0)


def _fail(name: str, done: str, expected: str, seen: str, advice: str) -> None:
    raise breach(f"{name}: its tasks are invalid", done=done, expected=expected, seen=seen, advice=advice)
