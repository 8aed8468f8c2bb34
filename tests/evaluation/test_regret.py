import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from sklearn.linear_model import LogisticRegression
from stable_baselines3.common.monitor import Monitor

from gents_gym import InputError, RecordRegret, Tasks, VectorRecordRegret
from gents_gym.evaluation.regret import REGRETS, oracle_actions, regret
from gents_gym.tasks.synthetic import Synthetic

ID, T = "gents_gym/Synthetic-v0", 12
DISTRIBUTION = Synthetic(horizon=T)


def slow_regret(task, actions):
    """One task's regrets by scikit-learn fits and plain loops, summed over steps."""
    models, contexts = [], task.contexts[0].astype(float)  # scikit-learn fits float32 in float32
    for a in range(task.n_actions):
        y = task.outcomes[0, :, a]
        constant = y.min() == y.max()
        models.append(y[0] if constant else LogisticRegression(tol=1e-12, max_iter=10000).fit(contexts, y))
    sums = dict.fromkeys(REGRETS, 0.0)
    for t, action in enumerate(actions):
        x = contexts[t][None]
        scores = [m.predict_proba(x)[0, 1] if isinstance(m, LogisticRegression) else m for m in models]
        best = int(np.argmax(scores))
        sums["oracle"] += task.outcomes[0, t, best] - task.outcomes[0, t, action]
        sums["expected"] += task.means[0, t, best] - task.means[0, t, action]
        sums["best"] += task.means[0, t].max() - task.means[0, t, action]
    return sums


def test_the_three_regrets_are_the_slow_ones():
    tasks = DISTRIBUTION.sample(0, range(20))
    actions = np.random.default_rng(0).integers(10, size=(20, T))
    found = regret(tasks, actions, oracle_actions(tasks))
    for i in range(20):
        for name, total in slow_regret(tasks[i], actions[i]).items():
            assert found[name][i].sum() == pytest.approx(total, abs=1e-5)


def test_best_regret_is_never_negative_and_zero_for_the_best_actions():
    tasks = DISTRIBUTION.sample(0, range(10))
    found = regret(tasks, tasks.means.argmax(axis=2), oracle_actions(tasks))
    assert (found["best"] == 0).all()
    assert (found["expected"] <= 0).all()
    assert found["expected"].sum() < 0


def test_without_means_there_is_the_oracle_regret_alone():
    tasks = DISTRIBUTION.sample(0, range(2))
    bare = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes)
    assert regret(bare, np.zeros((2, T), int), oracle_actions(bare)).keys() == {"oracle"}


def test_regret_is_of_rewards_and_the_oracle_maximises_them():
    cost = Synthetic(horizon=T, reward_fn=lambda y: 1 - y)
    tasks, plain = cost.sample(0, range(5)), DISTRIBUTION.sample(0, range(5))
    found = regret(tasks, np.zeros((5, T), int), oracle_actions(tasks))
    best_fit = oracle_actions(tasks)
    picked = np.take_along_axis(plain.outcomes, best_fit[..., None], axis=2)[..., 0]
    assert np.allclose(found["oracle"], plain.outcomes[:, :, 0] - picked)
    assert picked.mean() < plain.outcomes.mean()


@pytest.mark.parametrize("oracle", [None, "logistic", "logistic(C=0.01)"])
def test_single_form_records_at_the_end_alone(oracle):
    env = RecordRegret(gym.make(ID, horizon=T), oracle=oracle)
    env.reset(seed=4)
    for t in range(T):
        *_, info = env.step(t % 10)
        assert ("regret" in info) == (t == T - 1)
    task = DISTRIBUTION.sample(4, [0])
    expected = slow_regret(task, np.arange(T) % 10)
    if oracle == "logistic(C=0.01)":
        found = regret(task, np.arange(T)[None] % 10, oracle_actions(task, oracle))
        assert found["expected"].sum() != pytest.approx(expected["expected"], abs=1e-3)
        expected = {name: steps.sum() for name, steps in found.items()}
    assert info["regret"] == pytest.approx(expected, abs=1e-5)


def test_the_key_clashes_with_nobodys():
    env = Monitor(gym.wrappers.RecordEpisodeStatistics(RecordRegret(gym.make(ID, horizon=T))))
    env.reset(seed=4)
    for _ in range(T):
        *_, info = env.step(0)
    assert info["episode"]["l"] == T
    assert info["regret"].keys() == set(REGRETS)


def test_its_spec_serialises():
    spec = RecordRegret(gym.make(ID, horizon=T), oracle="logistic").spec
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert isinstance(again, RecordRegret)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_form_records_every_slots_episodes(mode):
    """Three slots, one of them out of step, through several episodes, against the slow version."""
    envs = VectorRecordRegret(gym.make_vec(ID, num_envs=3, horizon=T, autoreset_mode=mode))
    envs.reset(seed=4)
    envs.step(np.zeros(3, int))
    number, played = [3, 1, 2], [[], [0], [0]]
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    rng, fresh, recorded = np.random.default_rng(0), np.zeros(3, bool), 0
    for _ in range(4 * T):
        actions = rng.integers(10, size=3)
        _, _, terminated, _, info = envs.step(actions)
        told = info.get("final_info", {}) if mode is AutoresetMode.SAME_STEP else info
        for i in range(3):
            if mode is AutoresetMode.NEXT_STEP and fresh[i]:
                continue
            played[i].append(actions[i])
            assert bool("regret" in told and told["_regret"][i]) == terminated[i]
            if terminated[i]:
                expected = slow_regret(DISTRIBUTION.sample(4, [number[i]]), played[i])
                assert {n: told["regret"][n][i] for n in REGRETS} == pytest.approx(expected, abs=1e-5)
                number[i], played[i] = number[i] + 3, []
                recorded += 1
        if mode is AutoresetMode.DISABLED and terminated.any():
            envs.reset(options={"reset_mask": terminated})
        fresh = terminated
    assert recorded >= 9


def test_the_vector_form_takes_another_oracle_too():
    envs = VectorRecordRegret(gym.make_vec(ID, num_envs=2, horizon=T, autoreset_mode="Disabled"), "logistic(C=0.01)")
    envs.reset(seed=4)
    for _ in range(T):
        *_, info = envs.step(np.zeros(2, int))
    tasks = DISTRIBUTION.sample(4, range(2))
    found = regret(tasks, np.zeros((2, T), int), oracle_actions(tasks, "logistic(C=0.01)"))
    assert info["regret"]["expected"] == pytest.approx(found["expected"].sum(axis=1), abs=1e-5)


def test_foreign_environments_have_no_regret():
    with pytest.raises(InputError, match=r"env must have tables in env\.unwrapped\.tasks"):
        RecordRegret(gym.make("CartPole-v1"))
    with pytest.raises(InputError, match=r"env must have tables in env\.unwrapped\.tasks"):
        VectorRecordRegret(gym.make_vec("CartPole-v1", num_envs=2))
