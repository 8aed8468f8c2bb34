"""Wraps MABWiser's policies as agents, with one ``MAB`` object per task."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gents_gym.agents.per_task import PerTask, playable
from gents_gym.checks import check_choice, check_flag, check_integer, need
from gents_gym.construct import parse_spec
from gents_gym.types import TaskInfo

LINEAR = ("linucb", "lints", "lingreedy")  # these can start without data


def mabwiser(
    policy: str = "linucb",
    neighborhood: str | None = None,
    rounds: int | None = None,
    intercept: bool = False,
    **options: Any,
) -> PerTask:
    """Return an agent that plays every task with its own ``mabwiser.mab.MAB``.

    Args:
        policy: One of MABWiser's learning policies, in small letters: "linucb", "lints", "lingreedy", "ucb1",
            "thompsonsampling", …
        neighborhood: None, or one of its neighborhood policies with its options, such as "knearest(k=5)".
        rounds: How often every action is played, in random order, before MABWiser decides; None: 0 for a linear
            policy without neighborhood, otherwise 1, because most of MABWiser's policies need data to start.
        intercept: Whether contexts get a leading 1; MABWiser's linear policies have no intercept.
        **options: Options of the learning policy, such as "alpha", "epsilon" or "l2_lambda"; MABWiser's defaults
        otherwise.
    """
    library = need("mabwiser.mab", "agent 'mabwiser'", "mabwiser")
    learns = _named("policy", library.LearningPolicy, policy, options)
    near = None if neighborhood is None else _named("neighborhood", library.NeighborhoodPolicy, neighborhood, {})
    library.MAB([0, 1], learns, near)  # MABWiser raises its own errors about the options here
    if rounds is None:
        rounds = int(near is not None or type(learns).__name__.lower() not in LINEAR)
    make = partial(library.MAB, learning_policy=learns, neighborhood_policy=near)
    ones = np.ones((1, int(check_flag("intercept", intercept))))
    return PerTask(partial(_Task, make, check_integer("rounds", rounds, 0), ones), packages=("mabwiser",))


class _Task:
    """Plays one task."""

    def __init__(self, make: Callable[..., Any], rounds: int, ones: np.ndarray) -> None:
        self._make, self._rounds, self._ones = make, rounds, ones

    def reset(self, info: TaskInfo, rng: np.random.Generator) -> None:
        self._mab = self._make(list(range(info.n_actions)), seed=int(rng.integers(2**31)))
        self._rng, self._n_actions = rng, info.n_actions
        self._forced = [action for _ in range(self._rounds) for action in rng.permutation(info.n_actions).tolist()]
        self._rows: list[tuple[int, float, np.ndarray]] = []  # the outcomes so far, until MABWiser starts
        self._started = not self._forced
        if self._started:
            self._mab.fit([], [], *self._contexts(np.empty((0, info.context_dim + self._ones.size))))

    def _contexts(self, contexts: np.ndarray) -> list[np.ndarray]:
        """Return the contexts (n, K) for MABWiser's last argument, or nothing if the policy takes no contexts."""
        return [contexts] if self._mab.is_contextual else []

    def _features(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Return the context as features, (1, K)."""
        return np.concatenate([self._ones, observation["context"][None]], axis=1, dtype=np.float64)

    def act(self, observation: dict[str, np.ndarray]) -> int:
        there = playable(observation, self._n_actions)
        for i in range(len(self._forced) - 1, -1, -1):
            if self._forced[i] in there:
                return int(self._forced.pop(i))
        if not self._started and len(self._rows) < self._rounds * len(there):  # late outcomes are missing
            return int(self._rng.choice(there))
        self._start()
        contexts = self._contexts(self._features(observation))
        if len(there) == self._n_actions:
            return int(self._mab.predict(*contexts))
        expected = self._mab.predict_expectations(*contexts)
        return int(max(there, key=lambda action: expected[action]))

    def _start(self) -> None:
        """Give MABWiser its first rows, once."""
        if not self._started:
            actions, rewards, contexts = zip(*self._rows, strict=True)
            self._mab.fit(list(actions), list(rewards), *self._contexts(np.concatenate(contexts)))
            self._started = True

    def observe(self, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        features = self._features(observation)
        if self._started:
            self._mab.partial_fit([action], [reward], *self._contexts(features))
        else:
            self._rows.append((action, reward, features))

    def observe_late(self, decision: int, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        self.observe(observation, action, reward)


def _named(kind: str, library: Any, spec: str, options: dict[str, Any]) -> Any:
    """Return the policy that ``spec`` names, of those in ``library``, with its options."""
    name, given = parse_spec(spec)
    known = {key.lower(): value for key, value in vars(library).items() if isinstance(value, type)}
    made = known[check_choice(f"MABWiser {kind}", name, known)]
    for option in {**given, **options}:
        check_choice(f"option of {kind} {name!r}:", option, getattr(made, "_fields", ()))
    return made(**{**given, **options})
