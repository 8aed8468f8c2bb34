import gymnasium as gym
import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.adapters.online import online


def start(agent, n_tasks=1, n_actions=3, **info):
    rngs = [np.random.default_rng(i) for i in range(n_tasks)]
    agent.reset(TaskInfo(np.zeros((n_tasks, n_actions, 1)), n_actions, 2, **info), rngs)
    return agent


@pytest.mark.parametrize("kind", [SGDClassifier, SGDRegressor])
def test_every_action_has_a_learner_of_its_own(kind):
    """Against learners fed by hand: after the first round, the action of the highest prediction is played."""
    options = {"loss": "log_loss"} if kind is SGDClassifier else {}
    agent = start(online(kind(shuffle=False, **options), epsilon=0))
    mine = [kind(shuffle=False, **options) for _ in range(3)]
    contexts, rewards = np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).integers(2, size=40)
    played = []
    for t, (x, reward) in enumerate(zip(contexts[:, None], rewards, strict=True)):
        (action,) = agent.act(x)
        if t >= 3:
            if kind is SGDClassifier:
                predicted = [learner.predict_proba(x)[0, 1] for learner in mine]
            else:
                predicted = [learner.predict(x)[0] for learner in mine]
            assert action == np.argmax(predicted)
        mine[action].partial_fit(x, [reward], **({"classes": [0, 1]} if kind is SGDClassifier else {}))
        agent.observe(x, np.array([action]), np.array([float(reward)]))
        played.append(action)
    assert sorted(played[:3]) == [0, 1, 2]
    assert len(set(played[3:])) > 1


def test_a_share_of_the_actions_is_random():
    agent = start(online(epsilon=0.5), n_tasks=120)
    for _ in range(3):
        action = agent.act(np.zeros((120, 2)))
        agent.observe(np.zeros((120, 2)), action, (action == 1).astype(float))
    share = np.bincount(agent.act(np.zeros((120, 2))), minlength=3) / 120
    assert share == pytest.approx([1 / 6, 2 / 3, 1 / 6], abs=0.15)


def test_a_reward_between_0_and_1_is_the_chance_of_a_label():
    seen = []

    class Spy(SGDClassifier):
        def partial_fit(self, X, y, classes=None):
            seen.extend(y)
            return super().partial_fit(X, y, classes)

    agent = start(online(Spy(loss="log_loss")), n_tasks=150, reward_fn=lambda outcome: outcome / 4)
    agent.observe(np.zeros((150, 2)), np.zeros(150, int), np.ones(400))
    assert np.mean(seen) == pytest.approx(0.25, abs=0.14)


def test_it_learns_and_is_named_with_options():
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=3, horizon=120)
    spec = "online(estimator='sklearn.linear_model:SGDClassifier(loss=log_loss, alpha=0.001)', epsilon=0.05)"
    found = rollout(envs, make_agent(spec), seed=0).summary()["expected"]["mean"]
    assert found < 0.8 * rollout(envs, make_agent("random"), seed=0).summary()["expected"]["mean"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": SGDClassifier}, "estimator must be an instance of scikit-learn's BaseEstimator, got <class"),
        ({"estimator": None}, "estimator must be an instance of scikit-learn's BaseEstimator, got None"),
        ({"estimator": SGDClassifier()}, r"with partial_fit and predict_proba, got SGDClassifier\(\)"),
        ({"estimator": "sklearn.svm:SVC"}, r"estimator must be an object with partial_fit and predict_proba, got SVC"),
        ({"estimator": "sklearn.svm:SVD"}, "cannot import estimator"),
        ({"epsilon": 1.5}, r"epsilon must be at most 1, got 1\.5"),
        ({"epsilon": -1}, "epsilon must be at least 0, got -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_agent("online", **options)


def test_a_learner_that_predicts_no_number_is_told():
    """NumPy's argmax takes NaN for the highest."""
    agent = start(online(GaussianNB(), epsilon=0))
    for _ in range(3):
        action = agent.act(np.zeros((1, 2)))
        agent.observe(np.zeros((1, 2)), action, np.zeros(1))
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match=r"must predict a number, got nan of GaussianNB\(\)"),
    ):
        agent.act(np.zeros((1, 2)))


def test_other_rewards_are_for_regressors():
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, horizon=40, outcomes="gaussian")
    with pytest.raises(InputError, match=r"rewards must lie in \[0, 1\] for a classifier \(a regressor takes any\)"):
        rollout(envs, "online")
    rollout(envs, "online(estimator='sklearn.linear_model:SGDRegressor')")
