"""The meta-bandit environment: a task distribution in, a Gymnasium ``VectorEnv`` and an ``Env`` out."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gents_gym.checks import InputError, check_actions, check_choice, check_integer
from gents_gym.construct import make_tasks
from gents_gym.envs.render import draw_table, write_table
from gents_gym.randomness import SPLITS
from gents_gym.types import TaskDistribution, Tasks

BOUND = 1e6  # observations lie within ±BOUND
MODES = {mode.value: mode for mode in AutoresetMode}
RENDERERS = {"rgb_array": draw_table, "ansi": write_table}

Observation = dict[str, np.ndarray]


class BanditVectorEnv(VectorEnv[Observation, np.ndarray, np.ndarray]):
    """B meta-bandit tasks played side by side; :class:`BanditEnv` is its view of one, and documents both.

    Slot i at its k-th reset plays task k·B + i of the stream (seed, split), counting from zero. Two
    slots never play the same task, unlike with ``SyncVectorEnv``, which seeds slot i with seed + i.

    Args:
        tasks: A task distribution, its id, or ``package.module:Class``.
        num_envs: B.
        split: The stream that tasks come from: "train", "validation" or "test".
        autoreset_mode: "SameStep", "NextStep" or "Disabled", or Gymnasium's ``AutoresetMode``.
        render_mode: None, "rgb_array" or "ansi".
        **config: The distribution's own arguments, where ``tasks`` is an id.
    """

    metadata: dict[str, Any] = {
        "render_modes": list(RENDERERS),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        tasks: str | TaskDistribution,
        num_envs: int = 1,
        split: str = "test",
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
        **config: Any,
    ) -> None:
        if config and not isinstance(tasks, str):
            raise InputError(f"tasks must be an id where it has arguments ({', '.join(config)}), got {tasks!r}")
        self.distribution = make_tasks(tasks, **config) if isinstance(tasks, str) else tasks
        if not isinstance(self.distribution, TaskDistribution):
            raise InputError(f"tasks must be a task distribution or its id, got {tasks!r}")
        self.num_envs = check_integer("num_envs", num_envs, 1)
        self.split = check_choice("split", split, SPLITS)
        if not isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = MODES[check_choice("autoreset_mode", autoreset_mode, MODES)]
        self.autoreset_mode = autoreset_mode
        self.metadata = {**self.metadata, "autoreset_mode": autoreset_mode}
        self.render_mode = None if render_mode is None else check_choice("render_mode", render_mode, RENDERERS)

        self._sizes = self.distribution.sample(0, [0], self.split)  # one task tells all sizes
        if not isinstance(self._sizes, Tasks):
            raise InputError(f"sample of a task distribution must return Tasks, got {self._sizes!r}")
        self.single_action_space = spaces.Discrete(self._sizes.n_actions)
        self.single_observation_space = spaces.Dict(
            context=spaces.Box(-BOUND, BOUND, (self._sizes.context_dim,), np.float32),
            action_features=spaces.Box(-BOUND, BOUND, self._sizes.action_features.shape[1:], np.float32),
        )
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

        n_tasks, horizon = self.num_envs, self._sizes.horizon
        self._slots = np.arange(n_tasks)
        self._starts = self._slots * horizon  # where a slot's decisions begin among all slots' decisions
        self._seed: int | None = None
        self._played: Tasks | None = None  # the batch being played
        self._rounds = np.zeros(n_tasks, np.int64)  # resets so far, per slot
        self._time = np.zeros(n_tasks, np.int64)  # decisions so far, per slot
        self._actions = np.zeros((n_tasks, horizon), np.int64)  # this episode's actions, up to _time
        self._over = np.zeros(n_tasks, np.bool_)
        self._ended = False  # whether any slot is over

    @property
    def horizon(self) -> int:
        """T, the number of decisions in an episode."""
        return self._sizes.horizon

    @property
    def seeded(self) -> bool:
        """Whether there is a stream to go on in."""
        return self._seed is not None

    @property
    def tasks(self) -> Tasks:
        """The B tasks being played, with their tables: privileged, and not for agents."""
        if self._played is None:
            raise ResetNeeded("there are no tasks before the first reset")
        return self._played

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in every slot, or in those of ``options["reset_mask"]``.

        Args:
            seed: Starts the stream ``seed`` from its first task; None goes on in the present stream.
            options: "task": a :class:`Tasks` batch or the numbers of tasks in the stream, one for each slot
                that is reset; "reset_mask": (B,) booleans, the slots to reset.
        """
        options = dict(options or {})
        slots = self._masked_slots(options.pop("reset_mask", None))
        given = options.pop("task", None)
        for key in options:
            check_choice("option of reset:", key, ["task", "reset_mask"])
        if given is not None:
            self._check_given(given, len(slots))
        seed = None if seed is None else check_integer("seed", seed, 0)
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
            self._rounds[:] = 0
        elif not self.seeded:
            self._seed = int(self.np_random.integers(2**63))
        info = self._begin(slots, given)
        return self._observe(), info

    def _masked_slots(self, mask: Any) -> np.ndarray:
        if mask is None:
            return self._slots
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            rule = f"booleans of shape (B,)=({self.num_envs},) with one or more True"
            raise InputError(f"reset_mask must be {rule}, got {mask!r}")
        if self._played is None and not mask.all():
            raise ResetNeeded("reset_mask must be True everywhere at the first reset")
        return np.flatnonzero(mask)

    def _begin(self, slots: np.ndarray, given: Any = None) -> dict[str, Any]:
        """Put the stream's next tasks, or the ``given`` ones, into ``slots``; return the reset info."""
        if isinstance(given, Tasks):
            tasks, numbers = given, np.full(len(slots), -1)
        else:
            numbers = np.asarray(self._rounds[slots] * self.num_envs + slots if given is None else given)
            self._rounds[slots] += given is None
            assert self._seed is not None
            tasks = self.distribution.sample(self._seed, numbers.tolist(), self.split)
        self._played = tasks if len(slots) == self.num_envs else self.tasks.put(slots, tasks)
        self._rows = self._played.contexts.reshape(-1, self._sizes.context_dim)  # (B·T, D)
        self._cells = self._played.outcomes.reshape(-1)  # (B·T·A,)
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

    def _check_given(self, given: Any, n_slots: int) -> None:
        if not isinstance(given, Tasks):
            try:
                numbers = np.asarray(given)
            except ValueError:  # a ragged list
                numbers = np.zeros(0)
            if numbers.shape != (n_slots,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
                rule = f"a Tasks batch or {n_slots} task numbers of at least 0, one for each slot"
                raise InputError(f"options['task'] must be {rule}, got {given!r}")
            return
        if given.reward_fn is not self._sizes.reward_fn:
            ours, theirs = self._sizes.reward_fn, given.reward_fn
            raise InputError(f"options['task'].reward_fn must be the environment's, {ours!r}, got {theirs!r}")
        if given.likelihood != self._sizes.likelihood:
            rule = f"options['task'].likelihood must be the environment's, {self._sizes.likelihood}"
            raise InputError(f"{rule}, got {given.likelihood}; Tasks(likelihood=...) states one")
        for name in ("action_features", "contexts", "outcomes"):
            got, wanted = getattr(given, name), (n_slots, *getattr(self._sizes, name).shape[1:])
            if got.shape != wanted:
                raise InputError(f"options['task'].{name} must have shape {wanted}, got {got.shape}")
            if name != "outcomes" and (largest := np.abs(got).max(initial=0)) > BOUND:  # those are observations
                raise InputError(f"options['task'].{name} must lie within ±{BOUND:g}, got {largest:g}")

    def _observe(self) -> Observation:
        context = self._rows.take(self._starts + self._time, axis=0, mode="clip")  # (B, D)
        if self._ended:
            context[self._over] = 0  # there is no decision left to see a context for
        return {"context": context, "action_features": self.tasks.action_features}

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action (B,) per slot; slots that ended are handled as ``autoreset_mode`` says."""
        if self._played is None:
            raise ResetNeeded("reset must be called before step")
        actions = check_actions(actions, self.num_envs, self._sizes.n_actions)
        begun = self._over.copy()  # the slots that this step only resets
        info = self._begin_ended() if self._ended else {}
        cell = (self._starts + self._time) * self._sizes.n_actions + actions
        outcome = self._cells.take(cell).astype(np.float64)
        reward = np.array(self._played.reward_fn(outcome), np.float64)  # a copy: R may return its argument
        self._actions[self._slots, self._time] = actions
        self._time += 1
        if info:
            self._time[begun] = reward[begun] = outcome[begun] = 0
        self._over = self._time >= self._sizes.horizon
        self._ended = bool(self._over.any())
        terminated = self._over.copy()
        if not begun.all():
            info.update(outcome=outcome, _outcome=~begun)
        if self._ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            info = self._autoreset(info)
        return self._observe(), reward, terminated, np.zeros(self.num_envs, np.bool_), info

    def _begin_ended(self) -> dict[str, Any]:
        """Start the slots that ended in the step before, where the mode asks for it."""
        ended = np.flatnonzero(self._over)
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            when = f"after {self._sizes.horizon} decisions in slots {ended.tolist()}"
            raise ResetNeeded(f"the episode has ended {when}: reset must be called before step")
        return self._begin(ended)

    def _autoreset(self, info: dict[str, Any]) -> dict[str, Any]:
        """Start the ended slots anew, and keep what they last saw where Gymnasium's vector form wants it."""
        over, last = self._over.copy(), self._observe()
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(over):
            final[i] = {key: array[i].copy() for key, array in last.items()}
        final_info = {"outcome": np.where(over, info["outcome"], 0), "_outcome": over.copy()}
        going = {} if over.all() else {"outcome": np.where(over, 0, info["outcome"]), "_outcome": ~over}
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


class BanditEnv(gym.Env[Observation, np.int64]):
    """A meta-contextual bandit: each episode is a new task with its own actions, contexts and outcomes.

    ## Description
    A task has A actions with features Z, T contexts X drawn one after the other, and a table of potential
    outcomes Y, T by A. The agent sees Z at once and X_t at each decision, picks an action, and sees that
    action's outcome alone. Tasks come from a distribution, so what was learned on earlier tasks (the
    "train" split) helps with new ones: that is the "meta" in the name.

    `gents_gym/Synthetic-v0` is the synthetic setting of "Contextual Thompson Sampling via Generation of
    Missing Data": A=10, T=500, five context and two action features, binary outcomes from a logistic
    model (:class:`gents_gym.tasks.synthetic.Synthetic`); also with Gaussian or categorical outcomes.

    `gents_gym/News-v0` is its news setting: actions are headlines, and outcomes depend on their sentiment and
    formality (:class:`gents_gym.tasks.news.News`). The bundled headlines are synthetic text.

    ## Action Space
    `Discrete(A)`: the action to play.

    ## Observation Space
    `Dict(context=Box(D,), action_features=Box(A, F))`, float32, within ±1e6. In the news setting the action
    features are embeddings of the headlines.

    ## Rewards
    R(Y) of the played action's outcome, any finite number; the outcome itself is `info["outcome"]`.

    ## Starting State
    `reset(seed=s)` plays the first task of the stream (s, split), each further `reset()` the next one. Task i
    depends on (s, split, i) alone. `info["task"]` tells i, or -1 for a task that was handed in. Where actions
    have texts, `info["texts"]` of a reset lists all A; a vector environment's has such a list per slot.

    ## Episode End
    `terminated` after T decisions, with a context of zeros; `truncated` never.

    ## Arguments
    - `split="test"`: "train", "validation" or "test"; streams of different splits share no task.
    - `render_mode=None`: "rgb_array" or "ansi" show the table, the played cells filled in.
    - `n_actions=10`, `horizon=500`, `context_dim=5`, `reward_fn=None`: the sizes and R of
      both settings; R by id ("identity") or as `package.module:function`; None is R(y) = y, or y/2 of categories.
    - `outcomes="bernoulli"`: of `gents_gym/Synthetic-v0`, also "gaussian" or "categorical" (0, 1 or 2).
    - `context_spread=1.0`: how much a task's contexts differ, in both settings; 0 makes them all the same.
    - `corpus=None`: of `gents_gym/News-v0`, a folder that `gents-gym news prepare` wrote; None is the bundled one.
    - `reset(options={"task": 7})` plays task 7 of the stream, `{"task": tasks}` one that is handed in (a `Tasks`
      batch of one); neither advances the stream.

    ## Vectorized environment
    `gym.make_vec(id, num_envs=B)` makes a native one; this class is B=1 of the same code. It takes
    `autoreset_mode` too: "SameStep" (default), "NextStep" or "Disabled".

    ## Version History
    - v0: initial version.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDERERS), "render_fps": 4}

    def __init__(self, tasks: str | TaskDistribution, render_mode: str | None = None, **config: Any) -> None:
        if "num_envs" in config or "autoreset_mode" in config:
            raise InputError("num_envs and autoreset_mode are arguments of gym.make_vec, not of gym.make")
        self._batch = BanditVectorEnv(
            tasks, 1, autoreset_mode=AutoresetMode.DISABLED, render_mode=render_mode, **config
        )
        self.render_mode = render_mode
        self.action_space = self._batch.single_action_space
        self.observation_space = self._batch.single_observation_space

    @property
    def tasks(self) -> Tasks:
        """The task being played, as a batch of one: privileged, and not for agents."""
        return self._batch.tasks

    @property
    def distribution(self) -> TaskDistribution:
        """The task distribution."""
        return self._batch.distribution

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the stream ``seed`` or go on in it; ``options["task"]`` picks or hands in a task."""
        super().reset(seed=seed)
        if seed is None and not self._batch.seeded:
            seed = int(self.np_random.integers(2**63))
        if options and isinstance(options.get("task"), int | np.integer):
            options = {**options, "task": [options["task"]]}
        observation, info = self._batch.reset(seed=seed, options=options)
        return _first(observation), _first_info(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play ``action`` and see its outcome."""
        if np.ndim(action) != 0:
            raise InputError(f"action must be a single number, got shape {np.shape(action)}")
        observation, reward, terminated, _, info = self._batch.step(np.asarray(action)[None])
        return _first(observation), float(reward[0]), bool(terminated[0]), False, _first_info(info)

    def render(self) -> Any:
        """Return the frame: an RGB array or a text, as ``render_mode`` says."""
        frames = self._batch.render()
        return None if frames is None else frames[0]


def _first(observation: Observation) -> Observation:
    return {key: array[0].copy() for key, array in observation.items()}


def _first_info(info: Mapping[str, Any]) -> dict[str, Any]:
    first = {key: array[0] for key, array in info.items() if not key.startswith("_")}
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in first.items()}
