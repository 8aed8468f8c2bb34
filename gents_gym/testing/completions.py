"""The contract of completed tables: their form, where their randomness comes from, and what they are draws of."""

import copy
from typing import Any

import numpy as np

from gents_gym.checks import InputError
from gents_gym.testing.believer import RNG_ADVICE, ROUGH, Believer, Story, WatchedBelief, check_same
from gents_gym.testing.contract import breach
from gents_gym.types import Completion, Feedback

DRAWS, FORKED = 1000, 300  # tables behind a frequency, and those of each task whose second row is looked at
SIGMAS = 5.0  # standard errors of a frequency that are admitted
BATCHES = ([0], [4], [3, 1])


def check_completions(believer: Believer, story: Story, steps: int) -> None:
    """Check the tables that a belief completes after ``steps`` decisions."""
    belief = believer.begin(story, steps)
    before = belief.expected(story.tasks.contexts[:, steps])
    columns = np.tile([2, 0], (len(story.actions), 1)) % story.tasks.n_actions
    for options in ({}, {"rows": 3}, {"rows": 3, "draws": 2}, {"rows": 2, "actions": columns}, {"actions": columns}):
        _check_form(believer, belief, story, steps, options)
    after = belief.expected(story.tasks.contexts[:, steps])
    rule = f"{believer.name}: complete changes what is expected"
    advice = "imagined outcomes are no observations: generate from a copy of the state"
    check_same(rule, before, after, "tables were completed between two calls of expected", advice, belief.draws)
    _check_open_cells(believer, story, steps)
    _check_generators(believer, story, steps)
    _check_frequencies(believer, story, steps)


def _complete(belief: WatchedBelief, story: Story, t: int, **options: Any) -> Completion:
    found: Completion = belief.call("complete", story.tasks.contexts[:, t].copy(), **copy.deepcopy(options))
    return found


def _check_form(believer: Believer, belief: WatchedBelief, story: Story, t: int, options: dict[str, Any]) -> None:
    """Check shapes, contexts, observed cells and valid outcomes of one completion."""
    tasks = story.tasks
    found = _complete(belief, story, t, **options)
    shown = {name: value.shape if isinstance(value, np.ndarray) else value for name, value in options.items()}
    done = f"complete was called with {shown or 'nothing but the context'} after {belief.where}"

    def demand(holds: bool, what: str, expected: str, seen: Any, advice: str) -> None:
        if not holds:
            rule = f"{believer.name}: {what} of a completed table is not as it must be"
            raise breach(rule, done=done, expected=expected, seen=str(seen), advice=advice)

    rows, draws = options.get("rows"), options.get("draws", 1)
    columns = options.get("actions", np.tile(np.arange(tasks.n_actions), (len(tasks), 1)))  # (B, n)
    end = tasks.horizon if rows is None else t + rows
    shape = (len(tasks), draws, end, columns.shape[1])
    shapes = {"contexts": (*shape[:3], tasks.context_dim), "outcomes": shape}
    if rows is not None:
        shapes["weights"] = shape
    for name, wanted in shapes.items():
        part: Any = getattr(found, name, None)
        advice = "return gents_gym.types.Completion with the shapes of gents_gym.Belief.complete"
        demand(np.shape(part) == wanted, name, f"shape {wanted}", f"shape {np.shape(part)}", advice)
    demand(found.current == t, "current", f"row {t}, that of the current context", found.current, "count earlier rows")
    own = np.broadcast_to(tasks.contexts[:, None, : t + 1], (*shape[:2], t + 1, tasks.context_dim))
    same = np.allclose(found.contexts[:, :, : t + 1], own, atol=1e-5)
    advice = "put the contexts of earlier decisions and the current one into the first rows"
    demand(same, "contexts", "the task's own contexts up to the current one", "others", advice)
    demand(bool(np.isfinite(found.contexts).all()), "contexts", "finite numbers", "others", "draw valid contexts")
    seen = story.actions[:, None, :t, None] == columns[:, None, None]  # (B, 1, t, n)
    seen = np.broadcast_to(seen, (*shape[:2], t, shape[3]))
    outcomes = np.broadcast_to(np.stack([story.outcome(s) for s in range(t)], 1)[:, None, :, None], seen.shape)
    kept = found.outcomes[:, :, :t][seen] == outcomes[seen]
    advice = "write the observed outcomes into their cells; only missing ones are drawn"
    demand(bool(kept.all()), "an observed cell", "the outcome that was observed", "another one", advice)
    weights = np.ones(shape) if found.weights is None else np.asarray(found.weights)
    counted = (weights[:, :, :t][seen] > 0).all() and (weights[:, :, t:] > 0).all() and (weights >= 0).all()
    if rows is not None:
        counted = counted and not weights[:, :, :t][~seen].any()
    expected = "above 0 for observed and imputed cells, 0 for the other cells of earlier rows if rows is given"
    demand(bool(counted), "the weights", expected, "others", "weights say which cells a policy is fitted to")
    try:
        tasks.likelihood.check("a completed outcome", np.asarray(found.outcomes)[weights > 0])
    except InputError as error:
        demand(False, "an outcome", f"{tasks.likelihood} outcomes", error, "draw outcomes: likelihood.sample(p, noise)")
    _check_table_features(believer, found, demand)


def _check_table_features(believer: Believer, found: Completion, demand: Any) -> None:
    mapped = believer.model.context_features(found.contexts)
    advice = "return context_features of the table's contexts, or None if the model has none"
    none = found.features is None
    demand(none == (mapped is None), "features", "features if and only if the model has some", f"None: {none}", advice)
    if mapped is not None and found.features is not None:
        same = np.shape(mapped) == found.features.shape and np.allclose(mapped, found.features, atol=1e-3)
        demand(same, "features", "context_features of the table's contexts", "others", advice)


def _check_open_cells(believer: Believer, story: Story, steps: int) -> None:
    """Check that a cell whose outcome has not arrived is missing."""
    belief = believer.begin(story, steps)
    belief.call("decide", story.tasks.contexts[:, steps].copy(), story.actions[:, steps].copy())
    found = _complete(belief, story, steps + 1, rows=2)
    assert found.weights is not None
    cells = np.take_along_axis(found.weights[:, :, steps], story.actions[:, None, steps, None], axis=2)
    if cells.any():
        raise breach(
            f"{believer.name}: a decision without an outcome counts as observed",
            done="decide was called, no outcome arrived, and complete was called with rows=2",
            expected="weight 0 in the cell of that decision",
            seen=f"weights {cells.ravel().tolist()}",
            advice="decide opens a row; its cell is missing until observe brings the outcome",
        )


def _check_generators(believer: Believer, story: Story, steps: int) -> None:
    """Check that the draws of a task come from its own generator, and from nowhere else."""
    wanted = {"rows": 3, "draws": 8}
    found = _complete(believer.begin(story, steps), story, steps, **wanted)
    again = _complete(believer.begin(story, steps), story, steps, **wanted)
    rule = f"{believer.name} does not complete the same tables again"
    done = "two beliefs that observed the same completed tables with the same generators"
    check_same(rule, found.contexts, again.contexts, done, RNG_ADVICE)
    check_same(rule, found.outcomes, again.outcomes, done, RNG_ADVICE)
    for batch in BATCHES:
        part = story.pick(batch)
        alone = _complete(believer.begin(part, steps), part, steps, **wanted)
        rule = f"{believer.name} completes other tables for a task beside other tasks"
        done = f"tasks {batch} of {len(story.actions)} were completed on their own, each with its own generator"
        check_same(rule, found.outcomes[batch], alone.outcomes, done, RNG_ADVICE)
        check_same(rule, found.contexts[batch], alone.contexts, done, RNG_ADVICE)
    forked = believer.begin(story, steps)
    fork = forked.fork([0, 0])
    twins = _complete(fork, story.pick([0, 0]), steps, rows=2, draws=64)
    later = _complete(forked, story, steps, **wanted)
    rule = f"{believer.name}: a fork draws from the original's generators"
    advice = "give a fork generators of its own: rngs[i].spawn(1)[0]"
    check_same(rule, found.outcomes, later.outcomes, "a fork completed tables before the original did", advice)
    open_cells = _is_open(believer.begin(story, steps).expected(story.tasks.contexts[:, steps]), story)[0]
    if open_cells.any() and np.array_equal(twins.outcomes[0], twins.outcomes[1]):
        raise breach(
            f"{believer.name}: copies of one task draw the same numbers",
            done="a task was forked twice at once, and 64 tables of each copy were completed",
            expected="tables that differ",
            seen="the same tables",
            advice=advice,
        )


def _is_open(expected: np.ndarray, story: Story) -> np.ndarray:
    """Return in which cells several outcomes are likely."""
    if story.tasks.likelihood.support is None:
        return np.ones(expected.shape, np.bool_)
    rewards = np.asarray(story.tasks.reward_fn(story.tasks.likelihood.support), np.float64)
    share = (expected - rewards.min()) / max(np.ptp(rewards), 1e-12)
    return (share > 0.1) & (share < 0.9)


def _check_frequencies(believer: Believer, story: Story, steps: int) -> None:
    """Check the first drawn row against expected, and the second one against expected once the first is observed."""
    belief = believer.begin(story, steps)
    tasks, context = story.tasks, story.tasks.contexts[:, steps]
    expected = np.asarray(belief.expected(context), np.float64)
    found = _complete(belief, story, steps, rows=2, draws=DRAWS)
    again = _complete(belief, story, steps, rows=2, draws=DRAWS)
    first, second = (np.asarray(tasks.reward_fn(found.outcomes[:, :, steps + i]), np.float64) for i in (0, 1))
    rule, rough = f"{believer.name} does not draw what it expects", ROUGH if belief.draws else 0.0
    done = f"{DRAWS} tables of each task were completed, and the first drawn row was compared with expected"
    advice = "draw each outcome with the predicted parameters: likelihood.sample(parameters, noise)"
    if np.array_equal(found.outcomes, again.outcomes) and _is_open(expected, story).any():
        seen = f"complete was called twice with {DRAWS} draws"
        raise breach(rule, done=seen, expected="other tables each time", seen="the same tables", advice=RNG_ADVICE)
    spread = first.std(axis=1)
    if tasks.likelihood.support is not None:  # no more than that of a coin between the lowest and the highest reward
        ends = np.asarray(tasks.reward_fn(tasks.likelihood.support), np.float64)
        spread = np.sqrt(np.maximum((expected - ends.min()) * (ends.max() - expected), 0))
    gap, error = first.mean(axis=1) - expected, np.sqrt(spread**2 / DRAWS) + 2 * np.ptp(first) / DRAWS
    z = np.abs(gap) / np.maximum(error, 1e-9)
    at = tuple(int(i) for i in np.unravel_index(z.argmax(), z.shape))
    pooled = abs(gap.mean()) / max(float(np.sqrt((error**2).sum()) / error.size), 1e-9)
    if (z[at] > SIGMAS and abs(gap[at]) > rough) or (pooled > SIGMAS and abs(gap.mean()) > rough):
        seen = (
            f"{first.mean(axis=1)[at]:.4f} in the mean, expected {expected[at]:.4f}, for task {at[0]}, action {at[1]}"
        )
        seen += f"; over all cells {first.mean():.4f}, expected {expected.mean():.4f}"
        raise breach(rule, done=done, expected=f"the same within {SIGMAS:g} standard errors", seen=seen, advice=advice)
    _check_second(believer, belief, story, found, second, steps)


def _check_second(
    believer: Believer, belief: WatchedBelief, story: Story, found: Completion, second: np.ndarray, steps: int
) -> None:
    """Check that a drawn outcome is drawn given those before it: as if they had been observed."""
    tasks, action = story.tasks, story.tasks.n_actions - 1  # one that was not played yet: it learns most
    fork = belief.fork(np.repeat(np.arange(len(tasks)), FORKED).tolist())
    drawn = found.outcomes[:, :FORKED, steps, action].reshape(-1)  # (B·M,)
    contexts = found.contexts[:, :FORKED, steps : steps + 2].reshape(len(drawn), 2, -1)
    fork.call("decide", contexts[:, 0].copy(), np.full(len(drawn), action))
    fork.call("observe", Feedback(np.arange(len(drawn)), np.full(len(drawn), steps), drawn.copy()))
    expected = np.asarray(fork.expected(contexts[:, 1]), np.float64)[:, action]
    left = second[:, :FORKED, action] - expected.reshape(len(tasks), FORKED)  # (B, M)
    first = drawn.reshape(left.shape) - drawn.reshape(left.shape).mean(axis=1, keepdims=True)
    for product in (left, left * first):
        z = abs(product.mean()) / max(float(product.std() / np.sqrt(product.size)), 1e-9)
        if z > SIGMAS and abs(product.mean()) > (ROUGH / 4 if belief.draws else 1e-3):
            raise breach(
                f"{believer.name} does not draw an outcome given those that it drew before",
                done=f"{FORKED} tables of each task were completed; in forks, the first drawn outcome of one action "
                "was observed, and its second one compared with expected",
                expected=f"a mean difference of 0 within {SIGMAS:g} standard errors, whatever was drawn first",
                seen=f"{z:.1f} standard errors",
                advice="append every drawn outcome before the next one is drawn: draws are autoregressive",
            )
