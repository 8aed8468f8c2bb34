"""Wraps a belief and checks every call for violations."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gents_gym.randomness import stream
from gents_gym.testing.contract import breach, explained, global_generators_left_alone
from gents_gym.types import Belief, Completion, Feedback, Model, TaskInfo, Tasks
from gents_gym.words import count

RNG_ADVICE = "draw all randomness of task i from rngs[i], which begin receives"
EXACT, ROUGH = 1e-4, 0.15  # tolerances for rounding, and for predictions that use random numbers


@dataclass(frozen=True, eq=False)
class Story:
    """What happens in n tasks: the actions played in their contexts, in order, and all outcomes."""

    tasks: Tasks
    actions: np.ndarray  # (n, T)
    numbers: Sequence[int]  # numbers of the tasks; task i has generator i wherever it is

    def pick(self, order: Sequence[int]) -> "Story":
        """Return the story of some of the tasks, repeats allowed."""
        order = list(order)
        return Story(self.tasks[order], self.actions[order], [self.numbers[i] for i in order])

    def permute(self, order: np.ndarray) -> "Story":
        """Return the story with the actions in another order (A,): action i was action ``order[i]``."""
        tasks = self.tasks
        moved = Tasks(
            tasks.action_features[:, order],
            tasks.contexts,
            tasks.outcomes[..., order],
            reward_fn=tasks.reward_fn,
            texts=None if tasks.texts is None else tasks.texts[:, order],
            space=tasks.space,
            likelihood=tasks.likelihood,
            truth=tasks.truth,
            hidden_features=None if tasks.hidden_features is None else tasks.hidden_features[:, order],
            known_columns=tasks.known_columns,
        )
        return Story(moved, np.argsort(order)[self.actions], self.numbers)

    def widen(self, action_features: np.ndarray) -> "Story":
        """Return the story with more actions (n, m, F), whose outcomes are those of the first ones."""
        tasks, size = self.tasks, action_features.shape[1]
        wider = Tasks(
            np.concatenate([tasks.action_features, action_features], axis=1),
            tasks.contexts,
            np.concatenate([tasks.outcomes, tasks.outcomes[..., :size]], axis=2),
            reward_fn=tasks.reward_fn,
            space=tasks.space,
            likelihood=tasks.likelihood,
            truth=tasks.known_truth,
            known_columns=tasks.known_columns,
        )
        return Story(wider, self.actions, self.numbers)

    def outcome(self, t: int) -> np.ndarray:
        """Return the outcomes of decision t, (n,)."""
        return self.tasks.outcomes[np.arange(len(self.actions)), t, self.actions[:, t]].copy()

    def info(self) -> TaskInfo:
        """Return what may be known."""
        tasks = self.tasks
        texts = None if tasks.texts is None else tasks.texts.tolist()
        return TaskInfo(
            tasks.action_features.copy(),
            tasks.n_actions,
            tasks.context_dim,
            tasks.horizon,
            tasks.reward_fn,
            texts,
            tasks.space,
            tasks.likelihood,
            tasks.known_truth,
            tasks.known_contexts,
        )


@dataclass(eq=False)
class WatchedBelief:
    """A belief whose results are checked, and which must not change its arguments."""

    name: str
    belief: Belief
    where: str  # what is being done, for the messages
    # The generators that begin received; unknown for a fork.
    rngs: list[np.random.Generator] = field(default_factory=list)
    scribble: bool = False  # overwrite arrays after the calls that they were passed to
    draws: bool = False  # whether predictions were seen to use random numbers

    def call(self, verb: str, *given: Any, **options: Any) -> Any:
        """Return the result of a method."""
        arrays = [part for part in (*given, *options.values()) if isinstance(part, np.ndarray)]
        arrays += [part for each in given if isinstance(each, Feedback) for part in vars(each).values()]
        before, done = copy.deepcopy(arrays), f"{verb} was called after {self.where}"
        answer = watched(self.name, verb, done, lambda: getattr(self.belief, verb)(*given, **options))
        for array, kept in zip(arrays, before, strict=True):
            if not np.array_equal(array, kept):
                raise breach(
                    f"{self.name} modifies an array that {verb} was given",
                    done=done,
                    expected="an unchanged array",
                    seen="its numbers have changed",
                    advice="work on a copy: array.copy(), or a = a + b instead of a += b",
                )
        answer = copy.deepcopy(answer) if isinstance(answer, np.ndarray | Completion) else answer
        if self.scribble:
            for array in arrays:
                array[...] = 0
        return answer

    def expected(self, contexts: np.ndarray, *actions: np.ndarray) -> np.ndarray:
        """Return mean rewards of all actions or of some, with the same random numbers each time."""
        kept = [rng.bit_generator.state for rng in self.rngs]
        for rng in self.rngs:
            rng.bit_generator.state = stream(1, "agent", 0).bit_generator.state
        first = [str(rng.bit_generator.state) for rng in self.rngs]
        found = np.asarray(self.call("expected", contexts.copy(), *actions))
        self.draws |= first != [str(rng.bit_generator.state) for rng in self.rngs]
        for rng, state in zip(self.rngs, kept, strict=True):
            rng.bit_generator.state = state
        return found

    def play(self, story: Story, start: int, stop: int) -> "WatchedBelief":
        """Play decisions ``start`` to ``stop - 1``, each with its outcome at once; return self."""
        tasks = np.arange(len(story.actions))
        for t in range(start, stop):
            self.call("decide", story.tasks.contexts[:, t].copy(), story.actions[:, t].copy())
            self.call("observe", Feedback(tasks.copy(), np.full(len(tasks), t), story.outcome(t)))
        return self

    def fork(self, tasks: Sequence[int]) -> "WatchedBelief":
        """Return a watched fork."""
        forked = self.call("fork", np.array(tasks))
        return WatchedBelief(self.name, forked, f"fork, {self.where}", draws=self.draws)


@dataclass(frozen=True)
class Believer:
    """Makes watched beliefs of one model."""

    name: str
    model: Model

    def begin(self, story: Story, steps: int = 0, scribble: bool = False, **changes: Any) -> WatchedBelief:
        """Return the belief of a story's tasks after its first ``steps`` decisions; ``changes`` apply to the info."""
        tasks = story.tasks
        where = f"{count(steps, 'decision')} in {count(len(tasks), 'task')} of {tasks.n_actions} actions"
        rngs = [stream(0, "agent", i) for i in story.numbers]
        info = replace(story.info(), **changes)
        begun = watched(self.name, "begin", f"begin was called, {where}", lambda: self.model.begin(info, rngs))
        missing = [verb for verb in VERBS if not callable(getattr(begun, verb, None))]
        if missing:
            raise breach(
                f"{self.name}: begin does not return a belief",
                done=f"begin was called, {where}",
                expected=f"an object with {', '.join(VERBS)}",
                seen=f"{begun!r} without {', '.join(missing)}",
                advice="see gents_gym.Belief; for a model of single actions, write start, predict and append instead",
            )
        if not np.array_equal(info.action_features, tasks.action_features):
            raise breach(
                f"{self.name} modifies info.action_features",
                done=f"begin was called, {where}",
                expected="unchanged info.action_features",
                seen="its numbers have changed",
                advice="work on a copy",
            )
        return WatchedBelief(self.name, begun, where, rngs, scribble).play(story, 0, steps)


VERBS = ("expected", "variance", "decide", "observe", "complete", "fork", "add", "state", "restore")


def watched(name: str, verb: str, done: str, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns; raise if it fails or uses a global generator."""
    advice = "see docs/own_model.md for what each method receives and returns; "
    advice += "a model for other sizes is checked on tasks of those: check_model(model, tasks)"
    with (
        explained(f"{name} fails in {verb}", done=done, expected="an answer", advice=advice),
        global_generators_left_alone(name, done, RNG_ADVICE),
    ):
        return call()


def check_same(
    rule: str, left: np.ndarray, right: np.ndarray, done: str, advice: str, rough: bool = False, what: str = "task"
) -> None:
    """Raise unless two arrays of numbers are equal up to rounding; ``rough`` allows random predictions."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if left.shape != right.shape:
        seen = f"shapes {left.shape} and {right.shape}"
    else:
        scale = max(1.0, float(np.abs(left).max(initial=0)))
        far = ~(np.abs(left - right) <= (ROUGH if rough else EXACT) * scale)
        if not far.any():
            return
        at = tuple(int(i) for i in np.argwhere(far)[0])
        seen = f"{left[at]:.6g}, and now {right[at]:.6g}, for {what} {at[0]}, index {at}"
    raise breach(rule, done=done, expected="the same numbers", seen=seen, advice=advice)
