"""Every planted defect is caught by its own check, and the message says what to do."""

import re
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import registry
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

import gents_gym
from gents_gym import BanditVectorEnv, InputError
from gents_gym.likelihoods import GAUSSIAN
from gents_gym.randomness import stream
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.testing import ContractError, check_vector_env, watched
from gents_gym.testing.distribution import _check_rewards
from gents_gym.types import ActionRows

SMALL = Synthetic(n_actions=4, horizon=6, context_dim=3)


class Honest(BanditVectorEnv):
    def __init__(self, num_envs, tasks=SMALL, mode="SameStep"):
        super().__init__(tasks, num_envs, autoreset_mode=mode)


class Shows(Honest):
    """Shows other contexts than it should."""

    def _observe(self):
        return {**super()._observe(), "context": self.show(super()._observe()["context"])}


class Wider(Shows):
    def show(self, context):
        return np.hstack([context, context])


class Doubles(Shows):
    def show(self, context):
        return context.astype(np.float64)


class NotANumber(Shows):
    def show(self, context):
        return np.where(context > 1, np.float32(np.nan), context)


class OutOfBounds(Shows):
    def show(self, context):
        return context * np.float32(1e7)


class OneRowOnly(Shows):
    def show(self, context):
        return context[:1]


class ShowsTheNextContext(Shows):
    def show(self, context):
        return self.tasks.contexts[self._slots, np.minimum(self._time + 1, 5)] * ~self._over[:, None]


class LastContextStays(Shows):
    def show(self, context):
        return self.tasks.contexts[self._slots, np.minimum(self._time, 5)]


class ReusesItsBuffer(Shows):
    buffer = None

    def show(self, context):
        self.buffer = np.zeros_like(context) if self.buffer is None else self.buffer
        self.buffer[:] = context
        return self.buffer


class HandsOutItsState(Honest):
    def _begin(self, slots, given=None):
        info = super()._begin(slots, given)
        self.features = self._played.action_features.copy()
        return info

    def _observe(self):
        return {**super()._observe(), "action_features": self.features}


class FeaturesFade(Honest):
    def _observe(self):
        faded = self.tasks.action_features / (1 + self._time[:, None, None])
        return {**super()._observe(), "action_features": faded.astype(np.float32)}


class Answers(Honest):
    """Changes the answer of step."""

    def step(self, actions):
        return self.change(*super().step(actions))


class FourThings(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, reward, terminated, info


class WholeRewards(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, reward.astype(int), terminated, truncated, info


class InfiniteRewards(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, np.where(reward > 0, np.inf, reward), terminated, truncated, info


class OtherRewards(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, 1 - reward, terminated, truncated, info


class NumbersAsFlags(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, reward, terminated.astype(int), truncated, info


class Truncates(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, reward, truncated, terminated, info


class EndsLate(Honest):
    """Says so one decision after the horizon of its tasks."""

    @property
    def tasks(self):
        return Synthetic(4, 5, 3).sample(self.np_random_seed, range(self.num_envs))


class NeverEnds(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        return observation, reward, truncated, truncated, info


class NoFinalObservation(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        info.pop("final_obs", None)
        return observation, reward, terminated, truncated, info


class OddFinalObservation(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        for last in info.get("final_obs", ()):
            last["action_features"] = last["action_features"][:1]
        return observation, reward, terminated, truncated, info


class NoOutcome(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        info.get("final_info", {}).pop("outcome", None)
        return observation, reward, terminated, truncated, {k: v for k, v in info.items() if k != "outcome"}


class LeaksTheBestAction(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        best = self.tasks.means[self._slots, np.maximum(self._time - 1, 0)].argmax(axis=1)
        return observation, reward, terminated, truncated, {**info, "best": best}


class LeaksLate(Answers):
    def change(self, observation, reward, terminated, truncated, info):
        best = self.tasks.means[:, 4].argmax(axis=1) * (self._time == 4)
        return observation, reward, terminated, truncated, {**info, "best": best}


class LeaksTheTable(Honest):
    def reset(self, **how):
        observation, info = super().reset(**how)
        return observation, {**info, "table": self.tasks.outcomes}


class Fails(Answers):
    def change(self, *answer):
        raise IndexError("slot 7")


class SaysTheWrongMode(Honest):
    """Resets in the same step, whatever it says."""

    def __init__(self, num_envs, mode):
        super().__init__(num_envs)
        self.metadata = {**self.metadata, "autoreset_mode": mode}


class SaysNoMode(Honest):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.metadata = {}


class SaysTheWrongNumber(Honest):
    def __init__(self, num_envs):
        super().__init__(num_envs + 1)


class Space(Honest):
    """Has other spaces than it should."""

    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.single_observation_space = spaces.Dict({**self.single_observation_space.spaces, **self.other()})
        self.observation_space = batch_space(self.single_observation_space, num_envs)


class NoBounds(Space):
    def other(self):
        return {"context": spaces.Box(-np.inf, np.inf, (3,), np.float32)}


class OtherFeatures(Space):
    def other(self):
        return {"action_features": spaces.Box(-1, 1, (5, 2), np.float32)}


class NoFeatures(Honest):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.single_observation_space = self.single_observation_space["context"]


class CountsFromOne(Honest):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.single_action_space = spaces.Discrete(4, start=1)


class SpaceOfOneSlot(Honest):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.observation_space = self.single_observation_space


class IgnoresTheSeed(Honest):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else 0, options=options)


class NotSeeded(Honest):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=int(np.random.default_rng().integers(2**32)), options=options)


class SeededOnce(Honest):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed if self._played is None else None, options=options)


class OneTaskForEver(Honest):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed if seed is not None else self.np_random_seed, options=options)


class ReseedsItself(Honest):
    """Makes its generator again in every reset, also without a seed."""

    def reset(self, *, seed=None, options=None):
        seed = int(np.random.default_rng(seed).integers(2**32)) if seed is None else seed
        return super().reset(seed=seed, options=options)


class GoesOnWithItsTasks(Honest):
    """Slots that end begin the same tasks again."""

    def _autoreset(self, info):
        tasks, begin = self.tasks, self._begin
        self._begin = lambda slots: begin(slots, tasks[slots])
        try:
            return super()._autoreset(info)
        finally:
            self._begin = begin


class WritesActions(Honest):
    def step(self, actions):
        answer = super().step(actions)
        actions[:] = 0
        return answer


class SeedByNumberOfSlots(Honest):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else seed + self.num_envs, options=options)


class IgnoresTheOrder(Honest):
    def reset(self, *, seed=None, options=None):
        numbers = isinstance((options or {}).get("task"), list)
        return super().reset(seed=seed, options=None if numbers else options)


class GlobalGenerator(Honest):
    def step(self, actions):
        np.random.random()  # noqa: NPY002
        return super().step(actions)


class ActionsMoveContexts(Honest):
    def step(self, actions):
        observation, *others = super().step(actions)
        return {**observation, "context": observation["context"] + 0.1 * actions[:, None].astype(np.float32)}, *others


class RewardsForPatience(Honest):
    """An action played at the decision before earns nothing."""

    def step(self, actions):
        last = self._actions[self._slots, self._time - 1]
        observation, reward, *flags, info = super().step(actions)
        repeated = (actions == last) & (self._time > 1)
        return observation, np.where(repeated, 0, reward), *flags, {**info, "outcome": np.where(repeated, 0, reward)}


class Tampers(Honest):
    """What the oracle sees is not what was played."""

    def step(self, actions):
        answer = super().step(actions)
        self._played = replace(self._played, means=1 - self._played.means)
        return answer


class ShowsOtherTasks(Honest):
    @property
    def tasks(self):
        return SMALL.sample(99, range(self.num_envs))


ENVS = {
    Wider: "observation of reset is wrong",
    Doubles: "seen: context: float64(3, 3)",
    NotANumber: "observation of reset is wrong",
    OutOfBounds: "observation of reset is wrong",
    OneRowOnly: "seen: context: float32(1, 3)",
    NoBounds: "the space of 'context' is wrong",
    OtherFeatures: "the space of 'action_features' is wrong",
    NoFeatures: "single_observation_space is wrong",
    CountsFromOne: "single_action_space is wrong",
    SpaceOfOneSlot: "observation_space is wrong",
    SaysTheWrongNumber: "num_envs is wrong",
    SaysNoMode: "metadata['autoreset_mode'] is wrong",
    FourThings: "expected: a tuple of 5",
    WholeRewards: "reward of step is wrong",
    InfiniteRewards: "expected: finite rewards",
    NumbersAsFlags: "terminated of step is wrong",
    NeverEnds: "expected: an end within 40 decisions",
    Fails: "seen: IndexError: slot 7",
    ReusesItsBuffer: "what was handed out before of step is wrong",
    FeaturesFade: "action features must stay",
    HandsOutItsState: "returns its own state",
    GlobalGenerator: "uses the global generator of numpy.random",
    NotSeeded: "NotSeeded is not reproducible",
    SeededOnce: "in one that has played before",
    IgnoresTheSeed: "ignores the seed",
    OneTaskForEver: "plays the same task forever",
    ReseedsItself: "reset without a seed after one with it, in two environments",
    GoesOnWithItsTasks: "plays the same task forever",
    WritesActions: "its argument of step is wrong",
    SeedByNumberOfSlots: "a task depends on the other tasks",
    ActionsMoveContexts: "playing changes the task",
    RewardsForPatience: "playing changes the task",
    OddFinalObservation: "expected: info['final_obs'] with the last observation",
    NoFinalObservation: "expected: info['final_obs'] with the last observation",
    Truncates: "expected: terminated, not truncated",
    EndsLate: "expected: an end after 5 decisions, the horizon",
    LastContextStays: "expected: a last context of zeros",
    ShowsTheNextContext: "the context is wrong",
    OtherRewards: "the reward is wrong",
    NoOutcome: "info['outcome'] is wrong",
    Tampers: "unwrapped.tasks is wrong",
    ShowsOtherTasks: "the context is wrong",
    IgnoresTheOrder: "options={'task': [2, 1, 0]}",
    LeaksTheBestAction: "show nothing of the table",
    LeaksLate: "show nothing of the table",
    LeaksTheTable: "show nothing of the table",
}


class Draws(Synthetic):
    """Draws other tasks than it should."""

    def sample(self, seed, indices, split="test"):
        return self.change(super().sample(seed, indices, split), seed, indices, split)


class Centred(Draws):
    def change(self, tasks, seed, indices, split):
        return replace(tasks, contexts=tasks.contexts - tasks.contexts.mean(axis=0))


class SplitsOverlap(Draws):
    def change(self, tasks, seed, indices, split):
        return Synthetic.sample(self, seed, indices, "test")


class OneTask(Draws):
    def change(self, tasks, seed, indices, split):
        return Synthetic.sample(self, seed, [seed for _ in indices], split)


class EveryTaskTwice(Draws):
    def change(self, tasks, seed, indices, split):
        return Synthetic.sample(self, seed, [index // 2 for index in indices], split)


class ReversedMeans(Draws):
    def change(self, tasks, seed, indices, split):
        return replace(tasks, means=1 - tasks.means)


class FlatMeans(Draws):
    def change(self, tasks, seed, indices, split):
        return replace(tasks, means=tasks.means * 0.5 + 0.5 * 0.5)


def infinite(outcome):
    return np.where(outcome > 0, np.inf, outcome)


class InfinitelyGood(Draws):
    def change(self, tasks, seed, indices, split):
        return replace(tasks, reward_fn=infinite)


class NoOracle(Draws):
    """Its outcomes are not 0 or 1, which a logistic policy cannot be fitted to."""

    def change(self, tasks, seed, indices, split):
        means = tasks.means / 2
        return replace(tasks, outcomes=tasks.outcomes / 2, means=means, likelihood=GAUSSIAN, oracle="logistic")


class OtherLikelihood(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        return replace(super().sample_actions(seed, indices, n_rows, split), likelihood=GAUSSIAN)


class OtherHistory(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        rows = super().sample_actions(seed, indices, n_rows, split)
        return ActionRows(rows.action_features, rows.contexts[..., :2], rows.outcomes)


class NoHistory(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        raise NotImplementedError("there is none")


class EmptyHistory(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        return None


class HistoryByTheBatch(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        rows = super().sample_actions(seed, range(len(indices)), n_rows, split)
        return ActionRows(rows.action_features, rows.contexts, rows.outcomes)


class GlobalHistory(Synthetic):
    def sample_actions(self, seed, indices, n_rows, split="train"):
        np.random.random()  # noqa: NPY002
        return super().sample_actions(seed, indices, n_rows, split)


DISTRIBUTIONS = {
    Centred: "a task depends on the other tasks",
    SplitsOverlap: "sample drew from the split",
    OneTask: "plays the same task forever",
    EveryTaskTwice: "the same features, contexts and outcomes twice",
    ReversedMeans: "where means are high they differ by",
    FlatMeans: "they differ by",
    InfinitelyGood: "expected: finite rewards",
    OtherLikelihood: "expected: the tasks' likelihood, bernoulli",
    NoOracle: "regret cannot be measured",
    OtherHistory: "expected: the sizes of the tasks",
    NoHistory: "seen: NotImplementedError: there is none",
    EmptyHistory: "expected: ActionRows",
    HistoryByTheBatch: "the same entries of sample_actions were drawn in another order",
    GlobalHistory: "uses the global generator of numpy.random",
}


def explained(env, message):
    with pytest.raises(ContractError, match=re.escape(message)) as caught:
        check_vector_env(env)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["what was done", "expected", "seen", "what to do"]


@pytest.mark.parametrize("defect", ENVS, ids=lambda defect: defect.__name__)
def test_a_planted_defect_is_explained(defect, monkeypatch):
    monkeypatch.setattr(watched, "LONGEST", 40)
    explained(defect, ENVS[defect])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_a_mode_that_is_not_kept_is_explained(mode):
    explained(lambda num_envs: SaysTheWrongMode(num_envs, mode), "no info['final_obs']")


@pytest.mark.parametrize("defect", DISTRIBUTIONS, ids=lambda defect: defect.__name__)
def test_a_defect_of_the_tasks_is_explained(defect):
    explained(lambda num_envs: Honest(num_envs, defect(4, 6, 3)), DISTRIBUTIONS[defect])


def test_a_spec_that_cannot_be_written_is_explained():
    gym.register("test/Unwritten-v0", vector_entry_point=lambda num_envs: Honest(num_envs))
    try:
        explained("test/Unwritten-v0", "its spec cannot be serialised")
    finally:
        del registry["test/Unwritten-v0"]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_honest_environments_pass(mode):
    assert check_vector_env(lambda num_envs: Honest(num_envs, mode=mode)) is None

    def foreign(num_envs):
        return SyncVectorEnv([lambda: gym.make("gents_gym/Synthetic-v0", horizon=5)] * num_envs, autoreset_mode=mode)

    assert check_vector_env(foreign) is None


class ContextFree(Draws):
    def change(self, tasks, seed, indices, split):
        return replace(tasks, contexts=np.zeros_like(tasks.contexts))


def test_contexts_may_be_zeros():
    for mode in AutoresetMode:
        assert check_vector_env(lambda num_envs, mode=mode: Honest(num_envs, ContextFree(4, 6, 3), mode)) is None


@dataclass
class Coins:
    """Coins without contexts or features, whose table reveals little; or coins with one small probability."""

    horizon: int
    chance: float | None = None

    def draw(self, rng, n_actions, n_rows):
        means = np.tile(rng.random(n_actions) if self.chance is None else self.chance, (n_rows, 1)) + np.zeros(
            n_actions
        )
        return np.zeros((n_actions, 1)), np.zeros((n_rows, 1)), rng.random(means.shape) < means, means

    def sample(self, seed, indices, split="test"):
        drawn = [self.draw(stream(seed, "task", i, split), 2, self.horizon) for i in indices]
        return gents_gym.Tasks(*(np.stack(part) for part in zip(*drawn, strict=True)))

    def sample_actions(self, seed, indices, n_rows, split="train"):
        drawn = [self.draw(stream(seed, "actions", i, split), 1, n_rows) for i in indices]
        features, contexts, outcomes, _ = (np.stack(part) for part in zip(*drawn, strict=True))
        return ActionRows(features[:, 0], contexts, outcomes[..., 0])


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_what_is_the_same_by_accident_is_no_defect(horizon):
    assert check_vector_env(lambda num_envs: Honest(num_envs, Coins(horizon))) is None


class Dollars(Synthetic):
    """Amounts between -20 and 100, and their likelihood left to be inferred."""

    def sample(self, seed, indices, split="test"):
        tasks = super().sample(seed, indices, split)
        amounts = {"outcomes": 120 * tasks.outcomes - 20, "means": 120 * tasks.means - 20}
        return replace(tasks, **amounts, likelihood=None, oracle=None, truth=None)

    def sample_actions(self, seed, indices, n_rows, split="train"):
        rows = super().sample_actions(seed, indices, n_rows, split)
        return replace(rows, outcomes=120 * rows.outcomes - 20, likelihood=None)


def test_any_finite_reward_is_none_of_the_defects():
    assert check_vector_env(lambda num_envs: Honest(num_envs, Dollars(4, 6, 3))) is None


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
def test_reversed_means_of_other_outcomes_are_found(outcomes):
    tasks = Synthetic(4, 6, 3, outcomes=outcomes).sample(0, range(64))
    _check_rewards("means", tasks)
    with pytest.raises(ContractError, match="where means are high they differ"):
        _check_rewards("means", replace(tasks, means=2 * tasks.means.mean() - tasks.means))


@pytest.mark.parametrize("chance", [0.001, 0.999])
def test_rare_rewards_have_the_means_as_expectations(chance):
    _check_rewards("coins", Coins(4, chance).sample(0, range(64)))
    with pytest.raises(ContractError, match="on average they differ"):
        _check_rewards("coins", replace(Coins(4, chance).sample(0, range(64)), means=np.full((64, 4, 2), 0.5)))


def test_an_environment_that_cannot_be_made_is_explained():
    explained(lambda: Honest(3), "seen: TypeError")


def test_wrapped_environments_pass():
    for wrap in (gents_gym.VectorPreviousStep, gents_gym.VectorRecordRegret):
        assert check_vector_env(lambda num_envs, wrap=wrap: wrap(Honest(num_envs))) is None


def test_an_environment_is_made_anew_from_its_spec():
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=5)
    assert check_vector_env(envs) is None
    with pytest.raises(InputError, match="pass a function that makes it"):
        check_vector_env(Honest(2))
    with pytest.raises(InputError, match=r"env must be an id, a vector environment or a function .* got 3"):
        check_vector_env(3)
    with pytest.raises(InputError, match="env 'gents_gym/Sinthetic-v0' cannot be made"):
        check_vector_env("gents_gym/Sinthetic-v0")


class LongerInLargeBatches(Draws):
    def change(self, tasks, seed, indices, split):
        longer = Synthetic(4, 7, 3).sample(seed, indices, split)
        return longer if len(indices) > 5 else tasks


def test_sizes_that_change_are_explained():
    explained(lambda num_envs: Honest(num_envs, LongerInLargeBatches(4, 6, 3)), "sample were drawn among more")
