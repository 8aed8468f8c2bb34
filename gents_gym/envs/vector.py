"""The meta-bandit as a Gymnasium vector environment, which plays a batch of tasks side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gents_gym.checks import (
    InputError,
    InputTypeError,
    check_actions,
    check_choice,
    check_flag,
    check_integer,
    check_memory,
    check_played,
)
from gents_gym.construct import make_tasks
from gents_gym.envs.bases import Observation, VectorEnvBase
from gents_gym.envs.delay import make_delay
from gents_gym.envs.feedback import LATE, blank, show
from gents_gym.envs.given import BOUND, check_given, check_options, masked_slots
from gents_gym.envs.render import draw_table, write_table
from gents_gym.envs.streams import Seeds, Streams
from gents_gym.envs.turnover import make_turnover
from gents_gym.randomness import SPLITS
from gents_gym.types import TaskDistribution, Tasks

if TYPE_CHECKING:
    from gents_gym.envs.mail import Mail

MODES = {mode.value: mode for mode in AutoresetMode}
RENDERERS = {"rgb_array": draw_table, "ansi": write_table}
SHARED = ("batch", "delay", "distribution", "horizon", "metadata", "render_mode", "spec", "split", "turnover")  # by all


class BanditVectorEnv(VectorEnvBase):
    """B meta-bandit tasks played side by side; :class:`BanditEnv` is its view of one, and documents both.

    Slot i at its k-th reset plays task k·B + i of the stream (seed, split), counting from zero. Two slots never play
    the same task, unlike with ``SyncVectorEnv``, which seeds slot i with seed + i; a list of seeds gives each slot a
    stream of its own, as there.

    Args:
        tasks: A task distribution, its id, or ``package.module:Class``.
        num_envs: B.
        split: The stream that tasks come from: "train", "validation" or "test".
        autoreset_mode: "NextStep", "SameStep" or "Disabled", or Gymnasium's ``AutoresetMode``.
        copy: Whether observations are copies, which may be written to; if False, ``action_features`` is one
            read-only array for a whole episode.
        render_mode: None, "rgb_array" or "ansi".
        delay: How many decisions later an outcome arrives, and how many are lost; see :class:`BanditEnv`.
        batch: Decisions that are made before any of their outcomes is shown.
        turnover: Which actions can be played at a time, and how often they are replaced; see :class:`BanditEnv`.
        **config: The distribution's own arguments, if ``tasks`` is an id.
    """

    metadata: dict[str, Any] = {
        "render_modes": list(RENDERERS),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        tasks: str | TaskDistribution,
        num_envs: int = 1,
        split: str = "test",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        delay: int | dict[str, Any] = 0,
        batch: int = 1,
        turnover: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        if "max_episode_steps" in config:
            raise InputTypeError("max_episode_steps is an argument of gym.make; horizon is the length of an episode")
        if config and not isinstance(tasks, str):
            raise InputError(f"tasks must be an id if arguments are given ({', '.join(config)}), got {tasks!r}")
        self.distribution = make_tasks(tasks, **config) if isinstance(tasks, str) else tasks
        if not isinstance(self.distribution, TaskDistribution):
            raise InputError(f"tasks must be a task distribution or its id, got {tasks!r}")
        self.num_envs = check_integer("num_envs", num_envs, 1)
        self.split = check_choice("split", split, SPLITS)
        if not isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = MODES[check_choice("autoreset_mode", autoreset_mode, MODES)]
        self.autoreset_mode = autoreset_mode
        self.delay, self.batch, self.turnover = delay, batch, turnover
        rule = make_delay(delay, batch)
        self.metadata = {**self.metadata, "autoreset_mode": autoreset_mode, **({} if rule is None else {LATE: True})}
        self.copy = check_flag("copy", copy)
        self.render_mode = None if render_mode is None else check_choice("render_mode", render_mode, RENDERERS)

        self._sizes = self.distribution.sample(0, [0], self.split)  # one task has all sizes
        if not isinstance(self._sizes, Tasks):
            raise InputError(f"sample of a task distribution must return Tasks, got {self._sizes!r}")
        check_memory(8 * self.num_envs * self._sizes.horizon, num_envs=self.num_envs, horizon=self._sizes.horizon)
        self._turnover = make_turnover(turnover)
        if self._turnover is not None and self._sizes.available is not None:
            raise InputError(f"turnover must be None for tasks that say what is available, got {turnover!r}")
        if self._turnover is not None:
            self._sizes = self._draw_available(self._sizes, [np.random.default_rng(0)])
        self._masked = self._sizes.available is not None
        self.single_action_space = spaces.Discrete(self._sizes.n_actions)
        shown: dict[str, spaces.Space[Any]] = {
            "context": spaces.Box(-BOUND, BOUND, (self._sizes.context_dim,), np.float32),
            "action_features": spaces.Box(-BOUND, BOUND, self._sizes.action_features.shape[1:], np.float32),
        }
        if self._masked:
            shown["available"] = spaces.MultiBinary(self._sizes.n_actions)
        self.single_observation_space = spaces.Dict(shown)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

        n_tasks, horizon = self.num_envs, self._sizes.horizon
        self._slots, self._every = np.arange(n_tasks), np.ones(n_tasks, np.bool_)
        self._starts = self._slots * horizon  # where a slot's decisions begin among all slots' decisions
        self._streams = Streams(self.distribution, self.split, n_tasks)
        self._mail: Mail | None = None
        if rule is not None:
            from gents_gym.envs.mail import Mail  # numba: heavy

            self._mail = Mail(rule, n_tasks, horizon)
        self._kept: dict[str, list[Any]] = {}  # what set_attr was given, per slot
        self._played: Tasks | None = None  # the batch being played
        self._time = np.zeros(n_tasks, np.int64)  # decisions so far, per slot
        self._actions = np.zeros((n_tasks, horizon), np.int64)  # this episode's actions, up to _time
        self._over = np.zeros(n_tasks, np.bool_)
        self._ended = False  # whether any slot is over

    @property
    def horizon(self) -> int:
        """T, the number of decisions in an episode."""
        return self._sizes.horizon

    @property
    def tasks(self) -> Tasks:
        """The B tasks being played, with their tables: privileged, and not for agents."""
        if self._played is None:
            raise ResetNeeded("there are no tasks before the first reset")
        return self._played

    def reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in every slot, or in those of ``options["reset_mask"]``.

        Args:
            seed: A whole number starts the stream ``seed`` from its first task. A list has a stream for each slot,
                which plays all its tasks, as in ``SyncVectorEnv``. None, also in a list, goes on in the present stream.
            options: "task": a :class:`Tasks` batch or the numbers of tasks in the stream, one for each slot
                that is reset; "reset_mask": (B,) booleans, the slots to reset.
        """
        options = check_options(options)
        mask, given = options.get("reset_mask"), options.get("task")
        slots = masked_slots(mask, self.num_envs)
        if self._played is None and len(slots) < self.num_envs:
            raise ResetNeeded("reset_mask must be True everywhere at the first reset")
        if given is not None:
            check_given(given, len(slots), self._sizes)
        seed = self._streams.check(seed)
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._streams.start(seed, slots, self.np_random)
        info, observation = self._begin(slots, given), self._observe()
        if self._masked:
            info |= {"action_mask": observation["available"], "_action_mask": info["_task"].copy()}
        return observation, info

    def _begin(self, slots: np.ndarray, given: Any = None) -> dict[str, Any]:
        """Put the stream's next tasks, or the ``given`` ones, into ``slots``; return the reset info."""
        if isinstance(given, Tasks):
            tasks, numbers = given, np.full(len(slots), -1)
        else:
            numbers, tasks = self._streams.draw(slots, given)
        if self._turnover is not None and tasks.available is None:
            tasks = self._draw_available(tasks, self._streams.generators("turnover", slots, numbers))
        elif self._masked and tasks.available is None:  # a batch of others that was handed in
            tasks = tasks.with_available(np.ones(tasks.outcomes.shape, np.bool_))
        if self._mail is not None:
            rngs = self._streams.generators("delay", slots, numbers) if self._mail.is_random else ()
            self._mail.begin(slots, rngs)
        self._played = tasks if len(slots) == self.num_envs else self.tasks.put(slots, tasks)
        self._rows = self._played.contexts.reshape(-1, self._sizes.context_dim)  # (B·T, D)
        self._cells = self._played.outcomes.reshape(-1)  # (B·T·A,)
        if self._played.available is not None:
            self._open = self._played.available.reshape(-1, self._sizes.n_actions)  # (B·T, A)
        self._time[slots] = 0
        self._over[slots] = False
        self._ended = bool(self._over.any())
        every, mask = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs, np.bool_)
        every[slots], mask[slots] = numbers, True
        info = {"task": every, "_task": mask}
        if self._played.texts is not None:
            texts = np.full(self.num_envs, None, dtype=object)
            for i in slots:
                texts[i] = self._played.texts[i].tolist()
            info |= {"texts": texts, "_texts": mask.copy()}
        return info

    def _draw_available(self, tasks: Tasks, rngs: list[np.random.Generator]) -> Tasks:
        assert self._turnover is not None
        return tasks.with_available(self._turnover.draw(rngs, tasks.horizon, tasks.n_actions))

    def action_masks(self) -> np.ndarray:
        """Return which actions can be played now, (B, A) of bool; after the end, those of the last decision."""
        if not self._masked:
            return np.ones((self.num_envs, self._sizes.n_actions), np.bool_)
        if self._played is None:
            raise ResetNeeded("reset must be called before action_masks")
        return self._open.take(self._row(), axis=0)

    def _row(self) -> np.ndarray:
        """Return each slot's row of the batch's decisions, (B,); after the end, the last one."""
        time = np.minimum(self._time, self._sizes.horizon - 1) if self._ended else self._time
        return self._starts + time

    def _check_available(self, actions: np.ndarray, cell: np.ndarray, begun: np.ndarray) -> None:
        """Raise unless the actions (B,) can be played, but for slots that have ``begun`` (B,) in place of playing."""
        played = self._open.take(cell)
        if np.count_nonzero(played) < len(played) and not (played | begun).all():
            check_played(actions, self.action_masks() | begun[:, None])

    def _observe(self) -> Observation:
        row = self._row()
        context = self._rows.take(row, axis=0)  # (B, D)
        if self._ended:
            context[self._over] = 0  # there is no decision left to see a context for
        features = self.tasks.action_features  # (B, A, F)
        shown = {"context": context, "action_features": features.copy() if self.copy else features}
        if self._masked:
            shown["available"] = self._open.take(row, axis=0).view(np.int8)  # (B, A)
        return shown

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action (B,) per slot; slots that ended are handled as ``autoreset_mode`` says."""
        if self._played is None:
            raise ResetNeeded("reset must be called before step")
        actions = check_actions(actions, self.num_envs, self._sizes.n_actions)
        begun = self._over.copy()  # the slots that this step only resets
        cell, info = self._row() * self._sizes.n_actions + actions, {}
        if self._masked:
            self._check_available(actions, cell, begun)
        if self._ended:
            info = self._begin_ended()
            cell = self._row() * self._sizes.n_actions + actions
        outcome = self._cells.take(cell).astype(np.float64)
        reward = np.array(self._played.reward_fn(outcome), np.float64)  # a copy: R may return its argument
        self._actions[self._slots, self._time] = actions
        self._time += 1
        if info:
            self._time[begun] = reward[begun] = outcome[begun] = 0
        self._over = self._time >= self._sizes.horizon
        self._ended = bool(self._over.any())
        terminated, playing = self._over.copy(), ~begun
        outcomes = {"outcome": outcome}
        if self._mail is not None:
            reward, outcomes = self._mail.exchange(actions, outcome, reward, playing, self._over)
        if self._ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            info = self._autoreset(outcomes)
        elif not begun.all():
            info |= show(outcomes, playing)
        observation = self._observe()
        if self._masked:
            info |= {"action_mask": observation["available"], "_action_mask": self._every.copy()}
        return observation, reward, terminated, np.zeros(self.num_envs, np.bool_), info

    def _begin_ended(self) -> dict[str, Any]:
        """Start the slots that ended in the step before, if the mode asks for it."""
        ended = np.flatnonzero(self._over)
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            when = f"after {self._sizes.horizon} decisions in slots {ended.tolist()}"
            raise ResetNeeded(f"the episode has ended {when}: reset must be called before step")
        return self._begin(ended)

    def _autoreset(self, outcomes: dict[str, np.ndarray]) -> dict[str, Any]:
        """Start the ended slots again, and keep what they saw last in the form of Gymnasium's vector environments."""
        over, last = self._over.copy(), self._observe()
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(over):
            final[i] = {key: array[i].copy() for key, array in last.items()}
        final_info = show(blank(outcomes, ~over), over.copy())
        if self._masked:
            final_info |= {"action_mask": np.where(over[:, None], last["available"], 0), "_action_mask": over.copy()}
        going = {} if over.all() else show(blank(outcomes, over), ~over)
        begun = self._begin(np.flatnonzero(over))
        ended = {"final_obs": final, "_final_obs": over, "final_info": final_info, "_final_info": over.copy()}
        return {**ended, **going, **begun}

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame per slot: an RGB array or a text, as ``render_mode`` says."""
        if self.render_mode is None:
            gym.logger.warn('render needs a render_mode, such as "rgb_array" or "ansi", at construction')
            return None
        draw = RENDERERS[self.render_mode]
        return tuple(draw(self.tasks[i], self._actions[i, : self._time[i]]) for i in range(self.num_envs))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return an attribute of each slot's single environment, or its answer to "render", as ``SyncVectorEnv`` does.

        Slots are played together, so "reset" and "step" are refused.
        """
        if name in ("reset", "step"):
            raise InputError(f"slots are played together, so call {name} of the vector environment, got call({name!r})")
        if name == "render":
            return self.render() or (None,) * self.num_envs
        if name == "action_masks":
            return tuple(self.action_masks())
        if name == "tasks":
            return tuple(self.tasks[i] for i in range(self.num_envs))
        if name in self._kept:
            return tuple(self._kept[name])
        if name in ("action_space", "observation_space"):
            name = f"single_{name}"
        elif name not in SHARED:
            known = ", ".join(("action_space", "observation_space", "tasks", *SHARED))
            raise AttributeError(f"slots have no attribute {name!r}; known: {known}")
        return (getattr(self, name),) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each slot, as :meth:`call` does."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set what :meth:`get_attr` returns: a list with a value for each slot, or one for all.

        The environment's own attributes are refused: they are arguments, and slots share them.
        """
        if hasattr(self, name):
            raise InputError(f"{name} cannot be set for a slot: slots share one environment, and it is an argument")
        kept = list(values) if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(kept) != self.num_envs:
            raise InputError(f"values must be one or a list of B={self.num_envs}, got {len(kept)}")
        self._kept[name] = kept
