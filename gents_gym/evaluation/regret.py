"""Computes three regrets of played actions, and has wrappers that record them in ``info``.

- ``oracle``: realised rewards, against π* fitted to the complete table (the paper's). It can be negative.
- ``expected``: the same two actions, by their true expected rewards, without the noise of single outcomes. It can be
  negative.
- ``best``: true expected rewards, against the best action in each context. It is never negative.

If only some actions can be played, the oracle and the best action are among those.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv

from gents_gym.checks import InputError
from gents_gym.construct import get_policy
from gents_gym.envs.bases import VectorWrapperBase, WrapperBase
from gents_gym.policies.pool import fit_tasks
from gents_gym.types import PolicyClass, Tasks

REGRETS = ("oracle", "expected", "best")


def oracle_actions(tasks: Tasks, oracle: str | PolicyClass | None = None) -> np.ndarray:
    """Return the actions of π*(·; τ) in every context, (B, T).

    Args:
        tasks: B tasks.
        oracle: The policy class to fit; None: the setting's own.
    """
    policy_class = make_oracle(tasks, oracle)
    scores = fit_tasks(policy_class, tasks).scores(tasks.contexts)
    return _among(scores, tasks).argmax(axis=2)


def _among(values: np.ndarray, tasks: Tasks) -> np.ndarray:
    """Return values (B, T, A) with -inf for actions that cannot be played."""
    return values if tasks.available is None else np.where(tasks.available, values, -np.inf)


def make_oracle(tasks: Tasks, oracle: str | PolicyClass | None) -> PolicyClass:
    """Return the policy class that ``oracle`` is or names; None: the setting's own."""
    return get_policy("oracle", oracle or tasks.oracle, tasks.reward_fn, tasks.likelihood)


def regret(tasks: Tasks, actions: np.ndarray, best_fit: np.ndarray) -> dict[str, np.ndarray]:
    """Return the per-step regrets by name, (B, t) each.

    Args:
        tasks: B tasks; if their true means are not known, only ``oracle`` is returned.
        actions: The actions played in the first t decisions, (B, t).
        best_fit: The oracle's actions, (B, T).
    """
    steps = actions.shape[1]

    def pick(table: np.ndarray, choice: np.ndarray) -> np.ndarray:
        picked: np.ndarray = np.take_along_axis(table[:, :steps], choice[:, :steps, None], axis=2)[..., 0]
        return picked.astype(np.float64)

    found = {"oracle": pick(tasks.rewards, best_fit) - pick(tasks.rewards, actions)}
    if tasks.means is not None:
        mine = pick(tasks.means, actions)
        found["expected"] = pick(tasks.means, best_fit) - mine
        found["best"] = _among(tasks.means, tasks)[:, :steps].max(axis=2) - mine
    return found


class RecordRegret(WrapperBase, RecordConstructorArgs):
    """Fits the oracle at reset, and adds the episode's regrets, summed over steps, to ``info["regret"]`` at its end.

    It records the actions that it receives, so a wrapper that changes actions must be outside of it, not inside.
    """

    def __init__(self, env: gym.Env[Any, Any], oracle: str | None = None) -> None:
        """Wrap one of our single environments.

        Args:
            env: The environment.
            oracle: The policy class that regret is measured against; None: the setting's own.
        """
        RecordConstructorArgs.__init__(self, oracle=oracle)
        gym.Wrapper.__init__(self, env)
        _check_tables(env)
        self._oracle = oracle
        self._actions: list[int] = []

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and fit the oracle to the new task."""
        observation, info = self.env.reset(**kwargs)
        self._tasks = self.env.unwrapped.tasks  # type: ignore[attr-defined]
        self._best_fit = oracle_actions(self._tasks, self._oracle)
        self._actions = []
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._actions.append(int(action))
        if terminated or truncated:
            found = regret(self._tasks, np.array([self._actions]), self._best_fit)
            info = {**info, "regret": {name: float(steps.sum()) for name, steps in found.items()}}
        return observation, reward, terminated, truncated, info


class VectorRecordRegret(VectorWrapperBase):
    """The vector form of :class:`RecordRegret`.

    ``info["regret"]`` holds (B,) arrays by name with Gymnasium's masks; with the autoreset mode SAME_STEP it is in
    ``info["final_info"]``, like everything else of the episode's last step.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], oracle: str | None = None) -> None:
        """Wrap one of our vector environments; arguments as in :class:`RecordRegret`."""
        super().__init__(env)
        _check_tables(env)
        self._oracle = oracle
        self._same_step = env.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP
        self._tasks: Tasks | None = None
        self._over = np.zeros(env.num_envs, np.bool_)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Reset the environments, or those of ``options["reset_mask"]``, and fit their oracles."""
        mask = (kwargs.get("options") or {}).get("reset_mask")
        observation, info = self.env.reset(**kwargs)
        self._begin(np.arange(self.num_envs) if mask is None else np.flatnonzero(mask))
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step the environments."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        began = self._over.copy()  # with NEXT_STEP, this step only reset these
        if began.any():
            self._begin(np.flatnonzero(began))
        playing = np.flatnonzero(~began)
        self._actions[playing, self._time[playing]] = np.asarray(actions)[playing]
        self._time[playing] += 1
        ended = terminated | truncated
        if ended.any():
            into = info["final_info"] if self._same_step else info
            self._record(np.flatnonzero(ended), into)
            if self._same_step:
                self._begin(np.flatnonzero(ended))
            else:
                self._over = ended.copy()
        return observation, reward, terminated, truncated, info

    def _begin(self, slots: np.ndarray) -> None:
        """Take the tasks that ``slots`` now play, and fit their oracles."""
        tasks: Tasks = self.env.unwrapped.tasks  # type: ignore[attr-defined]
        if self._tasks is None:
            self._best_fit = np.zeros((self.num_envs, tasks.horizon), np.int64)
            self._actions = np.zeros_like(self._best_fit)
            self._time = np.zeros(self.num_envs, np.int64)
        self._tasks = tasks
        self._best_fit[slots] = oracle_actions(tasks[slots], self._oracle)
        self._time[slots] = 0
        self._over[slots] = False

    def _record(self, slots: np.ndarray, info: dict[str, Any]) -> None:
        assert self._tasks is not None
        for i in slots:
            played = self._actions[i : i + 1, : self._time[i]]
            found = regret(self._tasks[i], played, self._best_fit[i : i + 1])
            sums = {name: float(steps.sum()) for name, steps in found.items()}
            self._add_info(info, {"regret": sums}, int(i))


def _check_tables(env: Any) -> None:
    if not hasattr(type(env.unwrapped), "tasks"):
        raise InputError(f"env must have tables in env.unwrapped.tasks to compute regret, got {env.unwrapped!r}")
