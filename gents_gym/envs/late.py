"""Wrappers that make the outcomes of any environment late, in the form of our own ``delay``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv

from gents_gym.envs.bases import VectorWrapperBase, WrapperBase
from gents_gym.envs.delay import make_delay
from gents_gym.envs.feedback import LATE, blank, observed_outcomes, show, without_pads
from gents_gym.randomness import stream

if TYPE_CHECKING:
    from gents_gym.envs.mail import Mail


class _Late:
    """The mail of B slots, and the generators of their delays: (seed, number of the episode in its slot)."""

    def __init__(self, delay: Any, batch: Any, n_slots: int) -> None:
        rule = make_delay(delay, batch)
        self.mail: Mail | None = None
        if rule is not None:
            from gents_gym.envs.mail import Mail  # numba: heavy

            self.mail = Mail(rule, n_slots)
        self._seeds = [_fresh_seed() for _ in range(n_slots)]
        self._numbers = np.arange(n_slots)  # of the next episode
        self._stride = np.full(n_slots, n_slots)

    def seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Start again with a seed for all slots, or one for each; None goes on."""
        n_slots = len(self._seeds)
        if isinstance(seed, int | np.integer):
            self._seeds = [int(seed)] * n_slots
            self._numbers, self._stride = np.arange(n_slots), np.full(n_slots, n_slots)
        elif seed is not None:
            for i, one in enumerate(seed):
                if one is not None:
                    self._seeds[i], self._numbers[i], self._stride[i] = int(one), 0, 1

    def begin(self, slots: np.ndarray) -> None:
        """Start an episode in ``slots``."""
        if self.mail is not None and len(slots):
            self.mail.begin(slots, [stream(self._seeds[i], "delay", int(self._numbers[i])) for i in slots])
        self._numbers[slots] += self._stride[slots]


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


class LateOutcomes(WrapperBase, RecordConstructorArgs):
    """Makes outcomes late: ``info["feedback"]`` has those that arrived, and the reward is theirs.

    The outcome is ``info["outcome"]``, or the reward of an environment without it. With ``delay=0`` and ``batch=1``
    nothing changes.
    """

    def __init__(self, env: gym.Env[Any, Any], delay: int | dict[str, Any] = 0, batch: int = 1) -> None:
        """Wrap a single environment with a Discrete action space; see :class:`gents_gym.BanditEnv` for the rest."""
        RecordConstructorArgs.__init__(self, delay=delay, batch=batch)
        gym.Wrapper.__init__(self, env)
        self._late = _Late(delay, batch, 1)
        if self._late.mail is not None:
            self.metadata = {**env.metadata, LATE: True}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; a seed starts the stream of delays, too."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._late.seed(seed)
        self._late.begin(np.arange(1))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._late.mail is None:
            return observation, reward, terminated, truncated, info
        outcome = info.get("outcome", reward)
        given = np.array([action], np.int64), np.array([outcome], np.float64), np.array([reward], np.float64)
        ended = np.array([terminated or truncated])
        paid, outcomes = self._late.mail.exchange(*given, np.ones(1, np.bool_), ended)
        info = {key: value for key, value in info.items() if key != "outcome"}
        return observation, float(paid[0]), terminated, truncated, {**info, "feedback": without_pads(outcomes, 0)}


class VectorLateOutcomes(VectorWrapperBase):
    """The vector form of :class:`LateOutcomes`: decisions, actions and outcomes are (B, K), padded."""

    def __init__(self, env: VectorEnv[Any, Any, Any], delay: int | dict[str, Any] = 0, batch: int = 1) -> None:
        """Wrap a vector environment with a Discrete action space; arguments as in :class:`LateOutcomes`."""
        super().__init__(env)
        self._late = _Late(delay, batch, env.num_envs)
        if self._late.mail is not None:
            self.metadata = {**env.metadata, LATE: True}
        self._mode = env.metadata.get("autoreset_mode")
        self._over = np.zeros(env.num_envs, np.bool_)  # slots whose next step only resets (NEXT_STEP)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environments, or those of ``options["reset_mask"]``; a seed starts the streams of delays, too."""
        mask = (options or {}).get("reset_mask")
        observation, info = self.env.reset(seed=seed, options=options)
        fresh = np.ones(self.num_envs, np.bool_) if mask is None else np.asarray(mask)
        self._late.seed(seed)
        self._late.begin(np.flatnonzero(fresh))
        self._over[fresh] = False
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step the environments."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if self._late.mail is None:
            return observation, reward, terminated, truncated, info
        playing, ended = ~self._over, terminated | truncated
        self._late.begin(np.flatnonzero(self._over))
        outcome = observed_outcomes(info, reward)
        given = (np.asarray(actions, np.int64), outcome, np.asarray(reward, np.float64))
        paid, outcomes = self._late.mail.exchange(*given, playing, ended)
        if self._mode is AutoresetMode.SAME_STEP:
            self._late.begin(np.flatnonzero(ended))
        self._over = ended & (self._mode is AutoresetMode.NEXT_STEP)
        return observation, paid, terminated, truncated, self._show(info, outcomes, playing, ended)

    def _show(
        self, info: dict[str, Any], outcomes: dict[str, np.ndarray], playing: np.ndarray, ended: np.ndarray
    ) -> dict[str, Any]:
        """Return the info with late outcomes in the place of those in time; of ended slots, in their final info."""
        info = {key: value for key, value in info.items() if key not in ("outcome", "_outcome")}
        if self._mode is not AutoresetMode.SAME_STEP or not ended.any():
            return info | show(outcomes, playing) if playing.any() else info
        final = {key: value for key, value in info["final_info"].items() if key not in ("outcome", "_outcome")}
        info["final_info"] = final | show(blank(outcomes, ~ended), ended.copy())
        return info if ended.all() else info | show(blank(outcomes, ended), ~ended)
