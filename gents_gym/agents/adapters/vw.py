"""Wraps Vowpal Wabbit's contextual bandits as agents, with one workspace per task."""

import re
from functools import partial
from typing import Any

import numpy as np

from gents_gym.agents.per_task import PerTask, playable
from gents_gym.checks import InputError, need
from gents_gym.types import TaskInfo

ARGS = "--cb_explore_adf -q ca -b 14"
# Refused arguments: they read or write files, open ports, end the process, print endlessly or change the example
# format. The seed is refused too, because each task has its own.
REFUSED = re.compile(
    "-[acdfhipr].*|--(audit|cache|csv|daemon|data|dictionary|dsjson|dump_json|epsilon_decay_audit|extra_metrics|"
    "feature_mask|final_regressor|flatbuffer|help|initial_regressor|input_feature|invert_hash|json|output_feature|passes|"
    "pid_file|port_file|predictions|print|random_seed|raw_predictions|readable_model|sendto|span_server|version).*"
)


def vw(args: str = ARGS) -> PerTask:
    """Return an agent that plays every task with its own Vowpal Wabbit workspace.

    Contexts are the shared namespace ``c``; an action's number and features are its namespace ``a``. So ``-q ca`` gives
    every action a linear model of the context, plus a model shared through the action features. A workspace takes 32
    bytes times 2 to the power of ``-b``: half a megabyte per task with ``-b 14``, 9 MB with Vowpal Wabbit's default of
    18.

    Args:
        args: Vowpal Wabbit's arguments. They must include ``--cb_explore_adf`` and name no files.
    """
    if not isinstance(args, str) or "--cb_explore_adf" not in args.split():
        raise InputError(f"args must be Vowpal Wabbit's and include --cb_explore_adf, got {args!r}")
    for arg in args.split():
        if REFUSED.fullmatch(arg):
            raise InputError(f"args must neither name files, ports or a seed nor print, got {arg!r} in {args!r}")
    _workspace(args, 0)  # Vowpal Wabbit raises its own errors about them here
    return PerTask(partial(_Task, args), packages=("vowpalwabbit",))


def _workspace(args: str, seed: int) -> Any:
    library = need("vowpalwabbit", "agent 'vw'", "vw")
    return library.Workspace(args, quiet=True, random_seed=seed)


class _Task:
    """Plays one task."""

    def __init__(self, args: str) -> None:
        self._args = args

    def reset(self, info: TaskInfo, rng: np.random.Generator) -> None:
        self._rng = rng
        # By decision: the lines, their actions, and the probability of the played one.
        self._played: list[tuple[list[str], list[int], float]] = []
        self._workspace = _workspace(self._args, int(rng.integers(2**31)))
        self._actions = [f"|a number={i} {_features('z', z)}" for i, z in enumerate(info.action_features[0])]

    def act(self, observation: dict[str, np.ndarray]) -> int:
        there = playable(observation, len(self._actions))
        lines = [f"shared |c {_features('x', observation['context'])}", *(self._actions[i] for i in there)]
        chances = np.array(self._workspace.predict(lines))  # (n,)
        bounds = chances.cumsum()  # float32 probabilities do not sum to 1 exactly
        place = int((bounds <= self._rng.random() * bounds[-1]).sum())
        self._played.append((lines, there, float(chances[place])))
        return there[place]

    def observe(self, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        self.observe_late(len(self._played) - 1, observation, action, reward)

    def observe_late(self, decision: int, observation: dict[str, np.ndarray], action: int, reward: float) -> None:
        lines, there, chance = self._played[decision]
        self._played[decision] = [], [], 0.0  # keeping the lines of every decision would take too much memory
        place = 1 + there.index(action)
        lines[place] = f"0:{-reward}:{chance} {lines[place]}"  # the label: a cost, not a reward
        self._workspace.learn(lines)


def _features(letter: str, values: np.ndarray) -> str:
    return " ".join(f"{letter}{i}:{value:.8g}" for i, value in enumerate(values.tolist()))
