"""Wraps saved models of stable-baselines3 and sb3-contrib as agents, with one prediction for all B tasks.

A saved model holds pickled objects: loading one runs whatever code its author put there.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from gents_gym.agents.base import Resettable
from gents_gym.agents.late import LastAct
from gents_gym.checks import InputError, check_actions, check_array, check_available, check_choice, check_flag, need
from gents_gym.randomness import Draws
from gents_gym.types import Feedback, TaskInfo

# Every algorithm, and how its files are recognised: by an attribute, or by the module of its policy. The first match
# counts.
ALGORITHMS = {
    "recurrent-ppo": ("sb3_contrib", "RecurrentPPO", "sb3_contrib.common.recurrent.policies"),
    "maskable-ppo": ("sb3_contrib", "MaskablePPO", "sb3_contrib.common.maskable.policies"),
    "ppo": ("stable_baselines3", "PPO", "clip_range"),
    "trpo": ("sb3_contrib", "TRPO", "cg_max_steps"),
    "qrdqn": ("sb3_contrib", "QRDQN", "n_quantiles"),
    "dqn": ("stable_baselines3", "DQN", "exploration_rate"),
    "a2c": ("stable_baselines3", "A2C", "gae_lambda"),
}


TINY = 1e-300  # least probability of an available action: all of them may round to 0


@dataclass
class SB3(Resettable):
    """Plays what a model predicts from the observations that it was trained on.

    These are some or all of: the environment's ``context`` and ``action_features``, its ``available`` if actions come
    and go, and ``previous_action``, ``previous_reward`` and ``time`` of the wrapper ``PreviousStep``. A recurrent
    model's state is carried through a task.
    """

    path: str  # the file that the model's ``save`` wrote
    algorithm: str = "auto"  # one of ALGORITHMS; "auto" detects it from the file
    deterministic: bool = True  # False: actions are drawn from the policy; DQN explores at the rate it was saved with
    normalize: str | None = None  # the file that ``VecNormalize.save`` wrote, if the model was trained with it

    def __post_init__(self) -> None:
        """Load the model."""
        check_flag("deterministic", self.deterministic)
        self.weight_files = (self.path,) if self.normalize is None else (self.path, self.normalize)
        if not all(isinstance(path, str | Path) for path in self.weight_files):
            raise InputError(f"path and normalize must be names of files, got {self.weight_files}")
        self._model = load(self.path, self.algorithm)
        contrib = type(self._model).__module__.startswith("sb3_contrib")
        self.packages = ("stable-baselines3", "sb3-contrib") if contrib else ("stable-baselines3",)
        if not isinstance(space := self._model.observation_space, spaces.Dict):
            raise InputError(f"path must be a model of Dict observations, got {space}")
        for key in space:
            check_choice("observation of the model:", key, _spaces(TaskInfo(np.zeros((1, 1, 1)), 1, 1)))
        self._statistics = None if self.normalize is None else _load_statistics(self.normalize)
        if self._statistics is not None and (theirs := self._statistics.observation_space) != space:
            raise InputError(
                f"normalize must fit the model's observations, {space}, got '{self.normalize}' for {theirs}"
            )

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks. Raises if the model was trained on other sizes."""
        theirs = self._model.observation_space
        ours = spaces.Dict({key: space for key, space in _spaces(info).items() if key in theirs.spaces})
        if any(not _alike(key, space, theirs[key]) for key, space in ours.items()):
            raise InputError(f"tasks must have the observations that the model was trained on, {theirs}, got {ours}")
        if (actions := self._model.action_space) != spaces.Discrete(info.n_actions):
            raise InputError(f"the tasks must have the actions of the model, {actions}, got {info.n_actions}")
        self._info = info
        self._features = np.array(info.action_features, np.float32)  # torch requires writable arrays
        self._draws = Draws(rngs, "random", 2)
        self._state: Any = None  # of a recurrent policy
        self._acted = LastAct()
        self._time = 0
        self._action = np.zeros((len(info), info.n_actions), np.float32)  # the previous action, one-hot
        self._reward = np.zeros((len(info), 1), np.float32)

    def act(self, context: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Return the model's actions (B,) for the contexts (B, D)."""
        shape = (len(self._info), self._info.n_actions)
        available = None if available is None else check_available(available, "(B, A)", shape)
        observation = self._observation(context, available)
        start = np.full(len(self._info), self._time == 0)
        if available is not None or not self.deterministic:
            return self._acted.keep(context, self._choose(observation, start, available))
        action, self._state = self._model.predict(observation, self._state, start, deterministic=True)
        return self._acted.keep(context, np.asarray(action, np.int64))

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Keep what the model observes next."""
        n_tasks, n_actions = self._action.shape
        check_array("context", context, "(B, D)", (n_tasks, self._info.context_dim))
        outcome = check_array("outcome", outcome, "(B,)", (n_tasks,), np.float64)
        self._show(check_actions(action, n_tasks, n_actions), np.asarray(self._info.reward_fn(outcome)))

    def observe_late(self, feedback: Feedback) -> None:
        """Keep what the model observes next; as in training, the reward of a step is what arrived in it."""
        _, action = self._acted.take()
        rewards = np.asarray(self._info.reward_fn(np.asarray(feedback.outcome, np.float64)), np.float64)
        self._show(action, np.bincount(feedback.task, rewards, len(self._info)))

    def _show(self, action: np.ndarray, reward: np.ndarray) -> None:
        """Make these actions and rewards, (B,) each, the previous ones."""
        self._time += 1
        self._action = np.eye(self._info.n_actions, dtype=np.float32)[action]
        self._reward = reward.astype(np.float32)[:, None]

    def _observation(self, context: np.ndarray, available: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return the batched observations that the environment and wrappers of the training would give."""
        everything = np.ones((len(self._info), self._info.n_actions), np.int8)
        shown = {
            "context": check_array("context", context, "(B, D)", (len(self._info), self._info.context_dim)),
            "action_features": self._features,
            "previous_action": self._action,
            "previous_reward": self._reward,
            "time": np.full((len(self._info), 1), np.log1p(self._time), np.float32),
            "available": everything if available is None else available.astype(np.int8),
        }
        found = {key: shown[key] for key in self._model.observation_space.spaces}
        return found if self._statistics is None else self._statistics.normalize_obs(found)

    def _choose(
        self, observation: dict[str, np.ndarray], start: np.ndarray, available: np.ndarray | None
    ) -> np.ndarray:
        """Return actions (B,) by the policy's probabilities among the available ones: the most probable, or drawn.

        Each task draws from its own generator, while ``predict`` uses one for all.
        """
        import torch

        policy = self._model.policy
        chance = np.zeros((len(start), 2)) if self.deterministic else self._draws.next()
        if not hasattr(policy, "get_distribution"):  # DQN
            if available is not None:
                raise InputError(f"path must be a model with action probabilities for a mask, got {self._model!r}")
            best, _ = self._model.predict(observation, deterministic=True)
            explored = (chance[:, 1] * self._info.n_actions).astype(np.int64)
            return np.where(chance[:, 0] < self._model.exploration_rate, explored, best)
        with torch.no_grad():
            shown, _ = policy.obs_to_tensor(observation)
            if hasattr(policy, "lstm_actor"):
                layers, _, width = policy.lstm_hidden_state_shape
                state = self._state or (torch.zeros(layers, len(start), width),) * 2
                found, self._state = policy.get_distribution(shown, state, torch.as_tensor(start, dtype=torch.float32))
            else:
                found = policy.get_distribution(shown)
        probabilities = found.distribution.probs.double().numpy()  # (B, A)
        if available is not None:  # as MaskablePPO itself does: a softmax over what is available
            probabilities = np.where(available, np.maximum(probabilities, TINY), 0)
        if self.deterministic:
            return probabilities.argmax(axis=1)
        bounds = probabilities.cumsum(axis=1)
        return (bounds <= chance[:, :1] * bounds[:, -1:]).sum(axis=1)


def _spaces(info: TaskInfo) -> dict[str, spaces.Space[Any]]:
    """Return the spaces of one task's observations, as the environment and ``PreviousStep`` define them."""
    return {
        "context": spaces.Box(-1e6, 1e6, (info.context_dim,)),
        "action_features": spaces.Box(-1e6, 1e6, info.action_features.shape[1:]),
        "previous_action": spaces.Box(0, 1, (info.n_actions,)),
        "previous_reward": spaces.Box(-1e6, 1e6, (1,)),
        "time": spaces.Box(0, 50, (1,)),
        "available": spaces.MultiBinary(info.n_actions),
    }


def _alike(key: str, ours: spaces.Space[Any], theirs: spaces.Space[Any]) -> bool:
    """Whether a model's observation is ours; contexts and features of other environments have their own bounds."""
    if key in ("context", "action_features"):
        return isinstance(theirs, spaces.Box) and theirs.shape == ours.shape
    return theirs == ours  # other wrappers also have a "time", with another meaning


def load(path: str, algorithm: str = "auto") -> Any:
    """Return the saved model, on the CPU; the global generators stay unchanged."""
    known = ("auto", *ALGORITHMS)
    package, name, _ = ALGORITHMS[_detect(path) if check_choice("algorithm", algorithm, known) == "auto" else algorithm]
    kind = getattr(need(package, f"'{path}', a model of {name},", "sb3"), name)
    import torch

    spared = {"seed": None, "buffer_size": 1}  # a seed would seed the global generators, a replay buffer takes memory
    try:
        with torch.random.fork_rng(devices=[]):
            model = kind.load(path, device="cpu", custom_objects=spared)
    except Exception as error:  # whatever unpickling may raise
        rule = f"path must be a model that {name}.load reads"
        raise InputError(f"{rule}, got '{path}' ({type(error).__name__}: {error})") from error
    model.policy.set_training_mode(False)
    return model


def _detect(path: str) -> str:
    """Return the algorithm of a saved model without unpickling anything."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
        marks = {*data, data["policy_class"]["__module__"]}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"path must be a file that a model's save wrote, got '{path}' ({error})") from error
    for algorithm, (_, _, mark) in ALGORITHMS.items():
        if mark in marks:
            return algorithm
    raise InputError(f"path must be a model of {', '.join(ALGORITHMS)}, got '{path}', which looks like none of them")


def _load_statistics(path: str) -> Any:
    """Return the saved ``VecNormalize``, without an environment; it is a pickle."""
    util, vec_env = (need(f"stable_baselines3.common.{name}", "normalize", "sb3") for name in ("save_util", "vec_env"))
    rule = "normalize must be a file that VecNormalize.save wrote"
    try:
        with open(path, "rb") as file:
            found = util.load_from_pkl(file)
    except Exception as error:  # whatever unpickling may raise
        raise InputError(f"{rule}, got '{path}' ({type(error).__name__}: {error})") from error
    if not isinstance(found, vec_env.VecNormalize):
        raise InputError(f"{rule}, got '{path}' with {found!r} in it")
    return found
