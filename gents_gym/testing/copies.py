"""Checks copies of beliefs: forks, added actions and restored states; raises at the first violation."""

import copy

import numpy as np

from gents_gym.testing.beliefs import ask
from gents_gym.testing.believer import Believer, Story, WatchedBelief, check_same
from gents_gym.testing.contract import breach, find_difference
from gents_gym.types import Feedback, Tasks


def check_copies(believer: Believer, story: Story, others: Tasks, steps: int) -> None:
    """Check forks, added actions and restored states after ``steps`` decisions; ``others`` are other tasks."""
    _check_fork(believer, story, steps)
    _check_add(believer, story, others, steps)
    _check_state(believer, story, steps)


def _check_fork(believer: Believer, story: Story, steps: int) -> None:
    belief, order = believer.begin(story, steps), [2, 0, 2]
    found = ask(belief, story, steps)
    part, fork = story.pick(order), belief.fork(order)
    rule = f"{believer.name}: a fork does not believe what the original believes"
    advice = "copy what was observed of each task in fork, in the requested order, repeats included"
    check_same(rule, found[order], ask(fork, part, steps), f"tasks {order} were forked", advice, belief.draws)
    rule = f"{believer.name}: fork changes what the original believes"
    check_same(rule, found, ask(belief, story, steps), f"tasks {order} were forked", "copy, and change nothing")
    outcomes = np.array([story.tasks.outcomes.max(), story.tasks.outcomes.max(), story.tasks.outcomes.min()])
    played = np.full(3, story.tasks.n_actions - 1)

    def learn(one: WatchedBelief) -> np.ndarray:
        one.call("decide", part.tasks.contexts[:, steps].copy(), played.copy())
        one.call("observe", Feedback(np.arange(3), np.full(3, steps), outcomes.astype(np.float32)))
        return ask(one, part, steps + 1)

    after, done = learn(fork), "the fork then observed another outcome in each of its tasks"
    rule = f"{believer.name}: a fork shares what it learns with the original"
    advice = "copy every array that observe changes: copy.deepcopy, or array.copy()"
    check_same(rule, found, ask(belief, story, steps), done, advice)
    alone = learn(believer.begin(part, steps))
    check_same(f"{believer.name}: copies of one task share what they learn", alone, after, done, advice, belief.draws)
    kept, done = ask(fork, part, steps + 1), "the original then observed two more outcomes"
    belief.play(story, steps, steps + 2)
    rule = f"{believer.name}: a fork shares what the original learns"
    check_same(rule, kept, ask(fork, part, steps + 1), done, advice, belief.draws)


def _check_add(believer: Believer, story: Story, others: Tasks, steps: int) -> None:
    if story.tasks.hidden_features is not None:
        new = story.tasks.action_features[:, :2]  # features of other tasks may be from another space
    else:
        new = others.action_features[:, :2]
    wide, belief = story.widen(new), believer.begin(story, steps)
    found = ask(belief, story, steps)
    belief.call("add", new.copy())
    after, size = ask(belief, story, steps), story.tasks.n_actions
    rule, done = f"{believer.name}: add does not add actions", "two actions were added to those of every task"
    advice = "start the new actions with empty histories and put them after the others"
    check_same(rule, np.zeros((len(found), size + 2)), 0 * after, done, advice)
    rule = f"{believer.name}: add changes what is expected of the other actions"
    check_same(rule, found, after[:, :size], done, "leave the other actions unchanged", belief.draws)
    begun = believer.begin(wide, steps)
    rule = f"{believer.name}: an added action is treated differently from one that was there from the start"
    check_same(rule, ask(begun, wide, steps)[:, size:], after[:, size:], done, advice, belief.draws)
    for each in (begun, belief):
        each.call("decide", story.tasks.contexts[:, steps].copy(), np.full(len(found), size + 1))
        outcome = np.full(len(found), story.tasks.outcomes.max(), np.float32)
        each.call("observe", Feedback(np.arange(len(found)), np.full(len(found), steps), outcome))
    wanted, after = ask(begun, wide, steps + 1), ask(belief, story, steps + 1)
    check_same(rule, wanted, after, f"{done}, and the last one was played", advice, belief.draws)


def _check_state(believer: Believer, story: Story, steps: int) -> None:
    belief = believer.begin(story, steps)
    found, kept = ask(belief, story, steps), belief.call("state")
    plain = isinstance(kept, dict) and all(
        isinstance(key, str) and isinstance(array, np.ndarray) and array.dtype != object for key, array in kept.items()
    )
    if not plain:
        raise breach(
            f"{believer.name}: state is not plain",
            done=f"state was called after {belief.where}",
            expected="a dictionary from names to NumPy arrays of numbers, which a file can hold",
            seen=repr(kept)[:200],
            advice="return every array that observe changes, by name",
        )
    snapshot = copy.deepcopy(kept)
    belief.play(story, steps, steps + 2)
    _check_kept(believer, "a state changes after it was returned", kept, snapshot)
    rule, done = f"{believer.name}: restore does not bring back what was believed", "state was called, two more "
    done += "outcomes were observed, and a new belief of the same tasks restored the state"
    advice = "return copies of every array that observe changes from state, and take all of them in restore"
    other = believer.begin(story)
    other.call("restore", kept)
    check_same(rule, found, ask(other, story, steps), done, advice)
    other.play(story, steps, steps + 2)
    _check_kept(believer, "restore keeps the arrays that it is given", kept, snapshot)
    done += ", and then observed the same"
    check_same(rule, ask(belief, story, steps + 2), ask(other, story, steps + 2), done, advice)


def _check_kept(believer: Believer, what: str, kept: dict[str, np.ndarray], snapshot: dict[str, np.ndarray]) -> None:
    if difference := find_difference(snapshot, kept, "state"):
        raise breach(
            f"{believer.name}: {what}",
            done="state was called, and then two more outcomes were observed",
            expected="unchanged arrays, because they are written to files later",
            seen=difference,
            advice="copy in state and in restore: array.copy()",
        )
