"""The meta-bandit as a Gymnasium environment: one slot of the vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from gents_gym.checks import InputTypeError
from gents_gym.envs.bases import EnvBase, Observation
from gents_gym.envs.feedback import LATE, without_pads
from gents_gym.envs.given import check_options
from gents_gym.envs.vector import RENDERERS, BanditVectorEnv
from gents_gym.types import TaskDistribution, Tasks

VECTOR_ARGUMENTS = ("num_envs", "autoreset_mode", "copy")
OTHER_MODES = "with vectorization_mode='sync' or 'async'"


class BanditEnv(EnvBase):
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

    `gents_gym/Imagined-v0` plays tasks that a model draws from its own p_θ
    (:class:`gents_gym.models.imagined.Imagined`).

    `gents_gym/Drifting-v0` and `gents_gym/Correlated-v0` are the synthetic setting with coefficients that move
    (:class:`gents_gym.tasks.drifting.Drifting`) and with actions that share fate
    (:class:`gents_gym.tasks.correlated.Correlated`). `gents_gym/Nonlinear-v0` has outcomes that depend on interactions
    and bends of features and contexts (:class:`gents_gym.tasks.nonlinear.Nonlinear`). In `gents_gym/General-v0`, every
    task draws a setting of its own (:class:`gents_gym.tasks.general.General`).

    `gents_gym/Classification-v0` has the classes of a data set as actions and its rows as contexts
    (:class:`gents_gym.tasks.classification.Classification`), `gents_gym/Across-v0` plays other data sets than those
    that models learn from (:class:`gents_gym.tasks.across.Across`), `gents_gym/Wheel-v0` is the wheel bandit
    (:class:`gents_gym.tasks.wheel.Wheel`), and `gents_gym/Bernoulli-v0` has a constant context
    (:class:`gents_gym.tasks.bernoulli.Bernoulli`). docs/environments.md has a section for each.

    ## Action Space
    `Discrete(A)`: the action to play.

    ## Observation Space
    `Dict(context=Box(D,), action_features=Box(A, F))`, float32, within ±1e6. In the news setting the action
    features are embeddings of the headlines; in `gents_gym/Drifting-v0` the last entry of a context is the time t/T.
    With `turnover` also `available=MultiBinary(A)`, the actions that can be played now; `info["action_mask"]` is the
    same, and so is `action_masks()`.

    ## Rewards
    R(Y) of the played action's outcome, any finite number; the outcome itself is `info["outcome"]`. With a `delay` or
    `batch`, R of the outcomes that arrived, summed; these are in `info["feedback"]`, lists (arrays (B, K) of a vector
    environment) of `decision` (its number, from 0 on), `action` and `outcome`. What has not arrived by the end arrives
    with the last step.

    ## Starting State
    `reset(seed=s)` plays the first task of the stream (s, split), each further `reset()` the next one. Task i
    depends on (s, split, i) alone. `info["task"]` is i, or -1 for a task that the caller gave. If actions
    have texts, `info["texts"]` of a reset lists all A; a vector environment's has such a list per slot.

    ## Episode End
    `terminated` after T decisions, with a context of zeros; `truncated` never. The spec has no `max_episode_steps`;
    `gym.make(id, horizon=T, max_episode_steps=T)` gives it one, for wrappers that need it.

    ## Arguments
    - `split="test"`: "train", "validation" or "test"; streams of different splits share no task.
    - `render_mode=None`: "rgb_array" or "ansi" show the table, the played cells filled in.
    - `n_actions=10`, `horizon=500`, `context_dim=5`, `reward_fn=None`: the sizes and R of
      the paper's two settings; R by id ("identity") or as `package.module:function`; None is R(y) = y, or y/2 of
      categories. Imagined contexts have the size that the model was trained on.
    - `outcomes="bernoulli"`: of `gents_gym/Synthetic-v0` and `gents_gym/Nonlinear-v0`, also "gaussian" or
      "categorical" (0, 1 or 2).
    - `context_spread=1.0`: how much a task's contexts differ, in the paper's two settings; 0 makes them all the same.
    - `drift="walk"` or "jump", `rate=0.005`, `time=True`: of `gents_gym/Drifting-v0`.
    - `correlation=0.5`, `row_effect=0.0`: of `gents_gym/Correlated-v0`.
    - `dataset="digits"`, `target`, `bins`, `test`, `label_noise`: of `gents_gym/Classification-v0`.
    - `train`, `test`, lists of data sets: of `gents_gym/Across-v0`.
    - `delta=0.95`, `mu1`, `mu2`, `mu3`, `sigma`: of `gents_gym/Wheel-v0`.
    - `delay=0`: how many decisions later an outcome arrives: a whole number, or a dict of one of "constant",
      "geometric" (P(d) = p (1 - p)^d) or "values" and "probabilities", and "lost", the probability that it never does.
    - `batch=1`: decisions that are made before any of their outcomes is shown.
    - `turnover=None`: {"live": 20, "rate": 0.01} makes 20 actions of the pool available at a time; before each
      decision each of them is replaced with probability 0.01 by one that is not.
    - `corpus=None`: of `gents_gym/News-v0`, a folder that `gents-gym news prepare` wrote; None is the bundled one.
    - `model="synthetic-filter"`, `contexts=None`, `setting=None`, `oracle=None`, `further=1000`: of
      `gents_gym/Imagined-v0`, the model, where its contexts come from, a task distribution that takes the place of
      its banks, the policy class behind the regret, and the rows that approximate means are learned from.
    - `reset(options={"task": 7})` plays task 7 of the stream, `{"task": tasks}` a task of yours (a `Tasks`
      batch of one); neither advances the stream.

    ## Vectorized environment
    `gym.make_vec(id, num_envs=B)` makes a native one; this class is B=1 of the same code. It takes
    `autoreset_mode` too: "NextStep" (default), "SameStep" or "Disabled"; and `copy=False`, with which
    `action_features` is not copied at each step, but read-only.

    ## Version History
    - v0: initial version.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDERERS), "render_fps": 4}

    def __init__(self, tasks: str | TaskDistribution, render_mode: str | None = None, **config: Any) -> None:
        for name in VECTOR_ARGUMENTS:
            if name in config:
                instead = "" if name == "num_envs" else f"; {OTHER_MODES} write vector_kwargs={{{name!r}: ...}}"
                raise InputTypeError(f"{name} is an argument of gym.make_vec, not of gym.make{instead}")
        self._batch = BanditVectorEnv(
            tasks, 1, autoreset_mode=AutoresetMode.DISABLED, copy=False, render_mode=render_mode, **config
        )
        self.render_mode = render_mode
        late = {name: value for name, value in self._batch.metadata.items() if name == LATE}
        self.metadata = {**self.metadata, **late}
        self.action_space = self._batch.single_action_space
        self.observation_space = self._batch.single_observation_space

    @property
    def tasks(self) -> Tasks:
        """The task being played, as a batch of one: privileged, and not for agents."""
        return self._batch.tasks

    def action_masks(self) -> np.ndarray:
        """Return which actions can be played now, (A,) of bool: what sb3-contrib's MaskablePPO asks for."""
        masks: np.ndarray = self._batch.action_masks()[0]
        return masks

    @property
    def distribution(self) -> TaskDistribution:
        """The task distribution."""
        return self._batch.distribution

    @property
    def horizon(self) -> int:
        """T, the number of decisions in an episode."""
        return self._batch.horizon

    @property
    def split(self) -> str:
        """The split that tasks come from."""
        return self._batch.split

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the stream ``seed`` or go on in it; ``options["task"]`` picks or hands in a task."""
        options = check_options(options)
        if isinstance(options.get("task"), int | np.integer):
            options["task"] = [options["task"]]
        super().reset(seed=seed)
        self._batch.np_random = self.np_random  # it draws the stream of an environment without a seed
        observation, info = self._batch.reset(seed=seed, options=options)
        return _first(observation), _first_info(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play ``action`` and see its outcome."""
        if np.ndim(action) != 0:
            raise InputTypeError(f"action must be a single number, got shape {np.shape(action)}")
        observation, reward, terminated, _, info = self._batch.step(np.asarray(action)[None])
        return _first(observation), float(reward[0]), bool(terminated[0]), False, _first_info(info)

    def render(self) -> Any:
        """Return the frame: an RGB array or a text, as ``render_mode`` says."""
        frames = self._batch.render()
        return None if frames is None else frames[0]


def _first(observation: Observation) -> Observation:
    return {key: array[0].copy() for key, array in observation.items()}


def _first_info(info: Mapping[str, Any]) -> dict[str, Any]:
    first = {
        key: without_pads(shown, 0) if key == "feedback" else shown[0]
        for key, shown in info.items()
        if not key.startswith("_")
    }
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in first.items()}
