"""Plays whole episodes of a vector environment and checks every result against its spaces."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gents_gym.envs.feedback import LATE, observed_outcomes, read_feedback
from gents_gym.testing.contract import breach, explained, find_difference, global_generators_left_alone
from gents_gym.types import Feedback

LONGEST = 10_000  # most decisions of an episode
SEED_ADVICE = "draw everything of task i from a generator made from (seed, split, i): gents_gym.randomness.stream"
Choose = Callable[[int, np.ndarray, int], np.ndarray]  # from (t, slots, A) to actions


def in_turn(t: int, slots: np.ndarray, n_actions: int) -> np.ndarray:
    """Return actions that cycle through all numbers."""
    return (t + slots) % n_actions


def half_in_turn(t: int, slots: np.ndarray, n_actions: int) -> np.ndarray:
    """Return the actions of :func:`in_turn` at every second decision, and other actions at the others."""
    return in_turn(t + t % 2, slots, n_actions)


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode in every slot; NaN, and actions of -1, after a slot's end."""

    features: np.ndarray  # (B, A, F)
    contexts: np.ndarray  # (B, T, D)
    actions: np.ndarray  # (B, T)
    rewards: np.ndarray  # (B, T)
    outcomes: np.ndarray  # (B, T), by decision; NaN if one never arrived
    shown: np.ndarray  # (B, T): the step in which a decision's outcome was shown, -1 for never
    steady: np.ndarray  # (B, T): whether the features are shown again as they were at first
    answers: list[Any]  # results of reset and of each step, as they were returned
    told: bool  # whether every step returned an outcome

    @property
    def seen(self) -> dict[str, np.ndarray]:
        """The parts that do not depend on how the environment continues after the end."""
        names = ("features", "contexts", "rewards", "outcomes", "shown", "steady")
        return {name: getattr(self, name) for name in names}


class Watched:
    """A vector environment whose results are checked and copied, and must not change later."""

    def __init__(self, name: str, envs: VectorEnv[Any, Any, Any], num_envs: int, scribble: bool = False) -> None:
        """Watch ``envs``; with ``scribble``, overwrite whatever it returns."""
        self.name, self.envs, self._scribble = name, envs, scribble
        self._handed: list[tuple[Any, Any]] = []  # returned arrays, with copies of their first values
        _check_spaces(name, envs, num_envs)
        self.slots = np.arange(num_envs)
        self.n_actions = int(envs.single_action_space.n)  # type: ignore[attr-defined]
        self.mode: AutoresetMode = envs.metadata["autoreset_mode"]
        self.is_late = bool(envs.metadata.get(LATE))
        self._available: np.ndarray | None = None

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the result of reset."""
        observation, info = self._call("reset", 2, **how)
        self._check_observation("reset", observation)
        self._available = observation.get("available")
        return observation, info

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        """Return a copy of the result of step; action i (B,) is the i-th available one, cyclically."""
        return self._play(self.playable(actions))

    def _play(self, actions: np.ndarray) -> tuple[Any, ...]:
        handed = actions.copy()
        answer = self._call("step", 5, handed)
        if not np.array_equal(handed, actions):
            self._fail("step", "its argument", "the actions stay as they were", "other actions in the caller's array")
        self._check_observation("step", answer[0])
        self._available = answer[0].get("available")
        for what, found, kind in zip(("reward", "terminated", "truncated"), answer[1:4], "fbb", strict=True):
            array = np.asarray(found)
            if array.shape != (len(self.slots),) or array.dtype.kind != kind:
                number = "float" if kind == "f" else "bool"
                self._fail("step", what, f"an array of {number}, one for each slot", f"{array.dtype}{array.shape}")
        if not np.isfinite(answer[1]).all():
            self._fail("step", "reward", "finite rewards", f"{answer[1]}")
        return answer

    def playable(self, actions: np.ndarray) -> np.ndarray:
        """Return the i-th action available now for each i (B,), cyclically."""
        if self._available is None:
            return actions
        counts = self._available.sum(axis=1)
        order = np.argsort(self._available == 0, axis=1, kind="stable")  # (B, A)
        return np.take_along_axis(order, (actions % counts)[:, None], axis=1)[:, 0]

    def episode(self, choose: Choose = in_turn, **how: Any) -> Episode:
        """Return one episode in every slot, starting with a reset."""
        answers: list[Any] = [self.reset(**how)]
        features, context = answers[0][0]["action_features"], answers[0][0]["context"]
        live = np.ones(len(self.slots), np.bool_)
        rows: list[tuple[np.ndarray, ...]] = []
        steady: list[np.ndarray] = []
        told, what = True, "feedback" if self.is_late else "outcome"
        arrived: list[Feedback] = []
        while live.any():
            if len(rows) == LONGEST:
                self._fail("step", "terminated", f"an end within {LONGEST} decisions", "none")
            actions = self.playable(choose(len(rows), self.slots, self.n_actions))
            answer = self._play(actions)
            observation, reward, terminated, truncated, info = answer
            rows.append(tuple(_blank(a, live) for a in (context, actions, reward)))
            told &= what in info or what in info.get("final_info", {})
            arrived.append(self._arrived(info, reward, live, [row[1] for row in rows]))
            live &= ~(terminated | truncated)
            steady.append((observation["action_features"] == features).all(axis=(1, 2)) | ~live)
            answers.append(answer)
            context = observation["context"]
        for handed, then in self._handed:
            if difference := find_difference(handed, then, "answer"):
                self._fail("step", "what was handed out before", "it stays as it was", f"{difference} (now and then)")
        contexts, played, rewards = (np.stack(part, axis=1) for part in zip(*rows, strict=True))
        kept = np.stack(steady, axis=1)
        known = self._gather(arrived, played.shape)
        return Episode(features, contexts, played.astype(np.int64), rewards, *known, kept, answers, told)

    def _arrived(
        self, info: dict[str, Any], reward: np.ndarray, live: np.ndarray, actions: list[np.ndarray]
    ) -> Feedback:
        """Return the outcomes in a step's info; raise if late ones do not match the decisions made."""
        latest = len(actions) - 1
        if not self.is_late:
            task = np.flatnonzero(live)
            return Feedback(task, np.full(len(task), latest), observed_outcomes(info, reward)[task])
        told = read_feedback(info, live)
        right = told.decision.max(initial=-1) <= latest
        for source in (info, info.get("final_info", {})):
            if right and "feedback" in source and source["feedback"]["decision"].dtype != object:
                task, place = np.nonzero(source["feedback"]["decision"] >= 0)
                decision = source["feedback"]["decision"][task, place]
                played = np.stack(actions, axis=1)[task, decision]
                right = bool((source["feedback"]["action"][task, place] == played)[live[task]].all())
        if not right:
            self._fail("step", "info['feedback']", "actions as they were played, of decisions that were made", "others")
        return told

    def _gather(self, arrived: list[Feedback], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return outcomes by decision and the steps in which they were shown, (B, T) each."""
        outcomes, shown = np.full(shape, np.nan), np.full(shape, -1)
        for step, part in enumerate(arrived):
            if (shown[part.task, part.decision] >= 0).any():
                self._fail("step", "info['feedback']", "each decision once", "a decision that is shown again")
            outcomes[part.task, part.decision], shown[part.task, part.decision] = part.outcome, step
        return outcomes, shown

    def _call(self, verb: str, length: int, *given: Any, **how: Any) -> Any:
        done = f"{verb} was called, as rollout does, with {len(self.slots)} slots"
        with (
            explained(f"{self.name} fails in {verb}", done=done, expected="an answer", advice=VECTOR_ENV),
            global_generators_left_alone(self.name, done, SEED_ADVICE),
        ):
            answer = getattr(self.envs, verb)(*given, **how)
        if not isinstance(answer, tuple) or len(answer) != length:
            self._fail(verb, "its answer", f"a tuple of {length}", f"{type(answer).__name__}")
        kept = copy.deepcopy(answer)
        if self._scribble:
            _overwrite(answer)
        else:
            self._handed.append((answer, kept))
        return copy.deepcopy(kept)

    def _check_observation(self, verb: str, observation: Any) -> None:
        space = self.envs.observation_space
        if observation in space:
            return
        assert isinstance(space, spaces.Dict)
        seen = f"{type(observation).__name__}"
        if isinstance(observation, dict):
            bad = {key: value for key, value in observation.items() if key not in space or value not in space[key]}
            told = [f"{key}: {np.asarray(value).dtype}{np.shape(value)}" for key, value in bad.items()]
            seen = "; ".join(told) or f"the keys {sorted(observation)}"
        self._fail(verb, "observation", f"one in observation_space, {space}", seen)

    def _fail(self, verb: str, what: str, expected: str, seen: str) -> None:
        raise breach(
            f"{self.name}: {what} of {verb} is wrong",
            done=f"{verb} was called, as rollout does, with {len(self.slots)} slots",
            expected=expected,
            seen=seen,
            advice=ADVICE.get(what, VECTOR_ENV),
        )


VECTOR_ENV = "see help(gymnasium.vector.VectorEnv)"
ADVICE = {
    "observation": "return float32 arrays with a row for each slot, within the bounds and without NaN",
    "reward": "return R of the outcomes as a float64 array (B,), without NaN",
    "info['feedback']": "return each outcome once, with the number of its decision and the played action",
    "terminated": "return booleans (B,), True after the last decision of a task",
    "what was handed out before": "return copies, array.copy(), or read-only arrays that never change",
}


def _blank(array: np.ndarray, live: np.ndarray) -> np.ndarray:
    """Return the array with NaN, or -1 in whole numbers, if no episode is running."""
    kept = np.array(array)
    kept[~live] = -1 if kept.dtype.kind in "iu" else np.nan
    return kept


def _overwrite(answer: Any) -> None:
    """Overwrite every writable array in a result."""
    for part in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(part, dict | tuple):
            _overwrite(part)
        elif isinstance(part, np.ndarray) and part.flags.writeable and part.dtype != object:
            part[...] = 1


def _check_spaces(name: str, envs: Any, num_envs: int) -> None:
    """Raise unless the environment's attributes are correct."""

    def demand(holds: bool, what: str, expected: str, seen: Any, advice: str) -> None:
        if not holds:
            raise breach(
                f"{name}: {what} is wrong",
                done=f"it was made with num_envs={num_envs}",
                expected=expected,
                seen=str(seen),
                advice=advice,
            )

    demand(isinstance(envs, VectorEnv), "it", "a gymnasium.vector.VectorEnv", repr(envs), "use gym.make_vec")
    demand(envs.num_envs == num_envs, "num_envs", str(num_envs), envs.num_envs, "set self.num_envs to the argument")
    single, actions = envs.single_observation_space, envs.single_action_space
    demand(
        isinstance(single, spaces.Dict) and {"context", "action_features"} <= single.keys(),
        "single_observation_space",
        "Dict(context=Box(D,), action_features=Box(A, F))",
        single,
        "agents see the observations 'context' and 'action_features'",
    )
    count = int(getattr(actions, "n", -1)) if int(getattr(actions, "start", 0)) == 0 else -1
    demand(
        count >= 2, "single_action_space", "Discrete(A) from 0 on, A of at least 2", actions, "use spaces.Discrete(A)"
    )
    for key, ndim in (("context", 1), ("action_features", 2)):
        box = single[key]
        fits = isinstance(box, spaces.Box) and len(box.shape) == ndim and box.dtype == np.float32
        fits = fits and bool(np.isfinite(box.low).all() and np.isfinite(box.high).all())
        fits = fits and (key == "context" or box.shape[0] == count)
        shape = "(D,)" if key == "context" else f"(A={count}, F)"
        demand(
            fits,
            f"the space of {key!r}",
            f"a float32 Box of shape {shape} with finite bounds",
            box,
            "bounds of ±1e6 are enough",
        )
    for what, one in (("observation_space", single), ("action_space", actions)):
        wanted = batch_space(one, num_envs)
        demand(getattr(envs, what) == wanted, what, str(wanted), getattr(envs, what), "use gymnasium's batch_space")
    mode = envs.metadata.get("autoreset_mode")
    known = "one of gymnasium.vector.AutoresetMode"
    demand(isinstance(mode, AutoresetMode), "metadata['autoreset_mode']", known, mode, "say when ended slots are reset")
