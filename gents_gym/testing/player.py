"""Plays an agent on tasks, and watches every call for what an agent must not do."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gents_gym.checks import InputError, TaskError, check_actions, check_played
from gents_gym.evaluation.rollout import played_probabilities
from gents_gym.randomness import stream
from gents_gym.testing.contract import ContractError, breach, explained, global_generators_left_alone
from gents_gym.types import Agent, Feedback, Privileged, TaskInfo, Tasks
from gents_gym.words import count

RNG_ADVICE = "draw all randomness of task i from rngs[i], which reset receives"


def origin(error: BaseException) -> BaseException:
    """Return the original error, below those that only add the task."""
    while isinstance(error, ContractError | TaskError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def unless_refused(call: Callable[[], Any]) -> Any:
    """Return the result of ``call``; None if it refuses with an InputError."""
    try:
        return call()
    except ContractError as error:
        if isinstance(origin(error), InputError):
            return None
        raise


def check_same_actions(rule: str, played: np.ndarray, again: np.ndarray, done: str, advice: str) -> None:
    """Raise if the same tasks were played differently, (n, t) each."""
    if not np.array_equal(played, again):
        row, t = (int(i) for i in np.argwhere(played != again)[0])
        seen = f"the task in place {row}, decision {t + 1}: action {played[row, t]}, and now {again[row, t]}"
        raise breach(rule, done=done, expected="the same actions", seen=seen, advice=advice)


def _arriving(tasks: Tasks, actions: np.ndarray, delays: np.ndarray) -> Feedback:
    """Return what arrives after the last of the actions (B, t), if outcomes are late by ``delays`` (B, steps)."""
    t = actions.shape[1] - 1
    due = (delays[:, : t + 1] >= 0) & (np.arange(t + 1) + delays[:, : t + 1] == t)
    task, decision = np.nonzero(due)
    return Feedback(task, decision, tasks.outcomes[task, decision, actions[task, decision]].astype(np.float64))


@dataclass(frozen=True)
class Player:
    """Makes agents and plays them."""

    name: str  # the agent's, for the messages
    make: Callable[[], Agent]
    steps: int  # most decisions played

    def fresh(self) -> Agent:
        """Return a new agent. Raises if none can be made."""
        with global_generators_left_alone(self.name, "an agent was made", RNG_ADVICE):
            agent = self.make()
        if not isinstance(agent, Agent) or isinstance(agent, type):
            raise breach(
                f"{self.name} is not an agent",
                done=f"it was made: {agent!r}",
                expected="an object with reset(info, rngs), act(context) and observe(context, action, outcome)",
                seen=f"it lacks {[verb for verb in ('reset', 'act', 'observe') if not hasattr(agent, verb)]}",
                advice="write the missing methods; for a class with only act(observation), use PerTask",
            )
        return agent

    def play(
        self,
        tasks: Tasks,
        order: Sequence[int],
        agent: Agent | None = None,
        *,
        scribble: bool = False,
        know_horizon: bool = True,
        abandon: bool = False,
        streams: Sequence[int] | None = None,
        told: list[np.ndarray] | None = None,
        delays: np.ndarray | None = None,
        available: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the actions (n, steps) in the tasks at ``order``, in the rows' order of ``order``.

        Args:
            tasks: Tasks to choose from.
            order: The tasks to play side by side; task i has its own generator, whatever its place.
            agent: The agent that plays; None: a new one.
            scribble: Overwrite arrays after the calls that they were passed to, as a caller with buffers does.
            know_horizon: Give the agent the horizon.
            abandon: Stop after an act, without its observe.
            streams: The indices of the tasks' generators; None: those of the tasks.
            told: Ask for probabilities before each act, and add them, (n, A), to this list.
            delays: How many decisions later outcomes arrive, for all ``tasks``, (len(tasks), steps); -1 for never. They
                are passed to ``observe_late``. None: outcomes go to ``observe``, in time.
            available: Which actions can be played in all ``tasks``, (len(tasks), steps, A), passed to ``act``; None: no
                mask is passed.
        """
        played = tasks[list(order)]
        agent = self.fresh() if agent is None else agent
        agent = agent.for_tasks(played) if isinstance(agent, Privileged) else agent
        texts = None if played.texts is None else played.texts.tolist()
        horizon = played.horizon if know_horizon else None
        features = played.action_features.copy()
        sizes = played.n_actions, played.context_dim
        known = played.likelihood, played.known_truth
        late = delays is not None
        info = TaskInfo(features, *sizes, horizon, played.reward_fn, texts, played.space, *known, late=late)
        info = replace(info, masked=available is not None, known_contexts=played.known_contexts)
        sizes_seen = f"{played.n_actions} actions, contexts of {played.context_dim} numbers"
        where = f"{count(len(played), 'task')} with {sizes_seen}"
        where += f", action features of {features.shape[2]}" + ("" if know_horizon else " and an unknown horizon")
        self._call(agent, "reset", where, False, info, [stream(0, "agent", i) for i in streams or order])
        actions: list[np.ndarray] = []
        for t in range(min(self.steps, played.horizon)):
            at = f"decision {t + 1} of {where}"
            masks = () if available is None else (available[list(order), t],)
            given = (played.contexts[:, t], *masks)
            asked = told is not None and self._call(agent, "probabilities", at, scribble, *(a.copy() for a in given))
            asked = np.array(asked)  # copied before act, because it may be a buffer of the agent
            answer = self._call(agent, "act", at, scribble, *(a.copy() for a in given))
            action = self._checked(answer, at, len(played), played.n_actions).copy()
            for mask in masks:
                self._check_played(action, asked if told is not None else None, mask, at)
            if told is not None:
                self._check_probabilities(asked, action, at, played.n_actions)
                told.append(asked)
            actions.append(action)
            if abandon and t == self.steps // 2:
                break
            if delays is not None:
                feedback = _arriving(played, np.stack(actions, axis=1), delays[list(order)])
                self._call(agent, "observe_late", at, scribble, feedback)
            else:
                outcome = played.outcomes[np.arange(len(played)), t, action].astype(np.float64)
                self._call(agent, "observe", at, scribble, played.contexts[:, t].copy(), action.copy(), outcome)
            self._check_kept(features, played.action_features, at, "info.action_features")
        return np.stack(actions, axis=1)

    def _call(self, agent: Agent, verb: str, where: str, scribble: bool, *given: Any) -> Any:
        """Return the result of a method, watched."""
        parts = [part for one in given for part in (vars(one).values() if isinstance(one, Feedback) else [one])]
        arrays = [array for array in parts if isinstance(array, np.ndarray)]
        before, done = copy.deepcopy(arrays), f"{verb} was called at {where}"
        advice = "an agent made only for certain tasks must raise gents_gym.InputError in reset for others"
        with (
            explained(f"{self.name} fails in {verb}", done=done, expected="an answer", advice=advice),
            global_generators_left_alone(self.name, done, RNG_ADVICE),
        ):
            answer = getattr(agent, verb)(*given)
        # It may be a view of our array.
        answer = answer.copy() if scribble and isinstance(answer, np.ndarray) else answer
        for array, kept in zip(arrays, before, strict=True):
            self._check_kept(array, kept, where, f"an array that {verb} was given")
            if scribble:
                array[...] = 7 if array.dtype.kind == "f" else array.dtype.kind == "b"
        return answer

    def _check_kept(self, array: np.ndarray, kept: np.ndarray, where: str, what: str) -> None:
        if not np.array_equal(array, kept):
            raise breach(
                f"{self.name} modifies {what}",
                done=f"an agent played {where}",
                expected=f"{what} unchanged",
                seen="its numbers have changed",
                advice="work on a copy: array.copy(), or a = a + b instead of a += b",
            )

    def _check_probabilities(self, asked: np.ndarray, action: np.ndarray, where: str, n_actions: int) -> None:
        try:
            played_probabilities(asked, action, n_actions)
        except InputError as error:
            raise breach(
                f"{self.name} returns probabilities that cannot be right",
                done=f"probabilities and act were called at {where}",
                expected=f"an array ({len(action)}, {n_actions}): each row a distribution over actions, "
                "with a probability above 0 for the played action",
                seen=str(error),
                advice="return the probabilities with which act picks, or the share of draws that vote for an action",
            ) from error

    def _check_played(self, action: np.ndarray, asked: np.ndarray | None, available: np.ndarray, where: str) -> None:
        """Raise unless actions, and those with positive probability if it was ``asked``, are available."""
        try:
            check_played(action, available)
            if asked is not None and (asked[~available] > 0).any():
                raise InputError("probabilities above 0 of actions that are not available")
        except InputError as error:
            raise breach(
                f"{self.name} plays what is not available",
                done=f"act was called with a mask at {where}",
                expected="actions whose entry in available (B, A) is True",
                seen=str(error),
                advice="np.where(available, scores, -np.inf).argmax(axis=1) is the best of those that are",
            ) from None  # it is not a refusal by the agent

    def _checked(self, answer: Any, where: str, n_tasks: int, n_actions: int) -> np.ndarray:
        try:
            return check_actions(answer, n_tasks, n_actions)
        except InputError as error:
            raise breach(
                f"{self.name} returns actions that cannot be played",
                done=f"act was called at {where}",
                expected=f"{n_tasks} whole numbers in [0, {n_actions}), one for each task, as scores.argmax(axis=1) is",
                seen=str(error),
                advice="return an integer array of shape (B,) from act",
            ) from error
