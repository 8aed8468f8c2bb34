"""Checks drawn outcomes: the source of their randomness, and which predictions they are draws of."""

import numpy as np

from gents_gym.testing.believer import RNG_ADVICE, ROUGH, Believer, Story, WatchedBelief, check_same
from gents_gym.testing.completions import complete
from gents_gym.testing.contract import breach
from gents_gym.types import Completion, Feedback

DRAWS = 400  # tables of each task that a frequency is computed from
FEWER = 200  # forks of each task if predictions use random numbers, which are slow
SIGMAS = 5.0  # standard errors that a frequency may deviate by
BATCHES = ([0], [4], [3, 1])


def check_draws(believer: Believer, story: Story, steps: int) -> None:
    """Check the outcomes that beliefs draw after ``steps`` decisions."""
    _check_generators(believer, story, steps)
    _check_forks(believer, story, steps)
    _check_frequencies(believer, story, steps)


def _check_generators(believer: Believer, story: Story, steps: int) -> None:
    """Check that the draws of a task come only from its own generator."""
    wanted = {"rows": 3, "draws": 8}
    found = complete(believer.begin(story, steps), story, steps, **wanted)
    again = complete(believer.begin(story, steps), story, steps, **wanted)
    rule = f"{believer.name} does not complete the same tables again"
    done = "two beliefs that observed the same completed tables with the same generators"
    check_same(rule, found.contexts, again.contexts, done, RNG_ADVICE)
    check_same(rule, found.outcomes, again.outcomes, done, RNG_ADVICE)
    for batch in BATCHES:
        part = story.pick(batch)
        alone = complete(believer.begin(part, steps), part, steps, **wanted)
        rule = f"{believer.name} completes a task differently next to other tasks"
        done = f"tasks {batch} of {len(story.actions)} were completed on their own, each with its own generator"
        check_same(rule, found.outcomes[batch], alone.outcomes, done, RNG_ADVICE)
        check_same(rule, found.contexts[batch], alone.contexts, done, RNG_ADVICE)


def _check_forks(believer: Believer, story: Story, steps: int) -> None:
    """Check that forks have their own random numbers."""
    wanted = {"rows": 3, "draws": 8}
    found = complete(believer.begin(story, steps), story, steps, **wanted)
    belief = believer.begin(story, steps)
    twins = complete(belief.fork([0, 0]), story.pick([0, 0]), steps, rows=2, draws=64)
    later = complete(belief, story, steps, **wanted)
    rule = f"{believer.name}: a fork draws from the original's generators"
    advice = "give a fork its own generators: rngs[i].spawn(1)[0]"
    check_same(rule, found.outcomes, later.outcomes, "a fork completed tables before the original did", advice)
    open_cells = _is_open(belief.expected(story.tasks.contexts[:, steps]), story)[0]
    if open_cells.any() and np.array_equal(twins.outcomes[0], twins.outcomes[1]):
        raise breach(
            f"{believer.name}: copies of one task draw the same numbers",
            done="a task was forked twice at once, and 64 tables of each copy were completed",
            expected="tables that differ",
            seen="the same tables",
            advice=advice,
        )


def _is_open(expected: np.ndarray, story: Story) -> np.ndarray:
    """Return the cells in which several outcomes are likely."""
    if story.tasks.likelihood.support is None:
        return np.ones(expected.shape, np.bool_)
    rewards = np.asarray(story.tasks.reward_fn(story.tasks.likelihood.support), np.float64)
    share = (expected - rewards.min()) / max(np.ptp(rewards), 1e-12)
    return (share > 0.1) & (share < 0.9)


def _check_frequencies(believer: Believer, story: Story, steps: int) -> None:
    """Compare drawn rewards with expected ones: in the current row, the first row, and the second drawn row."""
    belief, contexts = believer.begin(story, steps), story.tasks.contexts
    rule = f"{believer.name} does not draw what it expects"
    expected = belief.expected(contexts[:, steps])
    found = complete(belief, story, steps, rows=2, draws=DRAWS)
    again = complete(belief, story, steps, rows=2, draws=DRAWS)
    if np.array_equal(found.outcomes, again.outcomes) and _is_open(expected, story).any():
        done = f"complete was called twice with {DRAWS} draws"
        raise breach(rule, done=done, expected="other tables each time", seen="the same tables", advice=RNG_ADVICE)
    done = f"{DRAWS} tables of each task were completed with rows=2, and the first drawn row compared with expected"
    _check_means(rule, belief, story, found.outcomes[:, :, steps], expected, done)
    whole = complete(belief, story, steps, draws=DRAWS)
    done = f"{DRAWS} whole tables of each task were completed, and the missing cells of row 0 compared with expected"
    expected = belief.expected(contexts[:, 0])
    missing = story.actions[:, :1] != np.arange(expected.shape[1])  # (B, A)
    _check_means(rule, belief, story, whole.outcomes[:, :, 0], expected, done, missing)
    _check_second(believer, belief, story, found, steps)


def _check_means(
    rule: str,
    belief: WatchedBelief,
    story: Story,
    outcomes: np.ndarray,  # (B, M, A)
    expected: np.ndarray,  # (B, A)
    done: str,
    missing: np.ndarray | None = None,  # (B, A): the cells that were drawn; None: all
) -> None:
    rewards = np.asarray(story.tasks.reward_fn(outcomes), np.float64)
    mean, count, spread = rewards.mean(axis=1), outcomes.shape[1], rewards.std(axis=1)
    # At most the variance of a coin flip between the extremes.
    if (support := story.tasks.likelihood.support) is not None:
        ends = np.asarray(story.tasks.reward_fn(support), np.float64)
        spread = np.sqrt(np.maximum((expected - ends.min()) * (ends.max() - expected), 0))
    drawn = np.ones(mean.shape, np.bool_) if missing is None else missing
    gap = np.where(drawn, mean - expected, 0)
    error = np.maximum(spread / np.sqrt(count) + 2 * np.ptp(rewards) / count, 1e-9)
    z = np.abs(gap) / error
    at = tuple(int(i) for i in np.unravel_index(z.argmax(), z.shape))
    pooled = abs(gap[drawn].mean()) / (np.sqrt((error[drawn] ** 2).sum()) / drawn.sum())
    rough = ROUGH if belief.draws else 0.0
    if (z[at] > SIGMAS and abs(gap[at]) > rough) or (pooled > SIGMAS and abs(gap[drawn].mean()) > rough):
        seen = f"{mean[at]:.4f} on average, expected {expected[at]:.4f}, for task {at[0]}, action {at[1]}"
        seen += f"; over all cells {mean[drawn].mean():.4f}, expected {expected[drawn].mean():.4f}"
        wanted = f"the same within {SIGMAS:g} standard errors"
        advice = "draw each outcome with the predicted parameters: likelihood.sample(parameters, noise)"
        raise breach(rule, done=done, expected=wanted, seen=seen, advice=advice)


def _check_second(believer: Believer, belief: WatchedBelief, story: Story, found: Completion, steps: int) -> None:
    """Check that a drawn outcome is drawn given the earlier ones, as if they had been observed."""
    tasks, action = story.tasks, story.tasks.n_actions - 1  # an action that was not played yet learns most
    count = FEWER if belief.draws else DRAWS
    fork = belief.fork(np.repeat(np.arange(len(tasks)), count).tolist())
    drawn = found.outcomes[:, :count, steps, action].reshape(-1)  # (B·M,)
    contexts = found.contexts[:, :count, steps : steps + 2].reshape(len(drawn), 2, -1)
    fork.call("decide", contexts[:, 0].copy(), np.full(len(drawn), action))
    fork.call("observe", Feedback(np.arange(len(drawn)), np.full(len(drawn), steps), drawn.copy()))
    expected = fork.expected(contexts[:, 1])[:, action]
    second = np.asarray(tasks.reward_fn(found.outcomes[:, :count, steps + 1, action]), np.float64)
    left = second - expected.reshape(second.shape)  # (B, M)
    first = drawn.reshape(left.shape) - drawn.reshape(left.shape).mean(axis=1, keepdims=True)
    for product in (left, left * first):
        z = abs(product.mean()) / max(float(product.std() / np.sqrt(product.size)), 1e-9)
        if z > SIGMAS and abs(product.mean()) > (ROUGH / 4 if belief.draws else 1e-3):
            raise breach(
                f"{believer.name} does not draw an outcome given the earlier draws",
                done=f"{count} tables of each task were completed; in forks, the first drawn outcome of one action "
                "was observed, and its second one compared with expected",
                expected=f"a mean difference of 0 within {SIGMAS:g} standard errors, whatever was drawn first",
                seen=f"{z:.1f} standard errors",
                advice="append every drawn outcome before the next one is drawn: draws are autoregressive",
            )
