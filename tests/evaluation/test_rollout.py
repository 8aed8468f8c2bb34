import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gents_gym import InputError, Rollout, make_agent, rollout
from gents_gym.agents.per_task import PerTask
from gents_gym.agents.random import Random
from gents_gym.evaluation.regret import oracle_actions, regret
from gents_gym.evaluation.rollout import join, summarize
from gents_gym.policies.logistic import Logistic
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic

ID = "gents_gym/Synthetic-v0"


def make(num_envs=4, horizon=30, **config):
    return gym.make_vec(ID, num_envs=num_envs, horizon=horizon, autoreset_mode="Disabled", **config)


class Uneven(gym.Env):
    """A foreign environment of the same observation form whose episodes differ in length."""

    observation_space = spaces.Dict(context=spaces.Box(-9, 9, (3,)), action_features=spaces.Box(-9, 9, (2, 1)))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 2 + seed % 3 if seed is not None else 100
        return self._observation(), {}

    def _observation(self):
        return {"context": np.full(3, self.left, np.float32), "action_features": np.zeros((2, 1), np.float32)}

    def step(self, action):
        self.left -= 1
        return self._observation(), float(action), self.left == 0, False, {}


def test_rewards_and_actions_are_what_was_played():
    tasks = Synthetic(horizon=30).sample(5, range(4))
    record = rollout(make(), make_agent("linucb"), seed=5)
    assert record.actions.shape == record.rewards.shape == (4, 30)
    assert np.array_equal(record.rewards, np.take_along_axis(tasks.outcomes, record.actions[..., None], 2)[..., 0])
    assert record.indices == (0, 1, 2, 3)
    assert not record.privileged


def test_the_oracle_has_regret_zero_and_is_marked():
    record = rollout(make(20, 100), make_agent("oracle"))
    assert record.privileged
    assert (record.regret["oracle"] == 0).all()
    assert (record.regret["expected"] == 0).all()
    assert record.regret["best"].sum() > 0


def test_agents_meet_the_same_tasks():
    a, b = (rollout(make(), make_agent(name)) for name in ("linucb", "random"))
    sums = [record.rewards + record.regret["oracle"] for record in (a, b)]  # what the oracle earns
    assert np.array_equal(*sums)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_the_autoreset_mode_does_not_show(mode):
    envs = gym.make_vec(ID, num_envs=4, horizon=30, autoreset_mode=mode)
    record, expected = rollout(envs, make_agent("lints")), rollout(make(), make_agent("lints"))
    assert np.array_equal(record.actions, expected.actions)
    assert all(np.array_equal(record.regret[name], expected.regret[name]) for name in expected.regret)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_foreign_vector_environment_gives_rewards_alone(mode):
    """Gymnasium's SyncVectorEnv of our own single environment: slot i is seeded with seed + i."""
    theirs = SyncVectorEnv([lambda: gym.make(ID, horizon=30)] * 3, autoreset_mode=mode)
    record = rollout(theirs, make_agent("linucb"), seed=7)
    assert record.regret == {}
    for i in range(3):
        ours = rollout(make(1), make_agent("linucb"), seed=7 + i)
        assert np.array_equal(record.actions[i], ours.actions[0])
        assert np.array_equal(record.rewards[i], ours.rewards[0])
    later = rollout(theirs, make_agent("linucb"), seed=5, indices=[2, 3, 4])
    assert np.array_equal(later.rewards, record.rewards)


class Drift(Uneven):
    """Forty steps of contexts that change, with an outcome that is not the reward."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 40
        return self._observation(), {}

    def _observation(self):
        context = self.np_random.normal(size=3).clip(-9, 9).astype(np.float32)
        return {"context": context, "action_features": np.zeros((2, 1), np.float32)}

    def step(self, action):
        observation, _, over, _, _ = super().step(action)
        outcome = float(self.np_random.random() < 0.3 + 0.4 * action)
        return observation, outcome / 2, over, False, {"outcome": outcome}


def test_an_environment_that_reuses_its_buffers_is_read_in_time():
    actions = [
        rollout(SyncVectorEnv([Drift] * 3, copy=copy), make_agent("linucb"), seed=3).actions for copy in (True, False)
    ]
    assert np.array_equal(*actions)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_agents_observe_outcomes_and_not_rewards(mode):
    class Recorder:
        def reset(self, info, rngs):
            self.seen = []

        def act(self, context):
            return np.zeros(2, int)

        def observe(self, context, action, outcome):
            self.seen.append(outcome.copy())

    agent = Recorder()
    record = rollout(SyncVectorEnv([Drift] * 2, autoreset_mode=mode), agent)
    assert np.array_equal(np.stack(agent.seen, axis=1), 2 * record.rewards)


def test_agents_are_told_the_actions_texts_and_nothing_hidden():
    class Reader:
        def reset(self, info, rngs):
            self.info = info

        def act(self, context):
            return np.zeros(2, int)

        def observe(self, context, action, outcome):
            pass

    envs, agent = gym.make_vec("gents_gym/News-v0", num_envs=2, horizon=3), Reader()
    rollout(envs, agent, oracle="logistic", indices=[4, 7])
    tasks = News(horizon=3).sample(0, [4, 7])
    assert agent.info.texts == tasks.texts.tolist()
    assert agent.info[1].texts == [tasks.texts[1].tolist()]
    assert not hasattr(agent.info, "hidden_features")
    rollout(gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3), agent)
    assert agent.info.texts is None


def test_uneven_episodes_that_nobody_resets_are_refused():
    envs = SyncVectorEnv([Uneven] * 3, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(InputError, match="episodes must end together"):
        rollout(envs, make_agent("random"), seed=0)


def test_episodes_of_different_lengths_end_each_at_its_own():
    envs = SyncVectorEnv([Uneven] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)
    record = rollout(envs, make_agent("random"), seed=0)
    assert np.isnan(record.rewards).tolist() == [
        [False, False, True, True],
        [False, False, False, True],
        [False, False, False, False],
    ]
    assert (record.actions[0, 2:] == -1).all()
    assert np.array_equal(record.cumulative("reward")[0, 1:], np.repeat(record.rewards[0, :2].sum(), 3))
    assert rollout(envs, make_agent("random"), seed=0, max_steps=2).rewards.shape == (3, 2)


def test_blocks_join_to_the_whole():
    whole = rollout(make(6), make_agent("lints"))
    parts = [rollout(make(n), make_agent("lints"), indices=range(i, i + n)) for i, n in ((0, 4), (4, 2))]
    joined = join(parts)
    assert np.array_equal(joined.actions, whole.actions)
    assert joined.indices == whole.indices
    assert joined.summary() == whole.summary()
    short = Rollout(np.zeros((1, 2), int), np.ones((1, 2)))
    uneven = join([short, Rollout(np.zeros((1, 3), int), np.ones((1, 3)))])
    assert uneven.cumulative("reward")[:, -1].tolist() == [2, 3]
    assert uneven.actions[0].tolist() == [0, 0, -1]


def test_statistics_are_over_tasks():
    record = rollout(make(8), make_agent("random"))
    totals = record.regret["expected"].sum(axis=1)
    mean, error = record.curve("expected")
    assert mean.shape == (30,)
    assert mean[-1] == pytest.approx(totals.mean())
    assert error[-1] == pytest.approx(totals.std(ddof=1) / np.sqrt(8))
    found = record.summary()["expected"]
    assert found["mean"] == pytest.approx(totals.mean())
    assert found["median"] == pytest.approx(np.median(totals))
    assert summarize(np.arange(101.0)) == pytest.approx(
        {
            "mean": 50,
            "se": np.arange(101).std(ddof=1) / np.sqrt(101),
            "median": 50,
            "q90": 90,
            "q99": 99,
            "q10": 10,
            "q01": 1,
        }
    )
    assert np.isnan(summarize(np.array([3.0]))["se"])


def test_another_oracle_and_a_policy_class_object():
    by_id = rollout(make(), make_agent("random"), oracle="logistic(C=0.001)")
    own = rollout(make(), make_agent("random"))
    assert not np.array_equal(by_id.regret["oracle"], own.regret["oracle"])

    class First:
        def fit(self, contexts, outcomes, warm_start=None):
            self.n_actions = outcomes.shape[2]
            return self

        def scores(self, context):
            return np.broadcast_to(-np.arange(self.n_actions), (*context.shape[:-1], self.n_actions))

    record = rollout(make(), make_agent("random"), oracle=First())
    tasks = Synthetic(horizon=30).sample(0, range(4))
    assert np.array_equal(record.regret["oracle"], tasks.outcomes[:, :, 0] - record.rewards)


def test_an_oracle_is_fitted_once_for_the_agents_that_meet_the_same_tasks(monkeypatch):
    fits = []
    fit = Logistic.fit
    monkeypatch.setattr(Logistic, "fit", lambda self, *tables, **more: fits.append(1) or fit(self, *tables, **more))
    records = [rollout(make(), agent, seed=77) for agent in ("random", "linucb")]
    assert len(fits) == 1
    tasks = Synthetic(horizon=30).sample(77, range(4))
    for record in records:
        expected = regret(tasks, record.actions, oracle_actions(tasks))
        assert np.array_equal(record.regret["oracle"], expected["oracle"])
    fits.clear()
    rollout(make(), "random", seed=78)
    rollout(make(), "random", seed=77, oracle="logistic(C=0.5)")
    assert len(fits) == 2


def test_a_policy_class_by_name_needs_fit_alone(tmp_path, monkeypatch):
    (tmp_path / "their_policy.py").write_text(
        "import numpy as np\n"
        "class Last:\n"
        "    def fit(self, contexts, outcomes, warm_start=None):\n"
        "        self.n = outcomes.shape[2]\n"
        "        return self\n"
        "    def scores(self, context):\n"
        "        return np.broadcast_to(np.arange(self.n), (*context.shape[:-1], self.n))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    record = rollout(make(), "random", oracle="their_policy:Last")
    tasks = Synthetic(horizon=30).sample(0, range(4))
    assert np.array_equal(record.regret["oracle"], tasks.outcomes[:, :, -1] - record.rewards)


def test_the_oracle_agent_maximises_rewards():
    envs = make(reward_fn="numpy:logical_not")
    record = rollout(envs, "oracle")
    assert (record.regret["oracle"] == 0).all()
    assert record.rewards.mean() > rollout(envs, "random").rewards.mean() + 0.2


def test_progress_is_told():
    told = []
    rollout(make(), make_agent("random"), on_step=lambda: told.append(1))
    assert len(told) == 30


def test_bad_input():
    with pytest.raises(InputError, match="indices must name 4 tasks, one for each slot, got 2"):
        rollout(make(), make_agent("random"), indices=[0, 1])
    with pytest.raises(InputError, match="indices must be at least 0, got -1"):
        rollout(make(), make_agent("random"), indices=[0, 1, 2, -1])
    with pytest.raises(InputError, match="max_steps must be at least 1, got 0"):
        rollout(make(), make_agent("random"), max_steps=0)
    with pytest.raises(InputError, match="seed must be at least 0, got -3"):
        rollout(make(), make_agent("random"), seed=-3)
    with pytest.raises(InputError, match="unknown policy class 'logistik'; did you mean 'logistic'"):
        rollout(make(), make_agent("random"), oracle="logistik")
    with pytest.raises(InputError, match="envs must observe 'context' and 'action_features'"):
        rollout(gym.make_vec("CartPole-v1", num_envs=2), make_agent("random"))
    for oracle, message in ((3, "with fit"), ("os:getcwd", "cannot import policy class 'os:getcwd'")):
        with pytest.raises(InputError, match=message):
            rollout(make(), make_agent("random"), oracle=oracle)
    with pytest.raises(InputError, match="envs must be a vector environment"):
        rollout(gym.make(ID), make_agent("random"))
    with pytest.raises(InputError, match="agent must have reset, act and observe"):
        rollout(make(), object())
    with pytest.raises(InputError, match=r"agent cannot be made: TypeError: .* missing 1 required .* 'agent'"):
        rollout(make(), PerTask)
    with pytest.raises(InputError, match="unknown measure 'orcale'; did you mean 'oracle'"):
        rollout(make(), "random").cumulative("orcale")
    theirs = SyncVectorEnv([lambda: gym.make(ID, horizon=5)])
    with pytest.raises(InputError, match=r"agent Oracle.* needs the tasks' tables, and .* has none"):
        rollout(theirs, make_agent("oracle"))


def test_an_agents_wild_action_is_named():
    class Wild:
        def reset(self, info, rngs):
            self.n_tasks = len(info)

        def act(self, context):
            return np.full(self.n_tasks, 10)

        def observe(self, context, action, outcome):
            pass

    with pytest.raises(InputError, match=r"action must lie in \[0, 10\), got 10"):
        rollout(make(), Wild())


def test_regret_is_where_a_prototype_found_it():
    """100 tasks, T=500: LinUCB 73.9 ± 1.8 and LinTS 105 ± 2.1 oracle regret, another sampler and other code."""
    for name, expected, error in (("linucb", 73.9, 1.8), ("lints", 105.0, 2.1)):
        found = rollout(make(100, 500), make_agent(name)).summary()["oracle"]
        assert abs(found["mean"] - expected) < 3 * np.hypot(found["se"], error)


def test_what_was_played_is_recorded_whatever_the_agent_does_with_its_array_later():
    class Reusing:
        def reset(self, info, rngs):
            self.actions = np.zeros(len(info), np.int64)

        def act(self, context):
            return self.actions

        def observe(self, context, action, outcome):
            self.actions[:] = 1 - self.actions

    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=5, autoreset_mode="Disabled")
    record = rollout(envs, Reusing())
    assert record.actions.tolist() == [[0, 1, 0, 1, 0]] * 2
    played = np.take_along_axis(envs.unwrapped.tasks.outcomes, record.actions[..., None], 2)[..., 0]
    np.testing.assert_array_equal(record.rewards, played)


class Curious(Random):
    """Keeps what it receives."""

    def reset(self, info, rngs):
        self.info = info
        super().reset(info, rngs)


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian", "categorical"])
def test_agents_are_told_the_likelihood_and_the_truth(outcomes):
    agent, envs = Curious(), gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3, outcomes=outcomes)
    rollout(envs, agent)
    assert agent.info.likelihood == envs.unwrapped.distribution.likelihood
    assert agent.info.truth is envs.unwrapped.distribution.truth


def test_no_agent_is_told_a_truth_about_hidden_features():
    agent = Curious()
    rollout(gym.make_vec("gents_gym/News-v0", num_envs=2, horizon=3), agent, oracle="logistic")
    assert agent.info.truth is None


def test_an_oracle_for_other_outcomes_is_refused_before_anything_is_played():
    agent, envs = Curious(), gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=3, outcomes="gaussian")
    with pytest.raises(InputError, match="oracle must be a policy class for gaussian outcomes, such as least-squares"):
        rollout(envs, agent, oracle="logistic")
    assert not hasattr(agent, "info")


@pytest.mark.parametrize("spec", ["epsilon-greedy(epsilon=0.3)", "ts-gen(m=4, votes=4)"])
def test_propensities_are_recorded_and_change_nothing(spec):
    plain, asked = (rollout(make(horizon=12), spec, propensities=wanted) for wanted in (False, True))
    assert plain.propensities is None
    assert asked.propensities.shape == (4, 12)
    assert np.array_equal(plain.actions, asked.actions)
    shares = {0.03, 0.73} if "epsilon" in spec else {0.25, 0.5, 0.75, 1.0}
    assert {round(p, 9) for p in asked.propensities.flat} <= shares
    both = join([asked, asked])
    assert np.array_equal(both.propensities[4:], asked.propensities)
    assert join([asked, plain]).propensities is None


def test_propensities_end_with_the_task():
    envs = SyncVectorEnv([Uneven] * 3)
    record = rollout(envs, "random", propensities=True)
    assert np.array_equal(np.isnan(record.propensities), record.actions < 0)
    assert np.nanmax(record.propensities) == np.nanmin(record.propensities) == 0.5
    longer = join([record, rollout(SyncVectorEnv([Uneven] * 3), "random", seed=1, propensities=True, max_steps=1)])
    assert np.isnan(longer.propensities[3:, 1:]).all()


class Wrong(Random):
    answer = None

    def probabilities(self, context):
        return np.array(self.answer)


def test_what_is_no_probability_is_refused():
    with pytest.raises(InputError, match=r"propensities need agents with probabilities\(context\)"):
        rollout(make(), make_agent("callable", function=lambda observation: 0), propensities=True)
    for answer, message in (
        ([[0.5, 0.6]] * 2, r"must be at least 0 and sum to 1 over actions, got \[0.5 0.6\]"),
        ([[1.5, -0.5]] * 2, "must be at least 0 and sum to 1"),
        ([[np.nan, 1]] * 2, "must be finite"),
        ([0.5, 0.5], r"must have shape \(B, A\)=\(2, 2\), got \(2,\)"),
        (np.eye(2), "above 0 for the action that is played, got 0 for action"),
    ):
        agent = Wrong()
        agent.answer = answer
        with pytest.raises(InputError, match=message):
            rollout(make(2, n_actions=2), agent, propensities=True)
    with pytest.raises(InputError, match="propensities must be True or False, got 'yes'"):
        rollout(make(), "random", propensities="yes")


class Diary(Random):
    """Plays at random and records what it receives."""

    def reset(self, info, rngs):
        super().reset(info, rngs)
        self.late, self.told = info.late, []

    def observe_late(self, feedback):
        self.told += [(len(self.told), *cell) for cell in zip(feedback.task, feedback.decision, strict=True)]


class Plain:
    """An agent with only the three basic methods, which must not be reset if outcomes are late."""

    resets = 0

    def reset(self, info, rngs):
        self.resets += 1

    def act(self, context):
        return np.zeros(len(context), int)

    def observe(self, context, action, outcome):
        pass


def test_late_outcomes_are_told_by_their_decisions_and_regret_is_by_decision():
    delays = {"delay": {"geometric": 0.2, "lost": 0.2}}
    agent, in_time = Diary(), rollout(make(), "random")
    late = rollout(make(**delays), agent)
    assert agent.late
    assert np.array_equal(late.actions, in_time.actions)  # it draws the same numbers
    assert np.array_equal(late.regret["best"], in_time.regret["best"])
    pairs = [cell[1:] for cell in agent.told]
    assert len(set(pairs)) == len(pairs)
    kept = np.zeros_like(in_time.rewards)
    kept[tuple(zip(*pairs, strict=True))] = 1
    assert 0.6 < kept.mean() < 0.95
    assert np.array_equal(late.rewards.sum(axis=1), (kept * in_time.rewards).sum(axis=1))
    other = Diary()
    rollout(make(**delays), other, indices=[2, 0, 1, 3])
    moved = {(cell[1], cell[2]) for cell in other.told}
    assert {([2, 0, 1, 3].index(i), t) for i, t in pairs} == moved  # delays belong to tasks, not to slots


def test_no_delay_plays_the_same_bits():
    for spec in ("linucb", "ts-gen(m=3)"):
        plain, zero = rollout(make(), spec), rollout(make(delay=0, batch=1), spec)
        assert np.array_equal(plain.actions, zero.actions)
        assert np.array_equal(plain.rewards, zero.rewards)


def test_plain_agents_are_refused_where_outcomes_are_late():
    agent = Plain()
    assert rollout(make(), agent).actions.shape == (4, 30)
    with pytest.raises(InputError, match=r"agent must have observe_late\(feedback\) if outcomes arrive late, got <"):
        rollout(make(delay=1), agent)
    assert agent.resets == 1
    with pytest.raises(InputError, match="agent's objects must have observe_late"):
        rollout(make(delay=1), PerTask(Learner))


class Learner:
    def act(self, observation):
        return 0

    def observe(self, observation, action, reward):
        pass


class Undeclared(Uneven):
    def step(self, action):
        *answer, _ = super().step(action)
        return *answer, {"feedback": {"decision": [], "action": [], "outcome": []}}


def test_late_outcomes_must_be_declared():
    with pytest.raises(InputError, match=r"envs with info\['feedback'\] must have metadata\['late_outcomes'\]=True"):
        rollout(SyncVectorEnv([Undeclared]), "random")


POOL = {"turnover": {"live": 2, "rate": 0.2}, "n_actions": 5}


class Careless(Plain):
    """Takes a mask, and does not look at it."""

    def act(self, context, available):
        assert available.dtype == bool
        return np.zeros(len(context), int)


def test_agents_that_cannot_choose_among_some_are_refused():
    agent, rule = Plain(), r"agent must have act\(context, available\) if only some actions are available, got <"
    with pytest.raises(InputError, match=rule):
        rollout(make(**POOL), agent)
    assert agent.resets == 0
    with pytest.raises(InputError, match=r"action must be available \(\d, \d\), got 0 in task \d$"):
        rollout(make(**POOL), Careless())


def test_regrets_are_among_what_is_available():
    envs = make(**POOL)
    record = rollout(envs, "linucb")
    tasks = envs.tasks
    for i in range(4):
        for t in range(30):
            there = np.flatnonzero(tasks.available[i, t])
            assert len(there) == 2
            assert record.actions[i, t] in there
            best = tasks.means[i, t, there].max() - tasks.means[i, t, record.actions[i, t]]
            assert np.isclose(record.regret["best"][i, t], best)
    assert (record.regret["best"] >= 0).all()
    oracle = rollout(make(**POOL), "oracle")
    assert not oracle.regret["oracle"].any()
    assert np.array_equal(oracle.actions, oracle_actions(tasks))
    assert oracle.regret["best"].sum() < rollout(make(**POOL), "random").regret["best"].sum() / 4


def test_everything_available_plays_the_same_bits():
    for spec in ("lints", "ts-gen(m=3)", "softmax", "linucb(ties=random)"):
        plain, pool = rollout(make(n_actions=4), spec), rollout(make(n_actions=4, turnover={"live": 4}), spec)
        assert np.array_equal(plain.actions, pool.actions)
        assert np.array_equal(plain.rewards, pool.rewards)
        assert all(np.array_equal(plain.regret[name], pool.regret[name]) for name in plain.regret)


def test_a_class_is_played_as_an_agent_of_it():
    played = [rollout("gents_gym/Synthetic-v0(horizon=5)", agent, tasks=3) for agent in (Random, Random(), "random")]
    assert all(np.array_equal(record.actions, played[0].actions) for record in played[1:])
