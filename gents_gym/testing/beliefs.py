"""Checks what predictions of beliefs depend on and how outcomes change them; raises at the first violation."""

import numpy as np

from gents_gym.testing.believer import Believer, Story, WatchedBelief, check_same
from gents_gym.testing.contract import breach, explained
from gents_gym.testing.player import unless_refused
from gents_gym.types import Feedback, Tasks

BATCHES = ([0], [4], [3, 1], [4, 3, 2, 1, 0])  # batches of five tasks that are tried besides all in order


def check_beliefs(believer: Believer, again: Believer, story: Story, others: Tasks, steps: int) -> None:
    """Check the beliefs of five tasks after ``steps`` decisions.

    Args:
        believer: The model.
        again: The same model, made again.
        story: The decisions and outcomes in the tasks.
        others: Other tasks of the same distribution.
        steps: Decisions before most checks.
    """
    _check_expected(believer, story, steps)
    _check_repeatable(believer, again, story, others, steps)
    _check_many(believer, story, steps)
    _check_batches(believer, story, steps)
    _check_order(believer, story, steps)
    _check_buffers(believer, story, steps)
    _check_reward(believer, story, steps)
    _check_late(believer, story, steps)
    _check_features(believer, story)
    _check_some(believer, story, steps)


def ask(belief: WatchedBelief, story: Story, t: int) -> np.ndarray:
    """Return mean rewards (n, A) in the contexts of decision t."""
    return belief.expected(story.tasks.contexts[:, t])


def _check_expected(believer: Believer, story: Story, steps: int) -> None:
    tasks = story.tasks
    shape, (low, high) = (len(tasks), tasks.n_actions), _span(tasks)
    for t in (0, steps):
        belief = believer.begin(story, t)
        found = ask(belief, story, t)
        fits = found.shape == shape and found.dtype.kind == "f" and bool(np.isfinite(found).all())
        if not fits or (found < low - 1e-6).any() or (found > high + 1e-6).any():
            raise breach(
                f"{believer.name} expects impossible rewards",
                done=f"expected was called after {belief.where}",
                expected=f"mean rewards of shape (B, A)={shape}, finite and between {low:g} and {high:g}",
                seen=f"{found.dtype}{found.shape}" + (f", {found.min():g} to {found.max():g}" if found.size else ""),
                advice="return the mean of R of predicted outcomes: likelihood.expected_reward(info.reward_fn, p)",
            )
        _check_variance(believer, belief, tasks.contexts[:, t], shape)


def _check_many(believer: Believer, story: Story, steps: int) -> None:
    """Check that several contexts at once give the same as one at a time."""
    belief, contexts = believer.begin(story, steps), story.tasks.contexts[:, steps : steps + 3]
    one_by_one = np.stack([belief.expected(contexts[:, i]) for i in range(3)], axis=1)
    check_same(
        f"{believer.name}: many contexts at once are predicted differently from one at a time",
        one_by_one,
        belief.expected(contexts),
        f"expected was called with contexts (B, 3, D) and (B, D), {belief.where}",
        "treat (B, C, D) as C times (B, D), and return (B, C, A)",
        belief.draws,
    )


def _check_some(believer: Believer, story: Story, steps: int) -> None:
    """Check that predictions for some actions equal those among all actions, which pools of actions need."""
    belief, contexts = believer.begin(story, steps), story.tasks.contexts[:, steps]
    columns = np.tile([2, 0], (len(contexts), 1)) % story.tasks.n_actions
    check_same(
        f"{believer.name}: some actions are predicted differently from among all",
        np.take_along_axis(belief.expected(contexts), columns, axis=1),
        belief.expected(contexts, columns),
        f"expected(contexts, actions) was called with actions (B, 2), {belief.where}",
        "return the columns of these actions, in their order: np.take_along_axis(means, actions, axis=1)",
        belief.draws,
    )


def _span(tasks: Tasks) -> tuple[float, float]:
    """Return the lowest and the highest possible reward."""
    support = tasks.likelihood.support
    rewards = np.array([-np.inf, np.inf]) if support is None else np.asarray(tasks.reward_fn(support), np.float64)
    return float(rewards.min()), float(rewards.max())


def _check_variance(believer: Believer, belief: WatchedBelief, context: np.ndarray, shape: tuple[int, int]) -> None:
    found = belief.call("variance", context.copy())
    if found is None:
        return
    found = np.asarray(found)
    if found.shape != shape or not np.isfinite(found).all() or found.min() < 0:
        raise breach(
            f"{believer.name}: variance is wrong",
            done=f"variance was called after {belief.where}",
            expected=f"None, or finite numbers of at least 0 of shape (B, A)={shape}",
            seen=f"{found.dtype}{found.shape}" + (f", from {found.min():g} on" if found.size else ""),
            advice="return None if the model has no variances",
        )


def _check_repeatable(believer: Believer, other: Believer, story: Story, others: Tasks, steps: int) -> None:
    belief = believer.begin(story, steps)
    found = ask(belief, story, steps)
    rule = f"{believer.name}: a prediction depends on more than the history"
    again = "use only what was observed and the context: no counter, clock or own generator"
    check_same(rule, found, ask(belief, story, steps), "expected was called twice", again)
    believer.begin(Story(others, story.actions, story.numbers), steps)
    advice = "keep everything that is learned in the belief that begin returns, because a model serves many beliefs"
    check_same(rule, found, ask(belief, story, steps), "another belief of the model observed other tasks", advice)
    done = "a second belief of the model observed the same data"
    check_same(rule, found, ask(believer.begin(story, steps), story, steps), done, advice)
    rule = f"{believer.name} is different when it is made again"
    advice = "fit with a fixed seed: every block of an evaluation makes its own model"
    check_same(rule, found, ask(other.begin(story, steps), story, steps), "the model was made again", advice)


def _check_batches(believer: Believer, story: Story, steps: int) -> None:
    found = ask(believer.begin(story, steps), story, steps)
    for batch in BATCHES:
        part = story.pick(batch)
        check_same(
            f"{believer.name} predicts differently in a task next to other tasks",
            found[batch],
            ask(believer.begin(part, steps), part, steps),
            f"tasks {batch} of {len(found)} were believed side by side in this order",
            "reduce over actions and features only, never over tasks (axis=0)",
        )


def _check_order(believer: Believer, story: Story, steps: int) -> None:
    belief = believer.begin(story, steps)
    found, order = ask(belief, story, steps), np.roll(np.arange(story.tasks.n_actions), 1)
    moved = story.permute(order)
    check_same(
        f"{believer.name} predicts by the position of an action",
        found[:, order],
        ask(believer.begin(moved, steps), moved, steps),
        f"the actions were given in another order, {order.tolist()}, with the same features and outcomes",
        "use an action's features and history, not its place: the order of actions has no meaning",
        belief.draws,
    )


def _check_buffers(believer: Believer, story: Story, steps: int) -> None:
    check_same(
        f"{believer.name} keeps an array that belongs to its caller",
        ask(believer.begin(story, steps), story, steps),
        ask(believer.begin(story, steps, scribble=True), story, steps),
        "contexts, actions and outcomes were overwritten after each call that they were passed to",
        "keep copies: np.array(context), not context or a view of it",
    )


def _check_reward(believer: Believer, story: Story, steps: int) -> None:
    """Check that rewards are those of the task's R, unless the model refuses others with an InputError."""
    plain = story.tasks.reward_fn
    belief = unless_refused(lambda: believer.begin(story, steps, reward_fn=lambda outcome: 3 - 2 * plain(outcome)))
    if belief is None:
        return
    found = ask(belief, story, steps)
    check_same(
        f"{believer.name} ignores the reward function",
        3 - 2 * ask(believer.begin(story, steps), story, steps),
        found,
        "the same was observed with the rewards 3 - 2R(y) instead of R(y)",
        "return likelihood.expected_reward(info.reward_fn, parameters), or raise gents_gym.InputError in begin",
    )


def _check_late(believer: Believer, story: Story, steps: int) -> None:
    """Check outcomes that arrive later: none, several at once, and only in some tasks."""
    found = ask(believer.begin(story, steps + 2), story, steps + 2)
    belief = believer.begin(story, steps)
    before = ask(belief, story, steps + 2)
    for t in (steps, steps + 1):
        belief.call("decide", story.tasks.contexts[:, t].copy(), story.actions[:, t].copy())
    belief.call("observe", Feedback(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)))
    rule, done = f"{believer.name}: a decision without an outcome changes what is expected", "two decisions were made"
    advice = "learn in observe, when outcomes arrive; decide only notes the context and the action"
    check_same(rule, before, ask(belief, story, steps + 2), f"{done}, and no outcome arrived", advice, belief.draws)
    task = np.array([3, 1, 3, 1])  # not in order, not all
    outcome = np.stack([story.outcome(steps), story.outcome(steps + 1)])[[0, 0, 1, 1], task]
    belief.call("observe", Feedback(task, steps + np.array([0, 0, 1, 1]), outcome))
    found[[0, 2, 4]] = before[[0, 2, 4]]
    check_same(
        f"{believer.name}: late outcomes are learned differently",
        found,
        ask(belief, story, steps + 2),
        f"{done}, then both outcomes of tasks 3 and 1 arrived in one feedback, and none of the others",
        "take task, decision and outcome from the feedback: entry i is of task[i] and of its decision[i]",
        belief.draws,
    )


def _check_features(believer: Believer, story: Story) -> None:
    tasks, model = story.tasks, believer.model
    done = f"context_features was called with contexts {tasks.contexts.shape}"
    advice = "see gents_gym.Model; return None if the model has no such features"
    with explained(f"{believer.name} fails in its features", done=done, expected="features or None", advice=advice):
        mapped = model.context_features(tasks.contexts)
        single = model.context_features(tasks.contexts[:1, 0])
        both = model.action_context_features(tasks.action_features[:, None], tasks.contexts[:, :2, None])
    if mapped is not None:
        rule = f"{believer.name}: the features of a context depend on the other contexts"
        check_same(rule, np.asarray(single)[0], np.asarray(mapped)[0, 0], done, "map each context on its own")
    if both is not None and np.shape(both)[:3] != (wanted := (len(tasks), 2, tasks.n_actions)):
        raise breach(
            f"{believer.name}: action_context_features has a wrong shape",
            done="it was called with action features (B, 1, A, F) and contexts (B, 2, 1, D)",
            expected=f"(B, 2, A, K) = ({', '.join(map(str, wanted))}, K)",
            seen=f"{np.shape(both)}",
            advice="broadcast the leading axes against each other: np.broadcast_shapes",
        )
